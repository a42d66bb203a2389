// p - 1 rounds: in round k a member sends the one k above its part and combines the part received from the one k below.
// p - 1 start-ups, n (p - 1) / p bytes.
// paper: Thakur, Rabenseifner, Gropp 2005, 4.4; code: MPICH2 1.0 to 1.3, src/mpi/coll/red_scat.c
#include "coll/data.hpp"

namespace retrompi::coll::reduce_scatter_pairwise {
namespace {

Steps pairwise(Args a) {
  const int64_t mine = a.from(a.me);
  for (int32_t k = 1; k < a.n; ++k) {
    const int32_t from = (a.me - k + a.n) % a.n, to = (a.me + k) % a.n;
    const int64_t theirs = a.from(to);
    if (mine > 0) co_yield receive(from, block_of(a.me, mine), 0, kCombined);
    if (theirs > 0) co_yield send(to, block_of(to, theirs), 1);
    if (theirs > 0) co_yield wait(1);
    if (mine > 0) {
      co_yield wait(0);
      co_yield combine(mine);
    }
  }
}

const Algorithm kPairwise{Op::ReduceScatter, "pairwise", &pairwise};
const Algorithm kBlock{Op::ReduceScatterBlock, "pairwise", &pairwise};

}  // namespace
}  // namespace retrompi::coll::reduce_scatter_pairwise
