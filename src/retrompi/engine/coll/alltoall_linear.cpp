// A member's own block is copied; then all receives and all sends are started, each beginning with the next rank, and one wait.
// code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_alltoall.c: basic_linear; ompi/mca/coll/basic/coll_basic_alltoall.c
#include "coll/alltoall.hpp"

namespace retrompi::coll::alltoall_linear {
namespace {

Steps linear(Args a) {
  co_yield copy_own(a.to(a.me));
  for (int32_t k = 1; k < a.n; ++k) co_yield receive_from(a, (a.me + k) % a.n, k);
  for (int32_t k = 1; k < a.n; ++k) co_yield send_to(a, (a.me + k) % a.n, a.n + k);
  co_yield wait_all();
}

const Algorithm kLinear{Op::Alltoall, "linear", &linear};
const Algorithm kVector{Op::Alltoallv, "linear", &linear};
const Algorithm kTyped{Op::Alltoallw, "linear", &linear};

}  // namespace
}  // namespace retrompi::coll::alltoall_linear
