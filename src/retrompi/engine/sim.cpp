#include "sim.hpp"

#include <cstdio>
#include <set>

#include "trace_actions.hpp"

namespace retrompi {

World::World() = default;
World::~World() = default;

namespace {

class Builder {
 public:
  Builder(const SimConfig& c, World& w, Job& job) : c_(c), w_(w), job_(job) {}

  void build() {
    Rng phases(c_.seed ^ 0x7469636bULL);
    for (HostSpec h : c_.hosts) {
      // The first host's clock starts with the run; the others are not synchronised with it.
      h.tick_phase = w_.hosts.empty() ? 0 : static_cast<Ps>(phases.uniform() * static_cast<double>(h.tick));
      w_.hosts.push_back(std::make_unique<Host>(w_.loop, w_.anatomy, h));
      w_.hosts.back()->shares_memory = c_.memory_share > 0;
    }
    // Curves need no wire, one-sided operations do at every fidelity.
    const bool wired =
        c_.rma_remote.there || std::any_of(c_.remote.begin(), c_.remote.end(), [](const HopSpec& h) { return h.medium != Medium::Curve; });
    const bool far = (w_.hosts.size() > 1 && wired) || !c_.traffic.empty();
    std::vector<size_t> cards;
    for (size_t i = 0; far && i < c_.positions.size(); ++i) cards.insert(cards.end(), c_.link.rails, c_.positions[i]);
    if (far && c_.simgrid)
      w_.wire = simgrid_wire(w_.loop, w_.anatomy, cards, c_.link);
    else
      w_.wire = native_wire(w_.loop, w_.anatomy, cards, c_.link);
    if (far && !c_.failures.empty()) w_.wire->fail(c_.failures);
    if (!c_.traffic.empty()) w_.traffic = std::make_unique<Traffic>(w_, c_.traffic, c_.positions, c_.link.rails, c_.frame_overhead, c_.seed);
    if (far) w_.net = std::make_unique<Net>(w_, c_.frame_overhead, c_.mtu);
    for (const auto* route : {&c_.same, &c_.remote})
      for (const HopSpec& h : *route)
        for (const std::string* role : {&h.from, &h.to})
          if (*role != "rank") roles_.insert(role->substr(0, role->find('@')));
    for (const std::string& role : roles_)
      for (size_t i = 0; i < w_.hosts.size(); ++i) forwarder(role, i);
    const size_t n = c_.placement.size();
    std::vector<int> placed(c_.hosts.size());
    for (size_t r = 0; r < n; ++r) {
      const size_t h = c_.placement[r];
      auto rank = std::make_unique<Rank>(job_, w_, *w_.hosts[h], h, static_cast<int32_t>(r), c_.rank);
      const int nth = placed[h]++ % w_.hosts[h]->spec.cores;
      rank->core = c_.cores.empty() ? nth : c_.cores[r];
      if (!c_.cores.empty()) rank->thread.pin(rank->core);
      rank->out.ask(&Builder::on_missing, this, rank.get());
      if (!c_.same_bulk.empty()) rank->bulk.ask(&Builder::on_missing, this, rank.get());
      job_.ranks.push_back(rank.get());
      w_.procs.push_back(std::move(rank));
    }
    for (auto& [key, f] : forwarders_) f->thread.start(f->main());
    for (Rank* r : job_.ranks) r->thread.start(r->main());
  }

  [[nodiscard]] std::vector<const Chan*> channels() const {
    std::vector<const Chan*> all;
    for (const auto& [key, chan] : chans_) all.push_back(chan.get());
    return all;
  }

 private:
  using Key = std::tuple<const HopSpec*, const Proc*, const Proc*>;

