#include "mpi/rank.hpp"

namespace retrompi {

// coll.hpp cites the sources of the steps.
Task make_communicator(Rank& rank, const Action& a) {
  const auto& x = a.get<action::NewComm>();
  const bool belongs = x.made >= 0;
  auto context = [&rank](int32_t comm) { return rank.collectives.follow(coll::agree_on_context(rank.collectives.own_args(comm)), comm); };
  switch (x.how) {
    case CommHow::Cart:
    case CommHow::Graph: {
      // Where the grid leaves ranks out, they are split off (code: MPICH2, src/mpi/topo/cart_create.c).
      const bool all = belongs && static_cast<int32_t>(rank.job.comm(x.made).group.size()) == rank.collectives.member(a.comm).group->n;
      if (!all) co_await rank.collectives.follow(coll::agree_on_colors(rank.collectives.own_args(a.comm)), a.comm);
      co_await context(a.comm);
      break;
    }
    case CommHow::Split:
      co_await rank.collectives.follow(coll::agree_on_colors(rank.collectives.own_args(a.comm)), a.comm);
      co_await context(a.comm);
      break;
    case CommHow::Dup:
    case CommHow::Create:
      co_await context(a.comm);
      break;
    case CommHow::CreateGroup:  // code: MPICH 3, src/mpi/comm/comm_create_group.c: among the group alone
      if (belongs) co_await context(x.made);
      break;
    case CommHow::IntercommCreate:
      co_await rank.collectives.follow(coll::swap_groups(rank.collectives.own_args(x.made)), x.made);
      co_await context(x.made);
      break;
    case CommHow::IntercommMerge:
      // Which group comes first, then a context (code: MPICH 1.1, src/context/comm_merge.c; MPICH2 likewise)
      co_await rank.collectives.follow(coll::agree_on_context(rank.collectives.own_args(a.comm)), a.comm);
      co_await context(x.made);
      break;
  }
}

}  // namespace retrompi
