#include "diagnosis/diagnosis.hpp"

#include <cstdio>
#include <map>
#include <set>

#include "diagnosis/run_view.hpp"
#include "diagnosis/wait_graph.hpp"

namespace retrompi {

namespace {

constexpr size_t kRows = 20;        // of a table
constexpr size_t kUnreceived = 50;  // messages

std::string seconds(Ps t) {
  char s[32];
  std::snprintf(s, sizeof s, "%.6g s", to_s(t));
  return s;
}

/// The report on a run that did not complete, apart from its wait-for graph.
class RunAnalysis {
 public:
  explicit RunAnalysis(RunView& view) : v_(view) {}
  Diagnosis deadlock() {
    Diagnosis d;
    const WaitGraph graph(v_);
    graph.describe_cycle(d);
    collectives(d);
    near_misses(d, graph);
    lost(d);
    unreceived(d);
    for (const auto& p : v_.world.procs)
      if (const auto it = v_.full.find(p.get()); it != v_.full.end()) {
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
      v_.add_tag(row, *m);
      row.insert(row.end(), {{"bytes", m->bytes},
                             {"held", s.held},
                             {"unit", std::string(r.unit)},
                             {"buffers", s.buffers},
                             {"held_s", to_s(v_.world.loop.now - s.since)},
                             {"file", v_.trace.files[static_cast<size_t>(m->src)]},
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
      s += "; the largest: " + v_.describe(*m) + ", held for " + seconds(v_.world.loop.now - sum.since);
      const auto& [pair, p] = pairs.front();
      if (all.size() > 1)
        s += "; most are of rank " + std::to_string(pair.first) + " to rank " + std::to_string(pair.second) + ": " + std::to_string(p.messages) +
             " with " + std::to_string(p.held) + " " + r.unit;
    }
    d.told.push_back(std::move(s));
  }

  [[nodiscard]] Resource unexpected(const Rank& r) const {
    Resource out{
        .name = "the buffer of rank " + std::to_string(r.id) + " for unexpected messages", .total = v_.job.unexpected_limit, .unit = "B", .used = {}};
    for (const Message* m : r.receiver.unexpected())
      if (m->unexpected_bytes > 0) out.used.push_back({m, m->unexpected_bytes, m->unexpected_since});
    return out;
  }

 private:
  using Messages = RunView::Messages;
  void collectives(Diagnosis& d) {
    std::set<std::pair<int32_t, size_t>> told;  // communicator, number: all ranks waiting in one would report the same
    for (const Rank* r : v_.job.ranks) {
      if (v_.gone(*r, r) || !r->now_at || !is_collective_call(*r->now_at)) continue;
      const Action& a = *r->now_at;
      if (!told.emplace(a.comm, v_.count(*r, a.comm)).second) continue;
      size_t missing = 0;
      std::string first;
      for (const Rank* b : v_.absent(*r)) {
        const std::string where = v_.fate(*b);
        if (++missing <= 3) first += (first.empty() ? "" : "; ") + b->thread.name() + " " + where;
        const uint32_t line = b->now_at ? b->now_at->line : 0;
        if (d.collectives.size() < kUnreceived)
          d.collectives.push_back({{"collective", std::string(op_name(a.op))},
                                   {"comm", v_.comm_id(program_context(a.comm))},
                                   {"file", v_.trace.files[static_cast<size_t>(r->id)]},
                                   {"line", int64_t{a.line}},
                                   {"rank", int64_t{b->id}},
                                   {"instead", where},
                                   {"instead_file", line ? v_.trace.files[static_cast<size_t>(b->id)] : std::string()},
                                   {"instead_line", int64_t{line}}});
      }
      if (missing > 0)
        d.told.push_back(std::string(op_name(a.op)) + " (" + v_.place(*r, a.line) + "): " + first +
                         (missing > 3 ? " and " + std::to_string(missing - 3) + " more ranks" : ""));
    }
  }

  void near_misses(Diagnosis& d, const WaitGraph& graph) const {
    for (const Rank* r : v_.job.ranks) {
      if (v_.gone(*r, r) || !graph.waits(r)) continue;
      std::vector<const Request*> open(r->receiver.posted().begin(), r->receiver.posted().end());
      Request probe;
      if (r->now_at->op == Op::Probe) {
        probe.kind = Request::Recv;
        const auto& x = r->now_at->get<action::PointToPoint>();
        probe.peer = x.peer, probe.tag = x.tag, probe.ctx = program_context(r->now_at->comm), probe.line = r->now_at->line;
        open.push_back(&probe);
      }
      for (const Message& m : v_.to(r->id)) {
        if (m.rreq) continue;
        for (const Request* q : open) {
          if (of_library(q->ctx) || of_library(m.ctx)) continue;
          const bool source = q->peer == ANY_SOURCE || q->peer == m.src, tag = q->tag == ANY_TAG || q->tag == m.tag, comm = q->ctx == m.ctx;
          const int wrong = !source + !tag + !comm;
          if (wrong != 1) continue;
          const char* why = !tag ? "tag" : !comm ? "communicator" : "source";
          if (d.near_misses.size() >= kUnreceived) return;
          d.near_misses.push_back({{"rank", int64_t{r->id}},
                                   {"file", v_.trace.files[static_cast<size_t>(r->id)]},
                                   {"line", int64_t{q->line}},
                                   {"wants_source", int64_t{q->peer}},
                                   {"wants_tag", int64_t{q->tag}},
                                   {"wants_comm", v_.comm_id(q->ctx)},
                                   {"source", int64_t{m.src}},
                                   {"tag", int64_t{m.tag}},
                                   {"comm", v_.comm_id(m.ctx)},
                                   {"bytes", m.bytes},
                                   {"wants_bytes", q->bytes},
                                   {"send_file", v_.trace.files[static_cast<size_t>(m.src)]},
                                   {"send_line", int64_t{m.line}},
                                   {"differs", std::string(why)}});
          if (d.near_misses.size() > 3) continue;
          std::string has = "rank " + std::to_string(m.src) + " has sent " + tag_name(m.tag);
          if (!comm) has += " on communicator " + std::to_string(v_.comm_id(m.ctx));
          const std::string from = q->peer == ANY_SOURCE ? "any source" : "rank " + std::to_string(q->peer);
          d.told.push_back("near miss: rank " + std::to_string(r->id) + " wants " + tag_name(q->tag) + " from " + from +
                           (comm ? "" : " on communicator " + std::to_string(v_.comm_id(q->ctx))) + " (" + v_.place(*r, q->line) + "), " + has +
                           " (" + v_.place(v_.rank(m.src), m.line) + ", " + std::to_string(m.bytes) + " B)");
        }
      }
    }
  }
  void lost(Diagnosis& d) const {
    std::vector<const Message*> all;
    for (const auto& mine : v_.messages())
      for (const Message& m : mine)
        if (m.lost && !m.delivered) all.push_back(&m);
    if (all.empty()) return;
    const Message& oldest = **std::min_element(
        all.begin(), all.end(), [](const Message* a, const Message* b) { return std::pair(a->at, a->src) < std::pair(b->at, b->src); });
    const bool one = all.size() == 1;
    d.told.push_back(std::to_string(all.size()) + (one ? " message was" : " messages were") + " lost on the wire and nobody sends " +
                     (one ? "it" : "them") + " again; the oldest: " + v_.describe(oldest));
  }
  void unreceived(Diagnosis& d) const {
    Messages all;
    for (const auto& mine : v_.messages())
      for (const Message& m : mine)
        if (!m.delivered && !m.rreq) all.emplace_back(m);
    std::stable_sort(all.begin(), all.end(), [](const Message& a, const Message& b) { return std::pair(a.at, a.src) < std::pair(b.at, b.src); });
    d.unreceived_total = static_cast<int64_t>(all.size());
    for (const Message& m : all) {
      if (d.unreceived.size() >= kUnreceived) break;
      Row row = {{"source", int64_t{m.src}}, {"destination", int64_t{m.dst}}};
      v_.add_tag(row, m);
      row.insert(row.end(), {{"bytes", m.bytes},
                             {"sent_s", to_s(m.at)},
                             {"where", std::string(m.lost             ? "lost on the wire"
                                                   : m.envelope_known ? "at its destination"
                                                                      : "on its way")},
                             {"file", v_.trace.files[static_cast<size_t>(m.src)]},
                             {"line", int64_t{m.line}}});
      d.unreceived.push_back(std::move(row));
    }
    if (!all.empty())
      d.told.push_back(std::to_string(all.size()) + (all.size() == 1 ? " message was" : " messages were") +
                       " sent and not received; the oldest: " + v_.describe(all.front()));
  }

  RunView& v_;
};

}  // namespace

Diagnosis diagnose(const World& world, const Job& job, const std::vector<const Chan*>& chans, const Abort* end) {
  RunView view(world, job, chans);
  RunAnalysis q(view);
  if (!end) return q.deadlock();
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
