// Every member passes on what it has received last, n - 1 times around the ring.
// code: MPICH 1.0.12 and 1.1, src/coll/intra_fns.c, intra_Allgather, intra_Allgatherv
#include "../coll.hpp"

namespace retrompi::coll {
namespace {

Steps ring(Args a) {
  if (a.in.empty()) a.bytes_in = a.bytes;
  for (int32_t k = 0; k + 1 < a.n; ++k) {
    const int32_t mine = (a.me - k + a.n) % a.n, theirs = (a.me - k - 1 + a.n) % a.n;
    co_yield irecv((a.me - 1 + a.n) % a.n, a.from(theirs), 0);
    co_yield isend((a.me + 1) % a.n, a.from(mine), 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

const Algorithm kRing{Op::Allgather, "ring", &ring};
const Algorithm kVector{Op::Allgatherv, "ring", &ring};

}  // namespace
}  // namespace retrompi::coll
