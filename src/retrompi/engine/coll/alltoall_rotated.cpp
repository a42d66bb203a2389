// p - 1 rounds: in round k to the member k above and from the one k below; the own block is copied last.
// code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_alltoall.c: pairwise (which sends the own block to itself), two_procs
#include "coll/alltoall.hpp"

namespace retrompi::coll::alltoall_rotated {
namespace {

Steps rotated(Args a) {
  for (int32_t k = 1; k < a.n; ++k) {
    co_yield receive_from(a, (a.me - k + a.n) % a.n, 0);
    co_yield send_to(a, (a.me + k) % a.n, 1);
    co_yield wait_all();
  }
  co_yield copy_own(a.to(a.me));
}

const Algorithm kRotated{Op::Alltoall, "rotated", &rotated};

}  // namespace
}  // namespace retrompi::coll::alltoall_rotated
