// Every member forwards the block it received last, n - 1 times around the ring.
// p - 1 start-ups, (p - 1) blocks. code: MPICH 1.0.5 to 1.2.0, src/coll/intra_fns.c, intra_Allgather, intra_Allgatherv (which also send
// themselves their own block); MPICH2 1.0 to 1.3, src/mpi/coll/allgather.c, for long blocks
#include "coll/data.hpp"

namespace retrompi::coll::allgather_ring {
namespace {

Steps ring(Args a) {
  if (a.in.empty()) a.bytes_in = a.bytes;
  for (int32_t k = 0; k + 1 < a.n; ++k) {
    const int32_t mine = (a.me - k + a.n) % a.n, theirs = (a.me - k - 1 + a.n) % a.n;
    co_yield receive((a.me - 1 + a.n) % a.n, block_of(theirs, a.from(theirs)), 0);
    co_yield send((a.me + 1) % a.n, block_of(mine, a.from(mine)), 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

const Algorithm kRing{Op::Allgather, "ring", &ring};
const Algorithm kVector{Op::Allgatherv, "ring", &ring};

}  // namespace
}  // namespace retrompi::coll::allgather_ring
