#include "mpi/rank.hpp"

namespace retrompi {

// coll.hpp cites the sources of the steps.
std::vector<OverComm> communicator_steps(Rank& rank, const Action& a) {
  const auto& x = a.get<action::NewComm>();
  const bool belongs = x.made >= 0;
  std::vector<OverComm> all;
  auto over = [&](int32_t comm, coll::Steps (*steps)(coll::Args)) { all.push_back({comm, steps(rank.collectives.own_args(comm))}); };
  switch (x.how) {
    case CommHow::Cart:
    case CommHow::Graph: {
      // Where the grid leaves ranks out, they are split off (code: MPICH2, src/mpi/topo/cart_create.c).
      const bool all = belongs && static_cast<int32_t>(rank.job.comm(x.made).group.size()) == rank.collectives.member(a.comm).group->n;
      if (!all) over(a.comm, &coll::agree_on_colors);
      over(a.comm, &coll::agree_on_context);
      break;
    }
    case CommHow::Split:
      over(a.comm, &coll::agree_on_colors);
      over(a.comm, &coll::agree_on_context);
      break;
    case CommHow::Dup:
    case CommHow::Create:
      over(a.comm, &coll::agree_on_context);
      break;
    case CommHow::CreateGroup:  // code: MPICH 3, src/mpi/comm/comm_create_group.c: among the group alone
      if (belongs) over(x.made, &coll::agree_on_context);
      break;
    case CommHow::IntercommCreate:
      over(x.made, &coll::swap_groups);
      over(x.made, &coll::agree_on_context);
      break;
    case CommHow::IntercommMerge:
      // Which group comes first, then a context (code: MPICH 1.1, src/context/comm_merge.c; MPICH2 likewise)
      over(a.comm, &coll::agree_on_context);
      over(x.made, &coll::agree_on_context);
      break;
  }
  return all;
}

Task make_communicator(Rank& rank, const Action& a) {
  for (OverComm& each : communicator_steps(rank, a)) co_await rank.collectives.follow(std::move(each.steps), each.comm);
}

}  // namespace retrompi
