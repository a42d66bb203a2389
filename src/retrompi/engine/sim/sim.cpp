#include "sim/sim.hpp"

#include "channel/curve_set.hpp"
#include "diagnosis/leftovers.hpp"
#include "mpi/recurrence.hpp"
#include "sim/builder.hpp"
#include "sim/killer.hpp"
#include "trace/words.hpp"

namespace retrompi {

namespace {

constexpr int64_t kMostRuns = 10000;  // of a background job: the processes of all its runs are kept
constexpr size_t kMostJobs = 65535;   // numbered by 16 bits

void check(const JobConfig& c, const std::vector<NamedHost>& hosts, const Trace& t) {
  if (t.ranks.size() != c.placement.size())
    throw ConfigError("the trace has " + std::to_string(t.ranks.size()) + " ranks, " + std::to_string(c.placement.size()) + " are placed");
  for (const size_t h : c.placement)
    if (h >= hosts.size()) throw ConfigError("rank placed on host " + std::to_string(h) + " of " + std::to_string(hosts.size()));
  if (!c.cores.empty() && c.cores.size() != c.placement.size())
    throw ConfigError(std::to_string(c.cores.size()) + " cores are named for " + std::to_string(c.placement.size()) + " ranks");
  for (size_t r = 0; r < c.cores.size(); ++r)
    if (c.cores[r] < 0 || c.cores[r] >= hosts[c.placement[r]].spec->cores)
      throw ConfigError("rank " + std::to_string(r) + " is pinned to core " + std::to_string(c.cores[r]) + " of " +
                        std::to_string(hosts[c.placement[r]].spec->cores) + " on " + hosts[c.placement[r]].name);
  // One-sided calls that the runtime lacks are refused before the run, not in the middle of it.
  if (!c.rma_same.there || !c.rma_remote.there)
    for (size_t r = 0; r < t.ranks.size(); ++r)
      for (const Action& a : t.ranks[r]) {
        if (a.kind() != ActionKind::NewWindow && !is_window(a.op)) continue;
        const auto* rma = a.get_if<action::Rma>();
        const auto* sync = a.get_if<action::WindowSync>();
        const int32_t target = rma ? rma->target : sync ? sync->target : -1;
        if (target == PROC_NULL) continue;
        const bool named = target >= 0;
        const bool same = named && c.placement[static_cast<size_t>(target)] == c.placement[r];
        if (named ? (same ? c.rma_same : c.rma_remote).there : c.rma_same.there || c.rma_remote.there) continue;
        throw ConfigError(t.where(r, a) + ": " + action_name(a) + ": this runtime has no one-sided operations" +
                          (named ? std::string(" between ranks of ") + (same ? "one host" : "two hosts") : ""));
      }
  if (t.refused_total > 0) {
    const Remark& r = t.refused.front();
    throw ConfigError(t.files[static_cast<size_t>(r.rank)] + ":" + std::to_string(r.line) + ": " + r.action + ": " + r.reason);
  }
}

/// All jobs of a simulation, from the start of the first to the end of the last.
class Simulation {
 public:
  Simulation(const SimConfig& c, const Trace& trace, const std::vector<const Trace*>& further) : c_(c) {
    add(c, trace);
    if (further.size() != c.further.size()) throw ConfigError("every further job needs a trace");
    for (size_t i = 0; i < further.size(); ++i) add(c.further[i], *further[i]);
    if (c.positions.size() < c.hosts.size()) throw ConfigError("every host needs a position");
    if (parts_.size() > 1 && c.network == SimConfig::Network::Simgrid)
      throw ConfigError("several jobs need the network native or fluid; SimGrid's carries one");
    if (parts_.size() > kMostJobs) throw ConfigError(std::to_string(kMostJobs) + " jobs at most, not " + std::to_string(parts_.size()));
    for (const Part& p : parts_) check(p.c, c.hosts, p.t);
  }

