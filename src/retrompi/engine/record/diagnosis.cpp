#include "record/deadlock_analysis.hpp"

namespace retrompi {

Diagnosis DeadlockAnalysis::stuck() {
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

void DeadlockAnalysis::fill(Diagnosis& d, const Resource& r) {
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

Resource DeadlockAnalysis::unexpected(const Rank& r) const {
  Resource out{
      .name = "the buffer of rank " + std::to_string(r.id) + " for unexpected messages", .total = job_.unexpected_limit, .unit = "B", .used = {}};
  for (const Message* m : r.unexpected_)
    if (m->stashed > 0) out.used.push_back({m, m->stashed, m->kept_at});
  return out;
}

const Rank* DeadlockAnalysis::as_rank(const Proc* p) const {
  const auto it = rank_of_.find(p);
  return it == rank_of_.end() ? nullptr : it->second;
}

std::string DeadlockAnalysis::describe(const Message& m) const {
  std::string s = "rank " + std::to_string(m.src) + " to rank " + std::to_string(m.dst) + ", ";
  s += of_library(m.ctx) ? "of a collective" : tag_name(m.tag);
  return s + ", " + std::to_string(m.bytes) + " B, sent at " + place(rank(m.src), m.line);
}

void DeadlockAnalysis::add_tag(Row& row, const Message& m) const {
  row.push_back({"tag", int64_t{m.tag}});
  row.push_back({"comm", comm_id(m.ctx)});
  row.push_back({"collective", of_library(m.ctx)});
}

int64_t DeadlockAnalysis::comm_id(int32_t ctx) const {
  const auto i = static_cast<size_t>(comm_of(ctx));
  return i < t_.comms.size() ? t_.comms[i].id : 0;
}

std::vector<int32_t> DeadlockAnalysis::members(int32_t comm) const {
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
