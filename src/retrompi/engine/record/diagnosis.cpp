#include "record/diagnosis.hpp"

#include <cstdio>
#include <map>
#include <set>

namespace retrompi {

namespace {

constexpr size_t kRows = 20;          // of a table
constexpr size_t kShown = 8;          // of a cycle on one line
constexpr size_t kUnreceived = 50;    // messages
constexpr size_t kAlternatives = 64;  // of a receive from any source that are followed

/// Over all of its communicator.
bool is_collective(const Action& a) {
  if (a.op == Op::CommNew) {
    const CommHow how = a.get<action::NewComm>().how;
    return how != CommHow::CreateGroup && how != CommHow::IntercommCreate;
  }
  return (a.op >= Op::Barrier && a.op <= Op::NeighborAlltoallw) || a.op == Op::WinNew || a.op == Op::WinFree;
}
/// Sent by the library for a collective or a window, not by the program.
bool of_library(int32_t ctx) { return ctx < 0 || ctx % 2 != 0; }
int32_t comm_of(int32_t ctx) { return ctx < 0 ? 0 : ctx / 2; }
std::string tag_name(int32_t t) { return t == ANY_TAG ? "any tag" : "tag " + std::to_string(t); }
std::string seconds(Ps t) {
  char s[32];
  std::snprintf(s, sizeof s, "%.6g s", to_s(t));
  return s;
}

}  // namespace

/// Looks into ranks, processes and channels of a run that has ended.
class DeadlockAnalysis {
 public:
  DeadlockAnalysis(const World& w, const Job& job, const std::vector<const Chan*>& chans) : w_(w), job_(job), t_(job.trace), chans_(chans) {
    for (const Rank* r : job.ranks) rank_of_[r] = r;
    to_.resize(job.ranks.size());
    from_.resize(job.ranks.size());
    for (const Message& m : job_.messages())
      if (!(m.delivered && m.settled) && m.line > 0) {
        to_[static_cast<size_t>(m.dst)].emplace_back(m);
        from_[static_cast<size_t>(m.src)].emplace_back(m);
      }
    for (const Chan* c : chans)
      if (c->full()) {  // of several, always the same: the table of channels has no order of its own
        const Chan*& kept = full_[&c->from];
        if (!kept || c->to.thread.log() < kept->to.thread.log()) kept = c;
      }
  }

  Diagnosis stuck() {
    Diagnosis d;
    for (const auto& p : w_.procs) {
      Wait w = wait_of(*p);
      if (!w.edges.empty()) waits_.emplace(p.get(), std::move(w));
    }
    cycle(d);
    collectives(d);
    near_misses(d);
    lost(d);
    unreceived(d);
    for (const auto& p : w_.procs)
      if (const auto it = full_.find(p.get()); it != full_.end()) {
        fill(d, *it->second->resource());
        break;
      }
    return d;
  }