  SimResult run() {
    // What the result needs is allocated after the bound on memory has been lifted.
    try {
      const MemoryBound bound(c_.limits.memory);
      w_.loop.effort.start(c_.limits);
      go();
    } catch (const Limit& reached) {
      stop(Outcome::Limit, reached.reason);
    } catch (const Overflow& past) {
      stop(Outcome::Overflow, past.reason + whose());
    } catch (const std::bad_alloc&) {
      stop(Outcome::Limit, out_of_memory());
    } catch (const std::length_error&) {  // an array longer than any memory
      stop(Outcome::Limit, out_of_memory());
    }
    return result();
  }

 private:
  void go() {
    furnish();
    for (Part& p : parts_)
      if (p.c.start == 0) {
        launch(p);
      } else {
        w_.loop.owner = p.number;
        w_.loop.schedule(p.c.start, callback<&Simulation::on_start>(*this, p.number - 1));
      }
    w_.loop.owner = 0;
    killer_.emplace(c_, w_);
    if (!c_.trace_events.empty()) w_.loop.write_to(event_trace_.emplace(c_.trace_events));
    if (c_.timeline.limit > 0) observe();
    if (c_.profile) {
      profile_ = std::make_shared<CallProfile>(first().t, first().job->ranks.size());
      first().job->profile = profile_.get();
    }
    // What is written down beside a run has every event.
    w_.loop.foresees = parts_.size() == 1 && c_.network != SimConfig::Network::Simgrid && c_.traffic.empty() && c_.failures.empty() &&
                       !w_.anatomy.log && c_.trace_events.empty();
    w_.loop.settle = [this] {
      for (const auto& h : w_.hosts) h->settle();
    };
    if (c_.limit_s > 0) w_.loop.limit = to_ps_or_never(c_.limit_s);
    bool stuck = false;
    for (bool again = true; again;) try {
        stuck = w_.wire->run(w_.loop, [this] { return std::any_of(w_.hosts.begin(), w_.hosts.end(), [](const auto& h) { return h->could_act(); }); });
        w_.loop.owner = first().number;
        again = stuck && first().job && !first().over && first().job->next_call();
      } catch (const Abort& a) {
        Part& p = part_of(w_.loop.owner, a);
        close(p, Outcome::Aborted, &a);
        finish(p);
        again = !w_.loop.stopped;
      }
    for (Part& p : parts_)
      if (!p.over) close(p, ended(p, stuck), nullptr);
  }
  struct Part {
    Simulation& sim;
    const JobConfig& c;
    const Trace& t;
    uint32_t number;  // from 1 on
    std::unique_ptr<Job> job;
    std::unique_ptr<Builder> builder;
    std::optional<Recurrence> recurrence;
    JobResult result;
    std::vector<int> placed;  // ranks on each host before this job was placed
    Ps began = 0;             // the present run
    bool ready = false;       // the processes of the present run are there
    bool leaving = false;     // its last rank has finished
    bool over = false;        // `result` is complete
  };
  Part& first() { return parts_.front(); }
  /// The job whose event ended in an Abort; its number is the loop's owner, 0 for none.
  Part& part_of(uint32_t owner, const Abort& a) {
    RETROMPI_ASSERT(owner > 0 && owner <= parts_.size());
    if (owner == 0) throw std::logic_error("an abort that belongs to no job: " + a.reason);
    return parts_[owner - 1];
  }
  void add(const JobConfig& c, const Trace& t) {
    parts_.push_back(Part{*this, c, t, static_cast<uint32_t>(parts_.size() + 1), nullptr, nullptr, {}, {}, {}, 0, false, false, t.ranks.empty()});
  }

  /// Whether a job's messages between hosts are moved by cards, from memory to memory.
  static bool moves_bursts(const JobConfig& c) {
    return c.rma_remote.there || std::any_of(c.remote.begin(), c.remote.end(), [](const HopSpec& h) { return std::holds_alternative<DmaSpec>(h); });
  }

