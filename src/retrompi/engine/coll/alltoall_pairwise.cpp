// p - 1 rounds, in each an exchange with one member: round k with the member whose rank differs by the bits of k when p is a power of two,
// else to the one k above and from the one k below. A member's own block is copied.
// paper: Thakur, Rabenseifner, Gropp 2005, 4.3; code: MPICH2 1.0 to 1.3, src/mpi/coll/alltoall.c
#include "coll/alltoall.hpp"

namespace retrompi::coll::alltoall_pairwise {
namespace {

Steps pairwise(Args a) {
  co_yield copy_own(a.to(a.me));
  const bool power = power_below(a.n) == a.n;
  for (int32_t k = 1; k < a.n; ++k) {
    const int32_t to = power ? a.me ^ k : (a.me + k) % a.n, from = power ? to : (a.me - k + a.n) % a.n;
    co_yield receive_from(a, from, 0);
    co_yield send_to(a, to, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

const Algorithm kPairwise{Op::Alltoall, "pairwise", &pairwise};
const Algorithm kVector{Op::Alltoallv, "pairwise", &pairwise};
const Algorithm kTyped{Op::Alltoallw, "pairwise", &pairwise};

}  // namespace
}  // namespace retrompi::coll::alltoall_pairwise