  Forwarder& forwarder(const std::string& role, size_t host) {
    auto& f = forwarders_[{role, host}];
    if (!f) {
      auto p = std::make_unique<Forwarder>(w_, *w_.hosts[host], role + " on " + w_.hosts[host]->spec.name, host);
      p->idle = c_.idle.at(role);
      p->cost = c_.forward_cost.at(role);
      f = p.get();
      w_.procs.push_back(std::move(p));
    }
    return *f;
  }
  Proc& node(const std::string& role, Rank& a, Rank& b, bool last) {
    if (role == "rank") return last ? static_cast<Proc&>(b) : a;
    const auto at = role.find('@');
    return forwarder(role.substr(0, at), role.substr(at + 1) == "dst" ? b.host_index : a.host_index);
  }
  // A pair is connected when either of the two first needs the other, in both directions, because some channels answer on the
  // opposite one. Making a channel costs no simulated time and draws nothing, so when it happens makes no difference.
  static void on_missing(void* builder, void* rank, size_t to) {
    auto& s = *static_cast<Builder*>(builder);
    Rank &a = *static_cast<Rank*>(rank), &b = *s.job_.ranks[to];
    if (&a == &b) return;
    s.fresh_.clear();
    s.connect(a, b);
    s.connect(b, a);
    for (Chan* c : s.fresh_) {
      const Medium medium = c->spec.medium;
      if (medium == Medium::Curve) join_curves(*c, *s.chans_.at({&c->spec, &c->to, &c->from}));
      if (medium != Medium::Stream) continue;
      const auto back = s.streams_.find({&c->to, &c->from});
      if (back != s.streams_.end()) join_streams(*c, *back->second);
    }
  }
  void connect(Rank& a, Rank& b) {
    const bool same = a.host_index == b.host_index;
    connect(a, b, same ? c_.same : c_.remote, a.out);
    if (c_.same_bulk.empty()) return;
    if (same)
      connect(a, b, c_.same_bulk, a.bulk);
    else
      a.bulk.put(static_cast<size_t>(b.id), nullptr);
  }
  void connect(Rank& a, Rank& b, const std::vector<HopSpec>& route, Ways& first) {
    const auto to = static_cast<size_t>(b.id);
    if (route.empty()) first.put(to, nullptr);
    for (size_t i = 0; i < route.size(); ++i) {
      const HopSpec& h = route[i];
      Proc& x = node(h.from, a, b, false);
      Proc& y = node(h.to, a, b, true);
      Chan& ch = chan(h, x, y);
      if (i == 0) {
        first.put(to, &ch);
        continue;
      }
      Ways& next = static_cast<Forwarder&>(x).next;
      if (Chan* other = next.find(to); other && other != &ch)
        throw ConfigError("the model gives " + x.thread.name() + " two ways to rank " + std::to_string(to));
      next.put(to, &ch);
    }
  }
  Chan& chan(const HopSpec& h, Proc& x, Proc& y) {
    auto& slot = chans_[{&h, &x, &y}];
    if (slot) return *slot;
    switch (h.medium) {
      case Medium::Pool:
        slot = make_pool_chan(w_, h, x, y, pools_);
        break;
      case Medium::Ring:
        slot = make_ring_chan(w_, h, x, y, rings_);
        break;
      case Medium::Stream:
        slot = make_stream_chan(w_, h, x, y);
        streams_[{&x, &y}] = slot.get();
        break;
      case Medium::Datagram:
        slot = make_datagram_chan(w_, h, x, y);
        break;
      case Medium::Curve:
        slot = make_curve_chan(w_, h, x, y, ports_);
        break;
      case Medium::Dma:
        slot = make_dma_chan(w_, h, x, y);
        break;
    }
    fresh_.push_back(slot.get());
    return *slot;
  }