  void furnish() {
    if (parts_.size() > 1) w_.loop.count_owners(static_cast<uint32_t>(parts_.size() + 1));
    w_.anatomy.on = c_.anatomy;
    w_.anatomy.critical.on = c_.critical_path;
    w_.anatomy.log = c_.anatomy || c_.critical_path;
    w_.anatomy.path.on = !c_.directions.empty();
    Rng phases(c_.seed ^ 0x7469636bULL);
    for (const NamedHost& h : c_.hosts) {
      // The first host's clock starts with the run; the others are not synchronised with it.
      const Ps phase = w_.hosts.empty() ? 0 : static_cast<Ps>(phases.uniform() * static_cast<double>(h.spec->tick));
      w_.hosts.push_back(std::make_unique<Host>(w_.loop, w_.anatomy, h.spec, h.name, phase));
    }
    placed_.resize(w_.hosts.size());
    // Curves need no wire; one-sided operations do at every fidelity.
    auto wired = [](const JobConfig& c) {
      return c.rma_remote.there ||
             std::any_of(c.remote.begin(), c.remote.end(), [](const HopSpec& h) { return !std::holds_alternative<CurveSpec>(h); });
    };
    const bool joined = w_.hosts.size() > 1 && std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) { return wired(p.c); });
    // What a card moves as a whole message are packets that interleave with those of others: shares are their limit (docs/networks.md).
    const bool bursts = std::any_of(parts_.begin(), parts_.end(), [](const Part& p) { return moves_bursts(p.c); });
    const bool far = joined || !c_.traffic.empty();
    const size_t rails = c_.link.rails;
    std::vector<size_t> cards;
    for (size_t i = 0; far && i < c_.positions.size(); ++i) cards.insert(cards.end(), rails, c_.positions[i]);
    if (far && c_.network == SimConfig::Network::Simgrid)
      w_.wire = simgrid_wire(w_.loop, w_.anatomy, cards, c_.link, c_.simgrid_model);
    else if (far && (c_.network == SimConfig::Network::Fluid || bursts))
      w_.wire = fluid_wire(w_.loop, w_.anatomy, cards, c_.link);
    else
      w_.wire = native_wire(w_.loop, w_.anatomy, cards, c_.link, c_.seed);
    if (far && !c_.failures.empty()) w_.wire->fail(c_.failures);
    if (far)
      w_.net = std::make_unique<Net>(w_, c_.link.frame_overhead, c_.link.mtu,
                                     Net::Rails{rails, c_.link.rail_policy == RailPolicy::Stripe && rails > 1, c_.positions});
    if (!c_.traffic.empty()) traffic_.emplace(w_, c_.traffic, c_.positions, rails, c_.link.frame_overhead, c_.seed);
    w_.loop.stopped = std::all_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.over || p.c.background; });
  }

  /// Whether repetitions of a job may be left out: nothing is recorded, nobody else is there, nothing happens at a given time, its channels can
  /// tell their state, and no card moves bursts, which look back at how long it has been idle.
  [[nodiscard]] bool may_recur(const Part& p) const {
    constexpr size_t kMost = 1024;
    const auto told = [](const std::vector<HopSpec>& hops) {
      return std::none_of(hops.begin(), hops.end(),
                          [](const HopSpec& h) { return std::holds_alternative<CurveSpec>(h) || std::holds_alternative<DmaSpec>(h); });
    };
    return c_.repetitions && parts_.size() == 1 && !moves_bursts(p.c) && !c_.anatomy && !c_.critical_path && c_.timeline.limit == 0 && !c_.profile &&
           c_.traffic.empty() && c_.failures.empty() && c_.kills.empty() && c_.trace_events.empty() && p.c.order.empty() &&
           p.builder->processes().size() <= kMost && told(p.c.same) && told(p.c.remote) && told(p.c.same_bulk);
  }

  void launch(Part& p) {
    auto job = std::make_unique<Job>(w_, p.t, p.c.kernels);
    job->number = p.number;
    job->rng = p.job ? p.job->rng : Rng(p.number == 1 ? c_.seed : c_.seed ^ (0x6a6f62ULL << 24 | p.number));
    job->suffix = p.c.name.empty() ? "" : " of " + p.c.name;
    job->unexpected_limit = p.c.unexpected_limit;
    job->compute_scale = p.c.compute_scale;
    job->memory_share = p.c.memory_share;
    job->rma_same = p.c.rma_same;
    job->rma_remote = p.c.rma_remote;
    job->collectives = p.c.collectives;
    job->free_wildcards = p.c.free_wildcards;
    job->order = {.calls = p.c.order, .now = {}, .over = p.c.order.empty()};
    job->over = callback<&Simulation::left>(*this, p.number - 1);
    if (p.job) {  // messages in flight from its last run still refer to it
      past_jobs_.push_back(std::move(p.job));
      past_builders_.push_back(std::move(p.builder));
    } else {
      p.placed = placed_;
      p.result.start = w_.loop.time();
    }
    p.began = w_.loop.time();
    p.ready = p.leaving = false;
    p.job = std::move(job);
    p.builder = std::make_unique<Builder>(p.c, w_, *p.job);
    std::vector<int> placed = p.placed;
    p.builder->build(placed);
    if (placed_ == p.placed) placed_ = std::move(placed);
    if (may_recur(p)) {
      p.recurrence.emplace(w_, *p.job, p.builder->processes(), [&p](State& s) { p.builder->put_channels(s); });
      p.job->recurrence = &*p.recurrence;
    }
    p.builder->start();
    p.ready = true;
  }
  void on_start(size_t part) {
    if (parts_[part].over) return;
    w_.loop.cause = w_.anatomy.appointed(w_.loop.now, parts_[part].c.name);
    launch(parts_[part]);
  }

  /// Begins to record before anything runs, so that the times of the first calls are known.
  void observe() {
    const Job& job = *first().job;
    const auto& procs = first().builder->processes();
    timeline_ = std::make_shared<Timeline>(c_.timeline, procs.size(), job.ranks.size());
    for (const Proc* p : procs) {
      Timeline::Process& row = timeline_->processes[static_cast<size_t>(p->thread.log())];
      row.name = p->thread.name();
      row.kind = row.name.substr(0, row.name.find(' '));
      row.host = p->host.name;
    }
    first().job->timeline = w_.anatomy.timeline = timeline_.get();
    w_.anatomy.log = true;
  }

  /// The last rank of a job has finished, and is still executing.
  void left(size_t part) {
    Part& p = parts_[part];
    p.leaving = true;
    if (&p == &first() && w_.anatomy.critical.on) {
      CriticalPath& path = w_.anatomy.critical;
      last_point_ = path.last(w_.loop.cause);
      w_.loop.pending_causes([&](CriticalPath::Point cause) { path.follows(last_point_, cause); });
      if (w_.wire) w_.wire->ends(last_point_);
    }
    if (std::all_of(parts_.begin(), parts_.end(), [](const Part& q) { return q.over || q.leaving || q.c.background; }) && !p.c.background)
      w_.loop.stopped = true;
    else
      w_.loop.schedule(w_.loop.now, callback<&Simulation::on_over>(*this, part));
  }
  void on_over(size_t part) {
    Part& p = parts_[part];
    if (p.over) return;
    if (!p.c.background) {
      close(p, Outcome::Completed, nullptr);
      finish(p);
      return;
    }
    const Ps took = w_.loop.time() - p.began;
    if (p.result.runs + 1 >= kMostRuns)
      throw ConfigError("the background job '" + p.c.name + "' ends " + std::to_string(kMostRuns) +
                        " times while the first job runs; let each run of it take longer");
    leave(p);
    if (first().over || stuck(first())) return close(p, Outcome::Ended, nullptr);
    ++p.result.runs;
    p.result.time += took;
    sum(p);
    launch(p);
  }
  /// A job is over while others continue: ends its remaining processes.
  void leave(Part& p) {
    if (!p.builder) return;
    for (Proc* q : p.builder->processes()) q->thread.kill();
  }
  void finish(Part& p) {
    leave(p);
    if (&p == &first())
      for (Part& q : parts_)
        if (q.c.background && !q.over) {
          close(q, stuck(q) ? Outcome::Deadlock : Outcome::Ended, nullptr);
          leave(q);
        }
    if (std::all_of(parts_.begin(), parts_.end(), [](const Part& q) { return q.over || q.c.background; })) w_.loop.stopped = true;
  }
  /// Nothing in this job will ever happen again.
  [[nodiscard]] bool stuck(const Part& p) const {
    if (!p.job || p.over || p.leaving || !w_.loop.idle(p.number)) return false;
    const auto& all = p.builder->processes();
    return std::none_of(all.begin(), all.end(), [](const Proc* q) { return q->thread.has_work(); });
  }
  /// The outcome of a job that was still open when the simulation ended.
  [[nodiscard]] Outcome ended(const Part& p, bool nothing_more) const {
    if (p.leaving && !p.c.background) return Outcome::Completed;
    if (p.c.background) return nothing_more || stuck(p) ? Outcome::Deadlock : Outcome::Ended;
    return nothing_more ? Outcome::Deadlock : Outcome::Timeout;
  }

  void sum(Part& p) const { p.result.count.repeat({}, p.job->count, 1); }

  void close(Part& p, Outcome outcome, const Abort* end) {
    p.over = true;
    JobResult& r = p.result;
    r.outcome = outcome;
    if (!p.job || !p.ready || !killer_) {  // not put together yet
      r.detail = outcome == Outcome::Completed ? "" : stopped_.empty() ? "it had not been started" : stopped_;
      return;
    }
    const Job& job = *p.job;
    if (outcome == Outcome::Deadlock) {
      r.why = diagnose(w_, job, p.builder->channels(), nullptr);
      r.detail = "no process can go on" + (r.why.summary.empty() ? "" : ": " + r.why.summary);
    } else if (outcome == Outcome::Timeout) {
      r.detail = "not finished after " + std::to_string(c_.limit_s) + " simulated seconds";
    } else if (outcome == Outcome::Aborted) {
      r.why = diagnose(w_, job, p.builder->channels(), end);
      r.detail = end->reason + (r.why.summary.empty() ? "" : ": " + r.why.summary);
    } else if (outcome == Outcome::Ended) {
      r.detail = "with the first job";
    } else if (outcome == Outcome::Completed) {
      r.leftovers = leftovers(w_, job, p.builder->channels());
    } else if (!stopped_.empty()) {
      r.detail = stopped_;
    }
    if (const std::string down = w_.wire->failed(); !down.empty() && is_negative(outcome)) r.detail += (r.detail.empty() ? "" : "; ") + down;
    if (std::string told = killer_->told(p.number); !told.empty()) {
      // The report names the process that died; a user of the period saw only what the library printed when it gave up, or nothing.
      if (outcome == Outcome::Deadlock || outcome == Outcome::Timeout) told += "; the runtime said nothing to the job's owner";
      r.detail += (r.detail.empty() ? "" : "; ") + told;
    }
    sum(p);
    r.collectives = p.job->collectives.used();
    Ps time = 0;
    r.ranks.reserve(job.ranks.size());
    for (const Rank* k : job.ranks) {
      const Ps rank_end = (k->finished ? k->end : w_.loop.time()) - p.began;
      time = std::max(time, rank_end);
      // A call that has not returned counts as far as it has come.
      const Ps open = k->now_at && !k->finished && !k->thread.dead() ? w_.loop.time() - k->call_began : 0;
      const bool computes = open > 0 && computation(k->now_at->op);
      RankRow& row = r.ranks.emplace_back(RankRow{k->count, k->host_index, rank_end, k->thread.used()});
      (computes ? row.compute : row.mpi) += open;
      const bool waits = stopped_.empty() || k->thread.waiting();  // a bound ends a run in the middle of some rank's work
      if (is_negative(outcome) && !k->finished && k->now_at && !k->thread.dead() && waits)
        r.waits.push_back({k->id, k->now_at->line, p.t.files[static_cast<size_t>(k->id)], op_name(k->now_at->op), waits_for(*k)});
    }
    if (!p.c.background) r.time = time;
    if (&p == &first()) close_first();
  }
  /// The simulation ends here: every job that was not over has this outcome and keeps what was computed.
  void stop(Outcome outcome, const std::string& reason) {
    stopped_ = reason + where();
    for (Part& p : parts_)
      if (!p.over) close(p, outcome, nullptr);
  }
  [[nodiscard]] std::string where() const {
    char text[96];
    std::snprintf(text, sizeof text, "; %.9g s were simulated in %llu events", to_s(w_.loop.time()),
                  static_cast<unsigned long long>(w_.loop.executed()));
    return text;
  }
  /// The call in which a rank threw; empty when a network or a timer did.
  [[nodiscard]] std::string whose() const {
    for (const Part& p : parts_)
      if (p.job && p.ready)
        for (const Rank* k : p.job->ranks)
          if (k->thread.failed() && k->now_at)
            return "; rank " + std::to_string(k->id) + " was in " + op_name(k->now_at->op) + ", " + p.t.where(static_cast<size_t>(k->id), *k->now_at);
    return {};
  }
  [[nodiscard]] std::string out_of_memory() const {
    char text[96];
    std::snprintf(text, sizeof text, "the bound of %.4g MiB of memory is reached", static_cast<double>(c_.limits.memory) / (1 << 20));
    return c_.limits.memory > 0 ? text : "there is no more memory";
  }
  /// Records kept for the first job only.
  void close_first() {
    end_ = w_.loop.time();
    if (!timeline_) return;
    const Job& job = *first().job;
    for (const Proc* q : first().builder->processes()) q->thread.close_log();
    // One that waits for its sends after the end of its trace is in no call of it.
    for (const Rank* k : job.ranks)
      if (!k->finished && k->now_at && k->place() < job.trace.ranks[static_cast<size_t>(k->id)].size())
        timeline_->end_call(k->id, *k->now_at, w_.loop.now, true);
    timeline_->finish();
    w_.anatomy.timeline = nullptr;
    w_.anatomy.log = w_.anatomy.on || w_.anatomy.critical.on;
  }

  SimResult result() {
    SimResult r;
    static_cast<JobResult&>(r) = std::move(first().result);
    for (Part& p : parts_)
      if (&p != &first()) r.further.push_back(std::move(p.result));
    r.end = end_;
    r.events = w_.loop.executed();
    if (const auto& recurrence = first().recurrence) {
      r.events_left_out = recurrence->events_left_out();
      r.state_incomplete = recurrence->distrusted();
      r.unconfirmed = recurrence->unconfirmed();
    }
    r.profile = profile_;
    r.timeline = timeline_;
    if (w_.wire) r.failed = w_.wire->failed();
    if (w_.wire) r.contended = w_.wire->contended();
    if (traffic_)
      for (const Traffic::Source& s : traffic_->sources()) r.traffic.push_back({s.frames, s.arrived, s.bytes, s.dropped, s.lost});
    if (!first().job || !first().ready) return r;
    const Job& job = *first().job;
    r.marks = job.marks;
    if (c_.critical_path && r.outcome == Outcome::Completed) {
      r.critical_path = w_.anatomy.critical.to(last_point_);
      r.critical_names = critical_names(r.critical_path);
      r.path_graph = std::make_shared<PathGraph>(PathGraph::of(
          w_.anatomy.critical, last_point_, [this](CriticalPath::Who who) { return critical_name(who); },
          [this](const CriticalPath::Term& term) { return number(term); }));
    }
    if (!c_.anatomy || r.outcome != Outcome::Completed) return r;
    Ps from = -1, to = -1;
    for (const MarkTime& m : job.marks) {
      if (m.rank != c_.anatomy_rank) continue;
      const std::string& l = first().t.labels[static_cast<size_t>(m.label)];
      if (l == c_.anatomy_from) from = m.time;
      if (l == c_.anatomy_to) to = m.time;
    }
    if (from < 0 || to < from) throw ConfigError("the marks '" + c_.anatomy_from + "' and '" + c_.anatomy_to + "' are not in the trace");
    r.anatomy_total = to - from;
    r.anatomy = w_.anatomy.split(job.ranks[static_cast<size_t>(c_.anatomy_rank)]->thread.log(), from, to);
    if (!c_.directions.empty())
      r.message_path = message_path_of(w_, job, first().t, c_.directions, first().builder->processes(), first().builder->channels());
    return r;
  }

  /// The declared number that a term belongs to.
  PathGraph::Number number(const CriticalPath::Term& t) const {
    if (t.owner == w_.wire.get()) return {"link", 0, t.field, t.at};
    if (t.owner == &c_.rank) return {"job", 0, t.field, t.at};
    for (size_t i = 0; i < c_.hosts.size(); ++i)
      if (t.owner == c_.hosts[i].spec.get()) return {"host", static_cast<int64_t>(i), t.field, t.at};
    for (const auto& [name, hops] : {std::pair{"same", &c_.same}, std::pair{"same_bulk", &c_.same_bulk}, std::pair{"remote", &c_.remote}})
      for (size_t i = 0; i < hops->size(); ++i) {
        if (t.owner == &common((*hops)[i])) return {name, static_cast<int64_t>(i), t.field, t.at};
        if (const auto* curve = std::get_if<CurveSpec>(&(*hops)[i]))
          for (size_t table = 0; table < curve->curve->tables.size(); ++table)
            if (t.owner == &curve->curve->tables[table]) return {std::string("curve ") + name, static_cast<int64_t>(table), t.field, t.at};
      }
    for (const auto& q : w_.procs)
      if (const auto* f = dynamic_cast<const Forwarder*>(q.get()); f && t.owner == static_cast<const ForwarderParts*>(f))
        return {"forward " + q->thread.name().substr(0, q->thread.name().find(' ')), 0, t.field, t.at};
    return {"another job", 0, t.field, t.at};
  }
  std::string critical_name(CriticalPath::Who who) const {
    return who < CriticalPath::kPlaces ? w_.anatomy.name({Cause::Thread, static_cast<int32_t>(who)})
                                       : w_.anatomy.critical.places()[who - CriticalPath::kPlaces];
  }
  /// Numbers those on the path from 0 on; their names.
  std::vector<std::string> critical_names(std::vector<CriticalPath::Piece>& path) const {
    std::map<CriticalPath::Who, CriticalPath::Who> known;
    std::vector<std::string> names;
    for (CriticalPath::Piece& piece : path) {
      const auto [it, fresh] = known.emplace(piece.who, static_cast<CriticalPath::Who>(names.size()));
      if (fresh) names.push_back(critical_name(piece.who));
      piece.who = it->second;
    }
    return names;
  }

  const SimConfig& c_;
  World w_;
  CriticalPath::Point last_point_ = 0;  // the end of the first job's last rank
  std::optional<Traffic> traffic_;
  std::deque<Part> parts_;
  std::vector<int> placed_;  // host -> ranks
  std::optional<Killer> killer_;
  std::optional<EventTrace> event_trace_;
  std::vector<std::unique_ptr<Job>> past_jobs_;
  std::vector<std::unique_ptr<Builder>> past_builders_;
  std::shared_ptr<Timeline> timeline_;
  std::shared_ptr<CallProfile> profile_;
  Ps end_ = 0;
  std::string stopped_;  // why the simulation itself was ended
};

}  // namespace

SimResult simulate(const SimConfig& c, const Trace& trace, const std::vector<const Trace*>& further) { return Simulation(c, trace, further).run(); }

}  // namespace retrompi
