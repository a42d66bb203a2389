// All receives, then all sends, then one wait, from one rank on to the next.
//
// posted: every member begins with itself. code: MPICH 1.2.5 to 1.2.7, src/coll/intra_fns_new.c, intra_Alltoall, intra_Alltoallv (before them:
// alltoall_in_order)
// linear: its own block is copied before. code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_alltoall.c: basic_linear;
// ompi/mca/coll/basic/coll_basic_alltoall.c
#include "coll/alltoall.hpp"

namespace retrompi::coll::alltoall_posted {
namespace {

Steps at_once(Args a, bool copies_own) {
  if (copies_own) co_yield copy_own(a.to(a.me));
  for (int32_t k = copies_own; k < a.n; ++k) co_yield receive_from(a, (a.me + k) % a.n, k);
  for (int32_t k = copies_own; k < a.n; ++k) co_yield send_to(a, (a.me + k) % a.n, a.n + k);
  co_yield wait_all();
}

Steps posted(Args a) { return at_once(a, false); }
Steps linear(Args a) { return at_once(a, true); }

const Algorithm kPosted{Op::Alltoall, "posted", &posted};
const Algorithm kPostedVector{Op::Alltoallv, "posted", &posted};
const Algorithm kPostedTyped{Op::Alltoallw, "posted", &posted};
const Algorithm kLinear{Op::Alltoall, "linear", &linear};
const Algorithm kLinearVector{Op::Alltoallv, "linear", &linear};
const Algorithm kLinearTyped{Op::Alltoallw, "linear", &linear};

}  // namespace
}  // namespace retrompi::coll::alltoall_posted
