#include <map>

#include "record/journey_result.hpp"

namespace retrompi {

namespace {

const char* medium_name(Medium m) {
  static constexpr const char* names[] = {"pool", "ring", "stream", "datagram", "dma", "curve"};
  return names[static_cast<int>(m)];
}

Ps mark_of(const Job& job, const Trace& trace, int32_t rank, const std::string& label) {
  for (const MarkTime& m : job.marks)
    if (m.rank == rank && trace.labels[static_cast<size_t>(m.label)] == label) return m.time;
  throw ConfigError("rank " + std::to_string(rank) + " has no mark '" + label + "' in the trace");
}

}  // namespace

std::shared_ptr<const JourneyResult> journey_of(const World& world, const Job& job, const Trace& trace, const std::vector<LegSpec>& legs,
                                                const std::vector<Proc*>& procs, const std::vector<const Chan*>& chans) {
  const Anatomy& anatomy = world.anatomy;
  auto out = std::make_shared<JourneyResult>();
  std::map<int32_t, int32_t> places;  // of things among those that are told
  auto place = [&](int32_t thing) {
    if (thing < 0) return -1;
    const auto [it, fresh] = places.emplace(thing, static_cast<int32_t>(out->things.size()));
    if (fresh) out->things.push_back(anatomy.journey.things()[static_cast<size_t>(thing)]);
    return it->second;
  };
  for (const LegSpec& l : legs) {
    const Ps begin = mark_of(job, trace, l.from_rank, l.from), end = mark_of(job, trace, l.to_rank, l.to);
    if (end < begin) throw ConfigError("a leg of a journey ends before it begins");
    JourneyResult::Leg leg{begin, end, {}};
    for (const Anatomy::Link& k : anatomy.chain(job.ranks.at(static_cast<size_t>(l.to_rank))->thread.log(), begin, end)) {
      const bool record = k.by.kind == Cause::Record;
      leg.chain.push_back({k.begin, k.end, k.s, anatomy.name(k.by), k.by.kind == Cause::Thread ? k.by.id : -1,
                           record ? place(anatomy.records()[static_cast<size_t>(k.by.id)].by.thing) : -1});
    }
    out->legs.push_back(std::move(leg));
  }
  for (const auto& h : world.hosts) out->hosts.push_back(h->spec.name);
  const Ps from = out->legs.front().begin, until = out->legs.back().end;
  out->processes.resize(anatomy.threads());
  for (const Proc* p : procs) {
    JourneyResult::Process& row = out->processes[static_cast<size_t>(p->thread.log())];
    row.name = p->thread.name();
    row.host = p->host.spec.name;
    for (const Anatomy::Seg& s : anatomy.stretches(p->thread.log()))
      if (s.end > from && s.begin < until) row.stretches.push_back({std::max(s.begin, from), std::min(s.end, until), s.s, s.why});
  }
  for (const Chan* c : chans) {
    const auto r = c->resource();
    out->channels.push_back(
        {c->number, c->from.thread.log(), c->to.thread.log(), medium_name(c->spec.medium), r ? r->name : "", r ? r->total : 0, r ? r->unit : ""});
  }
  std::map<int32_t, int32_t> passages;
  const auto& all = anatomy.journey.passages();
  for (size_t i = 0; i < all.size(); ++i) {
    const Passage& p = all[i];
    if (p.asked >= until || (p.taken >= 0 && p.taken <= from && p.asked < from)) continue;
    passages[static_cast<int32_t>(i)] = static_cast<int32_t>(out->passages.size());
    out->passages.push_back(p);
  }
  for (const Anatomy::Rec& r : anatomy.records())
    if (r.end > from && r.asked < until) out->work.push_back({r.where, r.s, r.before, r.asked, r.start, r.end, place(r.by.thing)});
  for (Thing& t : out->things) {
    const auto it = passages.find(t.passage);
    t.passage = it == passages.end() ? -1 : it->second;
  }
  return out;
}

}  // namespace retrompi
