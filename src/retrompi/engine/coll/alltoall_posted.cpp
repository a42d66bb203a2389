// All receives, then all sends, then one wait; every member begins with itself and continues with the next rank.
// code: MPICH 1.2.5 to 1.2.7, src/coll/intra_fns_new.c, intra_Alltoall, intra_Alltoallv (before them: alltoall_in_order)
#include "coll/alltoall.hpp"

namespace retrompi::coll::alltoall_posted {
namespace {

Steps posted(Args a) {
  for (int32_t k = 0; k < a.n; ++k) {
    const int32_t peer = (a.me + k) % a.n;
    co_yield receive_from(a, peer, k);
  }
  for (int32_t k = 0; k < a.n; ++k) {
    const int32_t peer = (a.me + k) % a.n;
    co_yield send_to(a, peer, a.n + k);
  }
  co_yield wait_all();
}

const Algorithm kPosted{Op::Alltoall, "posted", &posted};
const Algorithm kVector{Op::Alltoallv, "posted", &posted};
const Algorithm kTyped{Op::Alltoallw, "posted", &posted};

}  // namespace
}  // namespace retrompi::coll::alltoall_posted
