#include "diagnosis/wait_graph.hpp"

#include <set>

#include "channel/forwarder.hpp"

namespace retrompi {

namespace {
constexpr size_t kCycleShown = 8;     // of a cycle on one line
constexpr size_t kAlternatives = 64;  // of a receive from any source that are followed
}  // namespace

WaitGraph::WaitGraph(RunView& view) : v_(view) {
  for (const auto& p : v_.world.procs) {
    Wait w = wait_of(*p);
    if (!w.edges.empty()) waits_.emplace(p.get(), std::move(w));
  }
}

WaitGraph::Wait WaitGraph::wait_of(const Proc& p) {
  Wait w;
  const Rank* r = v_.as_rank(&p);
  if (v_.gone(p, r)) return w;
  if (const auto it = v_.full.find(&p); it != v_.full.end()) {
    const auto res = it->second->resource();
    w.any = true;
    w.what = "room in " + res->name;
    std::set<int32_t> seen;
    for (const Occupant& o : res->used)
      if (seen.insert(o.m->dst).second) w.edges.push_back({&v_.rank(o.m->dst), ""});
    if (w.edges.empty()) w.edges.push_back({&it->second->to, ""});
    return w;
  }
  if (r && r->now_at) of_rank(*r, w);
  return w;
}

void WaitGraph::of_rank(const Rank& r, Wait& w) {
  const Action& a = *r.now_at;
  const auto* several = a.get_if<action::SeveralRequests>();
  const bool recorded = several && several->list >= 0 && a.told();
  w.any = (a.op == Op::Waitany || a.op == Op::Waitsome) && !recorded;
  const bool itself = a.kind() == ActionKind::PointToPoint && !is_persistent(a.op);  // its name implies the direction
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
        for (const Rank* h : v_.job.ranks)
          if (h != &r && h->one_sided.holds_lock(a.get<action::WindowSync>().window, x.rank))
            w.edges.push_back({h, "the lock on the window of rank " + std::to_string(x.rank)});
    }
  if (w.edges.empty() && is_collective_call(a))
    for (const Rank* b : v_.absent(r)) w.edges.push_back({b, "for rank " + std::to_string(b->id)});
}

void WaitGraph::in_collective(const Rank& r, const Awaited& x, Wait& w) {
  if (x.rank < 0) return;
  const int32_t ctx = collective_context(x.comm);
  const Proc* by = nullptr;
  for (const Message& m : v_.to(r.id))
    if (m.ctx == ctx && !m.envelope_known && m.src == x.rank) by = obstacle(m.src, m.dst);
  for (const Message& m : v_.from(r.id))
    if (m.ctx == ctx && !m.envelope_known && m.dst == x.rank) by = obstacle(m.src, m.dst);
  w.edges.push_back({by ? by : &v_.rank(x.rank), "with rank " + std::to_string(x.rank)});
}

void WaitGraph::taken(const Rank& r, const Awaited& x, const char* how, Wait& w) {
  for (const Message& m : v_.from(r.id))
    if (m.dst == x.rank && m.tag == x.tag && m.ctx == program_context(x.comm) && !m.send_complete) return send(m, how, w);
  w.edges.push_back({&v_.rank(x.rank), how + std::to_string(x.rank) + " " + tag_name(x.tag) + " " + std::to_string(x.bytes) + " B"});
}

void WaitGraph::receive(const Rank& r, int32_t peer, int32_t tag, int32_t ctx, const char* how, Wait& w) {
  const std::string about = of_library(ctx) ? "" : " " + tag_name(tag);
  for (const Message& m : v_.to(r.id))
    if (!m.envelope_known && m.ctx == ctx && (peer == ANY_SOURCE || peer == m.src) && (tag == ANY_TAG || tag == m.tag)) return arriving(m, how, w);
  if (peer != ANY_SOURCE) {
    w.edges.push_back({&v_.rank(peer), how + std::to_string(peer) + about});
    return;
  }
  w.any = true;
  const auto all = v_.members(comm_of(ctx));
  w.of = all.size() - 1;
  for (const int32_t m : all)
    if (m != r.id && w.edges.size() < kAlternatives) w.edges.push_back({&v_.rank(m), std::string(how) + "any source" + about});
}