  const SimConfig& c_;
  World& w_;
  Job& job_;
  std::set<std::string> roles_;
  std::map<std::pair<std::string, size_t>, Forwarder*> forwarders_;
  std::map<Key, std::unique_ptr<Chan>> chans_;
  std::vector<Chan*> fresh_;  // those that the pair at hand needed and nobody before it
  std::map<std::pair<const Proc*, const Proc*>, Chan*> streams_;
  std::map<size_t, std::shared_ptr<void>> pools_;
  std::map<RingKey, std::shared_ptr<void>> rings_;
  std::map<std::pair<const HopSpec*, int64_t>, std::shared_ptr<void>> ports_;
};

void check(const SimConfig& c, const Trace& t) {
  if (t.ranks.size() != c.placement.size())
    throw ConfigError("the trace has " + std::to_string(t.ranks.size()) + " ranks, " + std::to_string(c.placement.size()) + " are placed");
  if (c.positions.size() < c.hosts.size()) throw ConfigError("every host needs a position");
  for (const size_t h : c.placement)
    if (h >= c.hosts.size()) throw ConfigError("rank placed on host " + std::to_string(h) + " of " + std::to_string(c.hosts.size()));
  if (!c.cores.empty() && c.cores.size() != c.placement.size())
    throw ConfigError(std::to_string(c.cores.size()) + " cores are named for " + std::to_string(c.placement.size()) + " ranks");
  for (size_t r = 0; r < c.cores.size(); ++r)
    if (c.cores[r] < 0 || c.cores[r] >= c.hosts[c.placement[r]].cores)
      throw ConfigError("rank " + std::to_string(r) + " is pinned to core " + std::to_string(c.cores[r]) + " of " +
                        std::to_string(c.hosts[c.placement[r]].cores) + " on " + c.hosts[c.placement[r]].name);
  for (const auto* route : {&c.same, &c.same_bulk, &c.remote})
    for (const HopSpec& h : *route)
      if (h.packet <= 0)
        throw ConfigError("packet size " + std::to_string(h.packet) + " B on the hop " + h.from + " to " + h.to + "; it must be at least 1 B");
  // One-sided calls that the runtime has not, before the run and not in the middle of it.
  if (!c.rma_same.there || !c.rma_remote.there)
    for (size_t r = 0; r < t.ranks.size(); ++r)
      for (const Action& a : t.ranks[r]) {
        if (a.op < Op::WinNew || a.op > Op::WinWait || a.peer == PROC_NULL) continue;
        const bool named = a.peer >= 0 && a.op != Op::WinNew && a.op != Op::WinFree;
        const bool same = named && c.placement[static_cast<size_t>(a.peer)] == c.placement[r];
        if (named ? (same ? c.rma_same : c.rma_remote).there : c.rma_same.there || c.rma_remote.there) continue;
        throw ConfigError(t.where(r, a) + ": " + action_name(a) + ": this runtime has no one-sided operations" +
                          (named ? std::string(" between ranks of ") + (same ? "one host" : "two hosts") : ""));
      }
  if (t.refused_total > 0) {
    const Remark& r = t.refused.front();
    throw ConfigError(t.files[static_cast<size_t>(r.rank)] + ":" + std::to_string(r.line) + ": " + r.action + ": " + r.reason);
  }
}

}  // namespace

namespace {

/// Ends processes at their times; remembers which deaths have happened.
class Killer {
 public:
  Killer(const SimConfig& c, World& w) : loop_(w.loop) {
    for (const auto& [name, at] : c.kills) {
      const auto p = std::find_if(w.procs.begin(), w.procs.end(), [&n = name](const auto& q) { return q->thread.name() == n; });
      if (p == w.procs.end()) throw ConfigError("there is no process '" + name + "' to kill");
      victims_.push_back({p->get(), at});
    }
    for (Victim& v : victims_) loop_.at(v.at, &Killer::on_kill, &v);
  }
  [[nodiscard]] std::string told() const {
    std::string s;
    for (const Victim& v : victims_)
      if (v.proc->thread.dead()) {
        char at[32];
        std::snprintf(at, sizeof at, "%g", to_s(v.at));
        s += (s.empty() ? "killed: " : ", ") + v.proc->thread.name() + " at " + at + " s";
      }
    return s;
  }

