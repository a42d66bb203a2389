// Dissemination: in round k every member tells the one 2^k places on and hears from the one 2^k places back.
// paper: Hensgen, Finkel, Manber 1988; code: MPICH 1.1, src/coll/intra_fns.c, intra_Barrier in its hypercube form
#include "../coll.hpp"

namespace retrompi::coll {
namespace {

Steps dissemination(Args a) {
  for (int32_t k = 1; k < a.n; k <<= 1) {
    co_yield irecv((a.me - k + a.n) % a.n, 0, 0);
    co_yield isend((a.me + k) % a.n, 0, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

const Algorithm kDissemination{Op::Barrier, "dissemination", &dissemination};

}  // namespace
}  // namespace retrompi::coll
