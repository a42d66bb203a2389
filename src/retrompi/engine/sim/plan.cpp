// The steps of the collectives of a trace without a simulation: for an analysis of the orders in which messages may match.
#include "mpi/rank.hpp"
#include "sim/sim.hpp"

namespace retrompi {

namespace {

LibraryCall listed(Rank& rank, coll::Steps steps, int32_t comm) {
  auto& member = rank.collectives.member(comm);
  LibraryCall call{.context = collective_context(comm), .tag = member.next_tag(), .steps = {}};
  while (steps.next()) {
    const coll::Step& s = steps.step();
    if (s.kind == coll::Step::Copy || s.kind == coll::Step::Combine || s.kind == coll::Step::Work) continue;
    call.steps.push_back({s.kind, member.group->of_world(s.peer), s.slot, s.bytes});
  }
  return call;
}

}  // namespace

std::vector<std::vector<LibraryLine>> library_steps(const SimConfig& c, const Trace& trace) {
  World w;
  for (const NamedHost& h : c.hosts) w.hosts.push_back(std::make_unique<Host>(w.loop, w.anatomy, h.spec, h.name, 0));
  Job job(w, trace, c.kernels);
  job.collectives = c.collectives;
  std::vector<std::unique_ptr<Rank>> ranks;
  for (size_t r = 0; r < trace.ranks.size(); ++r) {
    const size_t h = c.placement.at(r);
    ranks.push_back(std::make_unique<Rank>(job, w, *w.hosts.at(h), h, static_cast<int32_t>(r), c.rank));
    job.ranks.push_back(ranks.back().get());
  }
  std::vector<std::vector<LibraryLine>> all(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r)
    for (const Action& a : trace.ranks[r]) {
      if (a.kind() == ActionKind::Collective) {
        all[r].push_back({a.line, {}});
        all[r].back().calls.push_back(listed(*ranks[r], ranks[r]->collectives.planned(a), a.comm));
      } else if (a.kind() == ActionKind::NewComm) {
        all[r].push_back({a.line, {}});
        for (OverComm& each : communicator_steps(*ranks[r], a)) all[r].back().calls.push_back(listed(*ranks[r], std::move(each.steps), each.comm));
      }
    }
  return all;
}

}  // namespace retrompi