  void fill(Diagnosis& d, const Resource& r) {
    struct Sum {
      int64_t held = 0, buffers = 0;
      Ps since = kNever;
    };
    std::map<const Message*, Sum> by_message;
    struct Pair {
      int64_t messages = 0, bytes = 0, held = 0;
    };
    std::map<std::pair<int32_t, int32_t>, Pair> by_pair;
    for (const Occupant& o : r.used) {
      Sum& s = by_message[o.m];
      s.held += o.bytes;
      ++s.buffers;
      s.since = std::min(s.since, o.since);
    }
    std::vector<std::pair<const Message*, Sum>> all(by_message.begin(), by_message.end());
    int64_t held = 0;
    for (const auto& [m, s] : all) {
      Pair& p = by_pair[{m->src, m->dst}];
      ++p.messages;
      p.bytes += m->bytes;
      p.held += s.held;
      held += s.held;
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      const Message &x = *a.first, &y = *b.first;
      return std::tuple(-a.second.held, a.second.since, x.src, x.dst, x.line, x.tag) <
             std::tuple(-b.second.held, b.second.since, y.src, y.dst, y.line, y.tag);
    });
    std::vector<std::pair<std::pair<int32_t, int32_t>, Pair>> pairs(by_pair.begin(), by_pair.end());
    std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second.held > b.second.held; });
    d.resource = r.name;
    d.held_total = static_cast<int64_t>(all.size());
    for (size_t i = 0; i < std::min(all.size(), kRows); ++i) {
      const auto& [m, s] = all[i];
      Row row = {{"source", int64_t{m->src}}, {"destination", int64_t{m->dst}}};
      add_tag(row, *m);
      row.insert(row.end(), {{"bytes", m->bytes},
                             {"held", s.held},
                             {"unit", std::string(r.unit)},
                             {"buffers", s.buffers},
                             {"held_s", to_s(w_.loop.now - s.since)},
                             {"file", t_.files[static_cast<size_t>(m->src)]},
                             {"line", int64_t{m->line}}});
      d.held.push_back(std::move(row));
    }
    for (size_t i = 0; i < std::min(pairs.size(), kRows); ++i)
      d.pairs.push_back({{"source", int64_t{pairs[i].first.first}},
                         {"destination", int64_t{pairs[i].first.second}},
                         {"messages", pairs[i].second.messages},
                         {"bytes", pairs[i].second.bytes},
                         {"held", pairs[i].second.held},
                         {"unit", std::string(r.unit)}});
    std::string s = std::to_string(all.size()) + (all.size() == 1 ? " message takes " : " messages take ") + std::to_string(held) + " of the " +
                    std::to_string(r.total) + " " + r.unit + " of " + r.name;
    if (!all.empty()) {
      const auto& [m, sum] = all.front();
      s += "; the largest: " + describe(*m) + ", held for " + seconds(w_.loop.now - sum.since);
      const auto& [pair, p] = pairs.front();
      if (all.size() > 1)
        s += "; most are of rank " + std::to_string(pair.first) + " to rank " + std::to_string(pair.second) + ": " + std::to_string(p.messages) +
             " with " + std::to_string(p.held) + " " + r.unit;
    }
    d.told.push_back(std::move(s));
  }

  [[nodiscard]] Resource unexpected(const Rank& r) const {
    Resource out{
        .name = "the buffer of rank " + std::to_string(r.id) + " for unexpected messages", .total = job_.unexpected_limit, .unit = "B", .used = {}};
    for (const Message* m : r.receiver.unexpected())
      if (m->stashed > 0) out.used.push_back({m, m->stashed, m->kept_at});
    return out;
  }

 private:
  using Messages = std::vector<std::reference_wrapper<const Message>>;
  struct Edge {
    const Proc* to;
    std::string what;
  };
  struct Wait {
    bool any = false;  // one of the edges would be enough
    size_t of = 0;     // how many there are, where not all are kept
    std::vector<Edge> edges;
    std::string what;  // when it is the same for all edges
  };

  [[nodiscard]] const Rank* as_rank(const Proc* p) const {
    const auto it = rank_of_.find(p);
    return it == rank_of_.end() ? nullptr : it->second;
  }
  [[nodiscard]] const Rank& rank(int32_t r) const { return *job_.ranks[static_cast<size_t>(r)]; }
  [[nodiscard]] std::string place(const Rank& r, uint32_t line) const { return t_.files[static_cast<size_t>(r.id)] + ":" + std::to_string(line); }
  [[nodiscard]] std::string describe(const Message& m) const {
    std::string s = "rank " + std::to_string(m.src) + " to rank " + std::to_string(m.dst) + ", ";
    s += of_library(m.ctx) ? "of a collective" : tag_name(m.tag);
    return s + ", " + std::to_string(m.bytes) + " B, sent at " + place(rank(m.src), m.line);
  }
  void add_tag(Row& row, const Message& m) const {
    row.push_back({"tag", int64_t{m.tag}});
    row.push_back({"comm", comm_id(m.ctx)});
    row.push_back({"collective", of_library(m.ctx)});
  }
  [[nodiscard]] int64_t comm_id(int32_t ctx) const {
    const auto i = static_cast<size_t>(comm_of(ctx));
    return i < t_.comms.size() ? t_.comms[i].id : 0;
  }
  [[nodiscard]] std::vector<int32_t> members(int32_t comm) const {
    const auto i = static_cast<size_t>(comm);
    if (comm > 0 && i < t_.comms.size()) {
      std::vector<int32_t> all = t_.comms[i].group;
      all.insert(all.end(), t_.comms[i].remote.begin(), t_.comms[i].remote.end());
      return all;
    }
    std::vector<int32_t> all(job_.ranks.size());
    for (size_t r = 0; r < all.size(); ++r) all[r] = static_cast<int32_t>(r);
    return all;
  }
  [[nodiscard]] static bool gone(const Proc& p, const Rank* r) { return p.thread.dead() || (r && r->finished); }

  // ---- who waits for whom

  Wait wait_of(const Proc& p) {
    Wait w;
    const Rank* r = as_rank(&p);
    if (gone(p, r)) return w;
    if (const auto it = full_.find(&p); it != full_.end()) {
      const auto res = it->second->resource();
      w.any = true;
      w.what = "room in " + res->name;
      std::set<int32_t> seen;
      for (const Occupant& o : res->used)
        if (seen.insert(o.m->dst).second) w.edges.push_back({&rank(o.m->dst), ""});
      if (w.edges.empty()) w.edges.push_back({&it->second->to, ""});
      return w;
    }
    if (r && r->now_at) of_rank(*r, w);
    return w;
  }

  void of_rank(const Rank& r, Wait& w) {
    const Action& a = *r.now_at;
    const auto* several = a.get_if<action::SeveralRequests>();
    const bool recorded = several && several->list >= 0 && a.told();
    w.any = (a.op == Op::Waitany || a.op == Op::Waitsome) && !recorded;
    const bool itself = (a.op >= Op::Send && a.op <= Op::Irecv) || a.op == Op::Probe || a.op == Op::Iprobe;  // its name says which way
    for (const Awaited& x : awaits(r)) switch (x.what) {
        case Awaited::Message:
          receive(r, x.rank, x.tag, program_context(x.comm), itself ? "from " : "recv from ", w);
          break;
        case Awaited::Receiver:
          taken(r, x, itself ? "to " : "send to ", w);
          break;
        case Awaited::Collective:
          in_collective(r, x, w);
          break;
        case Awaited::Lock:
          for (const Rank* h : job_.ranks)
            if (h != &r && h->one_sided.holds_lock(a.get<action::WindowSync>().window, x.rank))
              w.edges.push_back({h, "the lock on the window of rank " + std::to_string(x.rank)});
      }
    if (w.edges.empty() && is_collective(a))
      for (const Rank* b : absent(r)) w.edges.push_back({b, "for rank " + std::to_string(b->id)});
  }

  void in_collective(const Rank& r, const Awaited& x, Wait& w) {
    if (x.rank < 0) return;
    const int32_t ctx = collective_context(x.comm);
    const Proc* by = nullptr;
    for (const Message& m : to(r.id))
      if (m.ctx == ctx && !m.seen && m.src == x.rank) by = obstacle(m.src, m.dst);
    for (const Message& m : from(r.id))
      if (m.ctx == ctx && !m.seen && m.dst == x.rank) by = obstacle(m.src, m.dst);
    w.edges.push_back({by ? by : &rank(x.rank), "with rank " + std::to_string(x.rank)});
  }
  void taken(const Rank& r, const Awaited& x, const char* how, Wait& w) {
    for (const Message& m : from(r.id))
      if (m.dst == x.rank && m.tag == x.tag && m.ctx == program_context(x.comm) && !m.settled) return send(m, how, w);
    w.edges.push_back({&rank(x.rank), how + std::to_string(x.rank) + " " + tag_name(x.tag) + " " + std::to_string(x.bytes) + " B"});
  }
  void receive(const Rank& r, int32_t peer, int32_t tag, int32_t ctx, const char* how, Wait& w) {
    const std::string about = of_library(ctx) ? "" : " " + tag_name(tag);
    for (const Message& m : to(r.id))
      if (!m.seen && m.ctx == ctx && (peer == ANY_SOURCE || peer == m.src) && (tag == ANY_TAG || tag == m.tag)) return arriving(m, how, w);
    if (peer != ANY_SOURCE) {
      w.edges.push_back({&rank(peer), how + std::to_string(peer) + about});
      return;
    }
    w.any = true;
    const auto all = members(comm_of(ctx));
    w.of = all.size() - 1;
    for (const int32_t m : all)
      if (m != r.id && w.edges.size() < kAlternatives) w.edges.push_back({&rank(m), std::string(how) + "any source" + about});
  }
  /// A message that has been sent and is not all there: whoever holds it up on its way, else its sender.
  void arriving(const Message& m, const char* how, Wait& w) {
    const std::string what = how + std::to_string(m.src) + (of_library(m.ctx) ? "" : " " + tag_name(m.tag));
    const Proc* by = obstacle(m.src, m.dst);
    w.edges.push_back({by ? by : &rank(m.src), what + (by       ? ", sent at " + place(rank(m.src), m.line) + " and not arrived"
                                                       : m.lost ? ", sent at " + place(rank(m.src), m.line) + " and lost on the wire"
                                                                : "")});
  }
  void send(const Message& m, const char* how, Wait& w) {
    if (m.dst == m.src) return;
    const std::string what = how + std::to_string(m.dst) + (of_library(m.ctx) ? "" : " " + tag_name(m.tag)) + " " + std::to_string(m.bytes) + " B";
    const Proc* by = m.seen ? nullptr : obstacle(m.src, m.dst);
    w.edges.push_back({by ? by : &rank(m.dst), what});
  }
  /// The first process between two ranks that is dead or has no room.
  [[nodiscard]] const Proc* obstacle(int32_t src, int32_t dst) const {
    const Chan* c = rank(src).out.find(static_cast<size_t>(dst));
    for (int hops = 0; c && hops < 8; ++hops) {
      if (&c->to == &rank(dst)) return nullptr;
      if (c->to.thread.dead() || full_.contains(&c->to)) return &c->to;
      const auto* f = dynamic_cast<const Forwarder*>(&c->to);
      c = f ? f->next.find(static_cast<size_t>(dst)) : nullptr;
    }
    return nullptr;
  }
  [[nodiscard]] const Messages& to(int32_t r) const { return to_[static_cast<size_t>(r)]; }
  [[nodiscard]] const Messages& from(int32_t r) const { return from_[static_cast<size_t>(r)]; }

  // ---- cycles

  using Path = std::vector<std::pair<const Proc*, const Edge*>>;

  /// A cycle of edges, by depth-first search from every process in turn; without `alternatives` through necessary edges only.
  [[nodiscard]] Path search(bool alternatives) const {
    std::map<const Proc*, int> colour;  // 1: on the path, 2: done
    for (const auto& start : w_.procs) {
      struct Frame {
        const Proc* p;
        size_t next;
      };
      std::vector<Frame> stack;
      if (!waits_.contains(start.get()) || colour[start.get()] != 0) continue;
      stack.push_back({start.get(), 0});
      colour[start.get()] = 1;
      while (!stack.empty()) {
        Frame& f = stack.back();
        const Wait& w = waits_.at(f.p);
        if (f.next == w.edges.size() || (w.any && w.edges.size() > 1 && !alternatives)) {
          colour[f.p] = 2;
          stack.pop_back();
          continue;
        }
        const Proc* to = w.edges[f.next++].to;
        if (!waits_.contains(to)) continue;
        if (colour[to] == 1) {
          Path path;
          auto it = stack.begin();
          while (it->p != to) ++it;
          for (; it != stack.end(); ++it) path.emplace_back(it->p, &waits_.at(it->p).edges[it->next - 1]);
          return path;
        }
        if (colour[to] == 0) {
          colour[to] = 1;
          stack.push_back({to, 0});
        }
      }
    }
    return {};
  }

  void cycle(Diagnosis& d) const {
    Path path = search(false);
    if (path.empty()) path = search(true);
    const Proc* last = nullptr;
    if (path.empty()) {
      path = chain(last);
    } else {
      d.closed = true;
      last = path.front().first;
    }
    if (path.empty()) return;
    for (const auto& [p, e] : path) d.cycle.push_back(row(*p, *e));
    std::string s = d.closed ? "wait-for cycle: " : "";
    for (size_t i = 0; i < path.size(); ++i) {
      if (path.size() > kShown && i == kShown / 2) {
        s += "… " + std::to_string(path.size() - kShown) + " more … -> ";
        i = path.size() - kShown / 2;
      }
      s += node(*path[i].first, *path[i].second) + " -> ";
    }
    d.summary = s + last->thread.name() + (d.closed ? "" : ", which " + fate(*last));
    if (const size_t others = waits_.size() - path.size(); others > 0)
      d.told.push_back(std::to_string(others) + (others == 1 ? " other process waits" : " other processes wait") + " beside or behind them");
  }
  /// Without a cycle all waiting ends at somebody who does not wait: the one behind whom most others wait, and a chain to him.
  [[nodiscard]] Path chain(const Proc*& last) const {
    std::map<const Proc*, std::vector<const Proc*>> behind;
    for (const auto& [p, w] : waits_)
      for (const Edge& e : w.edges) behind[e.to].push_back(p);
    size_t most = 0;
    for (const auto& p : w_.procs) {
      if (waits_.contains(p.get()) || !behind.contains(p.get())) continue;
      std::set<const Proc*> all{p.get()};
      std::vector<const Proc*> todo{p.get()};
      while (!todo.empty()) {
        const Proc* q = todo.back();
        todo.pop_back();
        if (const auto it = behind.find(q); it != behind.end())
          for (const Proc* b : it->second)
            if (all.insert(b).second) todo.push_back(b);
      }
      if (all.size() > most) {
        most = all.size();
        last = p.get();
      }
    }
    // From the first process of the job that reaches it, by the shortest way.
    if (!last) return {};
    std::map<const Proc*, std::pair<const Proc*, const Edge*>> towards;
    std::vector<const Proc*> wave{last};
    const Proc* far = last;
    while (!wave.empty()) {
      std::vector<const Proc*> next;
      for (const Proc* q : wave)
        for (const auto& p : w_.procs) {
          const auto it = waits_.find(p.get());
          if (it == waits_.end() || towards.contains(p.get())) continue;
          const auto e = std::find_if(it->second.edges.begin(), it->second.edges.end(), [q](const Edge& x) { return x.to == q; });
          if (e == it->second.edges.end()) continue;
          towards[p.get()] = {q, &*e};
          next.push_back(p.get());
        }
      if (!next.empty()) far = next.front();
      wave = std::move(next);
    }
    Path path;
    for (const Proc* p = far; p != last; p = towards.at(p).first) path.emplace_back(p, towards.at(p).second);
    return path;
  }
  [[nodiscard]] std::string doing(const Proc& p, const Edge& e) const {
    const Wait& w = waits_.at(&p);
    const Rank* r = as_rank(&p);
    std::string s = r ? place(*r, r->now_at->line) + " " + op_name(r->now_at->op) : "";
    const std::string& what = w.what.empty() ? e.what : w.what;
    if (!what.empty()) s += (s.empty() ? "waits for " : w.what.empty() ? " " : " waits for ") + what;
    if (const size_t n = alternatives(w); n > 1) s += ", any of " + std::to_string(n);
    return s;
  }
  [[nodiscard]] static size_t alternatives(const Wait& w) { return w.any ? std::max(w.of, w.edges.size()) : 1; }
  [[nodiscard]] std::string node(const Proc& p, const Edge& e) const { return p.thread.name() + " (" + doing(p, e) + ")"; }
  [[nodiscard]] Row row(const Proc& p, const Edge& e) const {
    const Rank* r = as_rank(&p);
    const Wait& w = waits_.at(&p);
    return {{"process", p.thread.name()},
            {"file", r ? t_.files[static_cast<size_t>(r->id)] : std::string()},
            {"line", int64_t{r ? r->now_at->line : 0}},
            {"action", std::string(r ? op_name(r->now_at->op) : "")},
            {"waits_for", e.to->thread.name()},
            {"what", w.what.empty() ? e.what : w.what},
            {"alternatives", static_cast<int64_t>(alternatives(w))}};
  }
  [[nodiscard]] std::string fate(const Proc& p) const {
    const Rank* r = as_rank(&p);
    if (p.thread.dead()) return "was killed";
    if (r && r->finished) return "has finished";
    if (r && r->now_at) return "is at " + place(*r, r->now_at->line) + " in " + op_name(r->now_at->op);
    return "waits for nobody";
  }

  // ---- collectives

  /// Who has not come to the collective in which `r` waits.
  [[nodiscard]] std::vector<const Rank*> absent(const Rank& r) {
    const int32_t comm = r.now_at->comm;
    const size_t mine = count(r, comm);
    std::vector<const Rank*> out;
    for (const int32_t m : members(comm))
      if (count(rank(m), comm) < mine) out.push_back(&rank(m));
    return out;
  }
  /// How many collectives of a communicator a rank has begun. A trace in which they differ in kind is refused when it is read.
  size_t count(const Rank& r, int32_t comm) {
    const auto [it, fresh] = begun_.try_emplace({r.id, comm});
    if (!fresh) return it->second;
    for (const Action& a : t_.ranks[static_cast<size_t>(r.id)]) {
      it->second += is_collective(a) && a.comm == comm;
      if (r.now_at && a.line == r.now_at->line) break;
    }
    return it->second;
  }
  void collectives(Diagnosis& d) {
    std::set<std::pair<int32_t, size_t>> told;  // communicator, number: all who wait in one say the same
    for (const Rank* r : job_.ranks) {
      if (gone(*r, r) || !r->now_at || !is_collective(*r->now_at)) continue;
      const Action& a = *r->now_at;
      if (!told.emplace(a.comm, count(*r, a.comm)).second) continue;
      size_t missing = 0;
      std::string first;
      for (const Rank* b : absent(*r)) {
        const std::string where = fate(*b);
        if (++missing <= 3) first += (first.empty() ? "" : "; ") + b->thread.name() + " " + where;
        const uint32_t line = b->now_at ? b->now_at->line : 0;
        if (d.collectives.size() < kUnreceived)
          d.collectives.push_back({{"collective", std::string(op_name(a.op))},
                                   {"comm", comm_id(program_context(a.comm))},
                                   {"file", t_.files[static_cast<size_t>(r->id)]},
                                   {"line", int64_t{a.line}},
                                   {"rank", int64_t{b->id}},
                                   {"instead", where},
                                   {"instead_file", line ? t_.files[static_cast<size_t>(b->id)] : std::string()},
                                   {"instead_line", int64_t{line}}});
      }
      if (missing > 0)
        d.told.push_back(std::string(op_name(a.op)) + " (" + place(*r, a.line) + "): " + first +
                         (missing > 3 ? " and " + std::to_string(missing - 3) + " more ranks" : ""));
    }
  }

  // ---- messages and receives that do not meet

  void near_misses(Diagnosis& d) const {
    for (const Rank* r : job_.ranks) {
      if (gone(*r, r) || !waits_.contains(r)) continue;
      std::vector<const Request*> open(r->receiver.posted().begin(), r->receiver.posted().end());
      Request probe;
      if (r->now_at->op == Op::Probe) {
        probe.kind = Request::Recv;
        const auto& x = r->now_at->get<action::PointToPoint>();
        probe.peer = x.peer, probe.tag = x.tag, probe.ctx = program_context(r->now_at->comm), probe.line = r->now_at->line;
        open.push_back(&probe);
      }
      for (const Message& m : to(r->id)) {
        if (m.rreq) continue;
        for (const Request* q : open) {
          if (of_library(q->ctx) || of_library(m.ctx)) continue;
          const bool source = q->peer == ANY_SOURCE || q->peer == m.src, tag = q->tag == ANY_TAG || q->tag == m.tag, comm = q->ctx == m.ctx;
          const int wrong = !source + !tag + !comm;
          if (wrong != 1) continue;
          const char* why = !tag ? "tag" : !comm ? "communicator" : "source";
          if (d.near_misses.size() >= kUnreceived) return;
          d.near_misses.push_back({{"rank", int64_t{r->id}},
                                   {"file", t_.files[static_cast<size_t>(r->id)]},
                                   {"line", int64_t{q->line}},
                                   {"wants_source", int64_t{q->peer}},
                                   {"wants_tag", int64_t{q->tag}},
                                   {"wants_comm", comm_id(q->ctx)},
                                   {"source", int64_t{m.src}},
                                   {"tag", int64_t{m.tag}},
                                   {"comm", comm_id(m.ctx)},
                                   {"bytes", m.bytes},
                                   {"wants_bytes", q->bytes},
                                   {"send_file", t_.files[static_cast<size_t>(m.src)]},
                                   {"send_line", int64_t{m.line}},
                                   {"differs", std::string(why)}});
          if (d.near_misses.size() > 3) continue;
          std::string has = "rank " + std::to_string(m.src) + " has sent " + tag_name(m.tag);
          if (!comm) has += " on communicator " + std::to_string(comm_id(m.ctx));
          const std::string from = q->peer == ANY_SOURCE ? "any source" : "rank " + std::to_string(q->peer);
          d.told.push_back("near miss: rank " + std::to_string(r->id) + " wants " + tag_name(q->tag) + " from " + from +
                           (comm ? "" : " on communicator " + std::to_string(comm_id(q->ctx))) + " (" + place(*r, q->line) + "), " + has + " (" +
                           place(rank(m.src), m.line) + ", " + std::to_string(m.bytes) + " B)");
        }
      }
    }
  }
  void lost(Diagnosis& d) const {
    std::vector<const Message*> all;
    for (const auto& mine : to_)
      for (const Message& m : mine)
        if (m.lost && !m.delivered) all.push_back(&m);
    if (all.empty()) return;
    const Message& oldest = **std::min_element(
        all.begin(), all.end(), [](const Message* a, const Message* b) { return std::pair(a->at, a->src) < std::pair(b->at, b->src); });
    const bool one = all.size() == 1;
    d.told.push_back(std::to_string(all.size()) + (one ? " message was" : " messages were") + " lost on the wire and nobody sends " +
                     (one ? "it" : "them") + " again; the oldest: " + describe(oldest));
  }
  void unreceived(Diagnosis& d) const {
    Messages all;
    for (const auto& mine : to_)
      for (const Message& m : mine)
        if (!m.delivered && !m.rreq) all.emplace_back(m);
    std::stable_sort(all.begin(), all.end(), [](const Message& a, const Message& b) { return std::pair(a.at, a.src) < std::pair(b.at, b.src); });
    d.unreceived_total = static_cast<int64_t>(all.size());
    for (const Message& m : all) {
      if (d.unreceived.size() >= kUnreceived) break;
      Row row = {{"source", int64_t{m.src}}, {"destination", int64_t{m.dst}}};
      add_tag(row, m);
      row.insert(row.end(), {{"bytes", m.bytes},
                             {"sent_s", to_s(m.at)},
                             {"where", std::string(m.lost   ? "lost on the wire"
                                                   : m.seen ? "at its destination"
                                                            : "on its way")},
                             {"file", t_.files[static_cast<size_t>(m.src)]},
                             {"line", int64_t{m.line}}});
      d.unreceived.push_back(std::move(row));
    }
    if (!all.empty())
      d.told.push_back(std::to_string(all.size()) + (all.size() == 1 ? " message was" : " messages were") +
                       " sent and not received; the oldest: " + describe(all.front()));
  }

  const World& w_;
  const Job& job_;
  const Trace& t_;
  const std::vector<const Chan*>& chans_;
  std::map<const Proc*, const Rank*> rank_of_;
  std::map<const Proc*, const Chan*> full_;  // who waits for room, and where
  std::map<const Proc*, Wait> waits_;
  std::vector<Messages> to_, from_;                      // by rank: neither delivered nor forgotten by the sender
  std::map<std::pair<int32_t, int32_t>, size_t> begun_;  // rank, communicator -> collectives
};

Diagnosis diagnose(const World& world, const Job& job, const std::vector<const Chan*>& chans, const Abort* end) {
  DeadlockAnalysis q(world, job, chans);
  if (!end) return q.stuck();
  Diagnosis d;
  if (end->full) {
    if (const auto r = end->full->resource()) q.fill(d, *r);
  } else if (end->overflow) {
    q.fill(d, q.unexpected(*end->overflow));
  }
  if (!d.told.empty()) d.summary = d.told.front();
  d.told.clear();
  return d;
}

}  // namespace retrompi
