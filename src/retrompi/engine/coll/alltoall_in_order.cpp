// A receive and a send for every member in the order of the ranks, so that all begin with the same one, then one wait.
// code: MPICH 1.0.5 to 1.2.4, src/coll/intra_fns.c, intra_Alltoall, intra_Alltoallv
#include "coll/alltoall.hpp"

namespace retrompi::coll::alltoall_in_order {
namespace {

Steps in_order(Args a) {
  for (int32_t r = 0; r < a.n; ++r) {
    co_yield receive_from(a, r, 2 * r);
    co_yield send_to(a, r, 2 * r + 1);
  }
  co_yield wait_all();
}

const Algorithm kInOrder{Op::Alltoall, "in_order", &in_order};
const Algorithm kVector{Op::Alltoallv, "in_order", &in_order};
const Algorithm kTyped{Op::Alltoallw, "in_order", &in_order};

}  // namespace
}  // namespace retrompi::coll::alltoall_in_order