 private:
  struct Victim {
    Proc* proc;
    Ps at;
  };
  static void on_kill(void* p, uint64_t) { static_cast<Victim*>(p)->proc->thread.kill(); }
  Loop& loop_;
  std::deque<Victim> victims_;
};

}  // namespace

namespace {

/// Begins to record: before anything runs, so that the times of the first calls are known.
std::shared_ptr<Timeline> observe(const SimConfig& c, World& w, const Job& job) {
  auto t = std::make_shared<Timeline>(c.timeline, w.anatomy.threads(), job.ranks.size());
  for (const auto& p : w.procs) {
    Timeline::Process& row = t->processes[static_cast<size_t>(p->thread.log())];
    row.name = p->thread.name();
    row.kind = row.name.substr(0, row.name.find(' '));
    row.host = p->host.spec.name;
  }
  w.timeline = w.anatomy.timeline = t.get();
  w.anatomy.log = true;
  return t;
}

}  // namespace

SimResult simulate(const SimConfig& c, const Trace& trace) {
  check(c, trace);
  World w;
  w.rng = Rng(c.seed);
  w.unexpected_limit = c.unexpected_limit;
  w.compute_scale = c.compute_scale;
  w.memory_share = c.memory_share;
  w.anatomy.on = w.anatomy.log = c.anatomy;
  Job job(w, trace, c.kernels);
  job.rma_same = c.rma_same;
  job.rma_remote = c.rma_remote;
  w.loop.over = trace.ranks.empty();
  job.collectives = c.collectives;
  job.free_wildcards = c.free_wildcards;
  Builder builder(c, w, job);
  builder.build();
  const Killer killer(c, w);
  const std::shared_ptr<Timeline> timeline = c.timeline.limit > 0 ? observe(c, w, job) : nullptr;
  const auto profile = c.profile ? std::make_shared<CallProfile>(trace, job.ranks.size()) : nullptr;
  w.profile = profile.get();

  SimResult r;
  if (c.limit_s > 0) w.loop.limit = to_ps(c.limit_s);
  bool stuck = false;
  try {
    stuck = w.wire->run([&] { return std::any_of(w.hosts.begin(), w.hosts.end(), [](const auto& h) { return h->could_act(); }); });
    if (job.finished < static_cast<int32_t>(job.ranks.size())) {
      if (stuck) {
        r.outcome = "deadlock";
        r.why = diagnose(w, job, builder.channels(), nullptr);
        r.detail = "no process can go on" + (r.why.summary.empty() ? "" : ": " + r.why.summary);
      } else {
        r.outcome = "timeout";
        r.detail = "not finished after " + std::to_string(c.limit_s) + " simulated seconds";
      }
    }
  } catch (const Abort& a) {
    r.outcome = "aborted";
    r.why = diagnose(w, job, builder.channels(), &a);
    r.detail = a.reason + (r.why.summary.empty() ? "" : ": " + r.why.summary);
  }
  if (std::string told = killer.told(); !told.empty()) {
    // The analyst reads who died; the owner of the time saw what the library printed when it gave up, or nothing.
    if (r.outcome == "deadlock" || r.outcome == "timeout") told += "; the runtime said nothing to the job's owner";
    r.detail += (r.detail.empty() ? "" : "; ") + told;
  }
  r.failed = w.wire->failed();
  if (r.outcome != "completed" && !r.failed.empty()) r.detail += (r.detail.empty() ? "" : "; ") + r.failed;
  if (w.traffic)
    for (const Traffic::Source& s : w.traffic->sources()) r.traffic.push_back({s.frames, s.arrived, s.bytes, s.dropped, s.lost});
  r.end = w.loop.now;
  r.count = w.count;
  r.events = w.loop.executed();
  r.marks = job.marks;
  r.collectives = job.collectives.used();
  for (const Rank* k : job.ranks) {
    const Ps end = k->finished ? k->end : w.loop.now;
    r.time = std::max(r.time, end);
    r.ranks.push_back(
        {k->id, k->host.spec.name, end, k->mpi, k->compute, k->thread.cpu_time(), k->sends, k->receives, k->bytes_sent, k->bytes_received});
    if (r.outcome != "completed" && !k->finished && k->now_at && !k->thread.dead())
      r.waits.push_back({k->id, k->now_at->line, trace.files[static_cast<size_t>(k->id)], op_name(k->now_at->op), k->waits_for()});
  }
  r.profile = profile;
  if (timeline) {
    for (const auto& h : w.hosts)
      for (const auto& t : h->threads()) t->close_log();
    for (const Rank* k : job.ranks)
      if (!k->finished && k->now_at) timeline->end_call(k->id, *k->now_at, w.loop.now, true);
    timeline->finish();
    r.timeline = timeline;
  }
  if (c.anatomy && r.outcome == "completed") {
    Ps from = -1, to = -1;
    for (const MarkTime& m : job.marks) {
      if (m.rank != c.anatomy_rank) continue;
      const std::string& l = trace.labels[static_cast<size_t>(m.label)];
      if (l == c.anatomy_from) from = m.time;
      if (l == c.anatomy_to) to = m.time;
    }
    if (from < 0 || to < from) throw ConfigError("the marks '" + c.anatomy_from + "' and '" + c.anatomy_to + "' are not in the trace");
    r.anatomy_total = to - from;
    r.anatomy = w.anatomy.split(job.ranks[static_cast<size_t>(c.anatomy_rank)]->thread.log(), from, to);
  }
  return r;
}

}  // namespace retrompi
