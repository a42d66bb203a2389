// The tables beside a wait-for cycle: collectives that somebody has not come to, near misses, lost and unreceived messages.
#include "record/deadlock_analysis.hpp"

namespace retrompi {

std::vector<const Rank*> DeadlockAnalysis::absent(const Rank& r) {
  const int32_t comm = r.now_at->comm;
  const size_t mine = count(r, comm);
  std::vector<const Rank*> out;
  for (const int32_t m : members(comm))
    if (count(rank(m), comm) < mine) out.push_back(&rank(m));
  return out;
}

size_t DeadlockAnalysis::count(const Rank& r, int32_t comm) {
  const auto [it, fresh] = begun_.try_emplace({r.id, comm});
  if (!fresh) return it->second;
  for (const Action& a : t_.ranks[static_cast<size_t>(r.id)]) {
    it->second += is_collective(a) && a.comm == comm;
    if (r.now_at && a.line == r.now_at->line) break;
  }
  return it->second;
}

void DeadlockAnalysis::collectives(Diagnosis& d) {
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

void DeadlockAnalysis::near_misses(Diagnosis& d) const {
  for (const Rank* r : job_.ranks) {
    if (gone(*r, r) || !waits_.contains(r)) continue;
    std::vector<const Request*> open(r->posted_.begin(), r->posted_.end());
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

void DeadlockAnalysis::lost(Diagnosis& d) const {
  std::vector<const Message*> all;
  for (const auto& mine : to_)
    for (const Message& m : mine)
      if (m.lost && !m.delivered) all.push_back(&m);
  if (all.empty()) return;
  const Message& oldest = **std::min_element(all.begin(), all.end(),
                                             [](const Message* a, const Message* b) { return std::pair(a->at, a->src) < std::pair(b->at, b->src); });
  const bool one = all.size() == 1;
  d.told.push_back(std::to_string(all.size()) + (one ? " message was" : " messages were") + " lost on the wire and nobody sends " +
                   (one ? "it" : "them") + " again; the oldest: " + describe(oldest));
}

void DeadlockAnalysis::unreceived(Diagnosis& d) const {
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

}  // namespace retrompi
