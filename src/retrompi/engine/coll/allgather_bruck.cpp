// In round k a member has 2^k blocks from its own on, and gets as many from the one 2^k above it; at the end they are rotated into order.
// ceil(log2 p) start-ups, (p - 1) blocks, for every p.
// paper: Bruck, Ho, Kipnis, Upfal, Weathersby 1997; Thakur, Rabenseifner, Gropp 2005, 4.1;
// code: MPICH2 1.0 to 1.3, src/mpi/coll/allgather.c and allgatherv.c
#include "coll/data.hpp"

namespace retrompi::coll::allgather_bruck {
namespace {

Steps bruck(Args a) {
  if (a.in.empty()) a.bytes_in = a.bytes;
  for (int32_t have = 1; have < a.n; have <<= 1) {
    const int32_t count = std::min(have, a.n - have), above = (a.me + have) % a.n;
    co_yield receive(above, blocks_of(above, count, a.n, total(a, above, count)), 0);
    co_yield send((a.me - have + a.n) % a.n, blocks_of(a.me, count, a.n, total(a, a.me, count)), 1);
    co_yield wait(1);
    co_yield wait(0);
  }
  if (a.n > 1) co_yield copy(total(a, 0, a.n));
}

const Algorithm kBruck{Op::Allgather, "bruck", &bruck};
const Algorithm kVector{Op::Allgatherv, "bruck", &bruck};

}  // namespace
}  // namespace retrompi::coll::allgather_bruck
