#include "diagnosis/message_path_result.hpp"

#include <algorithm>
#include <map>

namespace retrompi {

namespace {

Ps mark_of(const Job& job, const Trace& trace, int32_t rank, const std::string& label) {
  for (const MarkTime& m : job.marks)
    if (m.rank == rank && trace.labels[static_cast<size_t>(m.label)] == label) return m.time;
  throw ConfigError("rank " + std::to_string(rank) + " has no mark '" + label + "' in the trace");
}

}  // namespace

std::shared_ptr<const MessagePathResult> message_path_of(const World& world, const Job& job, const Trace& trace,
                                                         const std::vector<DirectionSpec>& directions, const std::vector<Proc*>& procs,
                                                         const std::vector<const Chan*>& chans) {
  const Anatomy& anatomy = world.anatomy;
  auto out = std::make_shared<MessagePathResult>();
  std::map<int32_t, int32_t> places;  // index of a network packet -> index in the result
  auto place = [&](int32_t packet) {
    if (packet < 0) return -1;
    const auto [it, fresh] = places.emplace(packet, static_cast<int32_t>(out->packets.size()));
    if (fresh) out->packets.push_back(anatomy.path.packets()[static_cast<size_t>(packet)]);
    return it->second;
  };
  for (const DirectionSpec& l : directions) {
    const Ps begin = mark_of(job, trace, l.from_rank, l.from), end = mark_of(job, trace, l.to_rank, l.to);
    if (end < begin) throw ConfigError("a direction of a message path ends before it begins");
    MessagePathResult::Direction direction{begin, end, {}};
    for (const Anatomy::Link& k : anatomy.chain(job.ranks.at(static_cast<size_t>(l.to_rank))->thread.log(), begin, end)) {
      const bool record = k.by.kind == Cause::Record;
      direction.chain.push_back({k.begin, k.end, k.s, anatomy.name(k.by), k.by.kind == Cause::Thread ? k.by.id : -1,
                                 record ? place(anatomy.records()[static_cast<size_t>(k.by.id)].by.packet) : -1});
    }
    out->directions.push_back(std::move(direction));
  }
  for (const auto& h : world.hosts) out->hosts.push_back(h->name);
  const Ps from = out->directions.front().begin, until = out->directions.back().end;
  out->processes.resize(anatomy.threads());
  for (const Proc* p : procs) {
    MessagePathResult::Process& row = out->processes[static_cast<size_t>(p->thread.log())];
    row.name = p->thread.name();
    row.host = p->host.name;
    for (const Anatomy::Seg& s : anatomy.stretches(p->thread.log()))
      if (s.end > from && s.begin < until) row.stretches.push_back({std::max(s.begin, from), std::min(s.end, until), s.s, s.why});
  }
  for (const Chan* c : chans) {
    const auto r = c->resource();
    out->channels.push_back(
        {c->number, c->from.thread.log(), c->to.thread.log(), medium_name(c->medium), r ? r->name : "", r ? r->total : 0, r ? r->unit : ""});
  }
  // Given in the order of addresses, which is another in each process.
  std::sort(out->channels.begin(), out->channels.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  std::map<int32_t, int32_t> transits;
  const auto& all = anatomy.path.transits();
  for (size_t i = 0; i < all.size(); ++i) {
    const PacketTransit& p = all[i];
    if (p.queued >= until || (p.copy_out_end >= 0 && p.copy_out_end <= from && p.queued < from)) continue;
    transits[static_cast<int32_t>(i)] = static_cast<int32_t>(out->transits.size());
    out->transits.push_back(p);
  }
  for (const Anatomy::Rec& r : anatomy.records())
    if (r.end > from && r.asked < until) out->work.push_back({r.where, r.s, r.before, r.asked, r.start, r.end, place(r.by.packet)});
  for (NetworkPacket& p : out->packets) {
    const auto it = transits.find(p.transit);
    p.transit = it == transits.end() ? -1 : it->second;
  }
  return out;
}

}  // namespace retrompi