void WaitGraph::arriving(const Message& m, const char* how, Wait& w) {
  const std::string what = how + std::to_string(m.src) + (of_library(m.ctx) ? "" : " " + tag_name(m.tag));
  const Proc* by = obstacle(m.src, m.dst);
  w.edges.push_back({by ? by : &v_.rank(m.src), what + (by       ? ", sent at " + v_.place(v_.rank(m.src), m.line) + " and not arrived"
                                                        : m.lost ? ", sent at " + v_.place(v_.rank(m.src), m.line) + " and lost on the wire"
                                                                 : "")});
}

void WaitGraph::send(const Message& m, const char* how, Wait& w) {
  if (m.dst == m.src) return;
  const std::string what = how + std::to_string(m.dst) + (of_library(m.ctx) ? "" : " " + tag_name(m.tag)) + " " + std::to_string(m.bytes) + " B";
  const Proc* by = m.envelope_known ? nullptr : obstacle(m.src, m.dst);
  w.edges.push_back({by ? by : &v_.rank(m.dst), what});
}

const Proc* WaitGraph::obstacle(int32_t src, int32_t dst) const {
  const Chan* c = v_.rank(src).out.find(static_cast<size_t>(dst));
  for (int hops = 0; c && hops < 8; ++hops) {
    if (&c->to == &v_.rank(dst)) return nullptr;
    if (c->to.thread.dead() || v_.full.contains(&c->to)) return &c->to;
    const auto* f = dynamic_cast<const Forwarder*>(&c->to);
    c = f ? f->next.find(static_cast<size_t>(dst)) : nullptr;
  }
  return nullptr;
}

WaitGraph::Path WaitGraph::search(bool alternatives) const {
  std::map<const Proc*, int> colour;  // 1: on the path, 2: done
  for (const auto& start : v_.world.procs) {
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

void WaitGraph::describe_cycle(Diagnosis& d) const {
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
    if (path.size() > kCycleShown && i == kCycleShown / 2) {
      s += "… " + std::to_string(path.size() - kCycleShown) + " more … -> ";
      i = path.size() - kCycleShown / 2;
    }
    s += node(*path[i].first, *path[i].second) + " -> ";
  }
  d.summary = s + last->thread.name() + (d.closed ? "" : ", which " + v_.fate(*last));
  if (const size_t others = waits_.size() - path.size(); others > 0)
    d.told.push_back(std::to_string(others) + (others == 1 ? " other process waits" : " other processes wait") + " beside or behind them");
}

WaitGraph::Path WaitGraph::chain(const Proc*& last) const {
  std::map<const Proc*, std::vector<const Proc*>> behind;
  for (const auto& [p, w] : waits_)
    for (const Edge& e : w.edges) behind[e.to].push_back(p);
  size_t most = 0;
  for (const auto& p : v_.world.procs) {
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
  // From the first process of the job that reaches it, by the shortest path.
  if (!last) return {};
  std::map<const Proc*, std::pair<const Proc*, const Edge*>> towards;
  std::vector<const Proc*> wave{last};
  const Proc* far = last;
  while (!wave.empty()) {
    std::vector<const Proc*> next;
    for (const Proc* q : wave)
      for (const auto& p : v_.world.procs) {
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

std::string WaitGraph::doing(const Proc& p, const Edge& e) const {
  const Wait& w = waits_.at(&p);
  const Rank* r = v_.as_rank(&p);
  std::string s = r ? v_.place(*r, r->now_at->line) + " " + op_name(r->now_at->op) : "";
  const std::string& what = w.what.empty() ? e.what : w.what;
  if (!what.empty()) s += (s.empty() ? "waits for " : w.what.empty() ? " " : " waits for ") + what;
  if (const size_t n = alternatives(w); n > 1) s += ", any of " + std::to_string(n);
  return s;
}

Row WaitGraph::row(const Proc& p, const Edge& e) const {
  const Rank* r = v_.as_rank(&p);
  const Wait& w = waits_.at(&p);
  return {{"process", p.thread.name()},
          {"file", r ? v_.trace.files[static_cast<size_t>(r->id)] : std::string()},
          {"line", int64_t{r ? r->now_at->line : 0}},
          {"action", std::string(r ? op_name(r->now_at->op) : "")},
          {"waits_for", e.to->thread.name()},
          {"what", w.what.empty() ? e.what : w.what},
          {"alternatives", static_cast<int64_t>(alternatives(w))}};
}

}  // namespace retrompi
