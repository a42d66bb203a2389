// In round k members 2^k apart exchange and combine the whole vector. log2 p start-ups, n log2 p bytes.
// paper: Thakur, Rabenseifner, Gropp 2005, 4.5; code: MPICH2 1.0 to 1.3, src/mpi/coll/allreduce.c
#include "fold.hpp"

namespace retrompi::coll {
namespace {

Steps doubling(Args a) {
  const Fold f(a);
  for (Steps s = fold_in(a, f); s.next();) co_yield s.step();
  const Part all = bytes_of(0, a.bytes);
  for (int32_t mask = 1; f.r >= 0 && mask < f.inner; mask <<= 1) {
    const int32_t peer = f.rank(f.r ^ mask);
    co_yield receive(peer, all, 0, kCombined);
    co_yield send(peer, all, 1);
    co_yield wait(1);
    co_yield wait(0);
    co_yield combine(a.bytes);
  }
  for (Steps s = fold_out(a, f); s.next();) co_yield s.step();
}

const Algorithm kDoubling{Op::Allreduce, "doubling", &doubling};

}  // namespace
}  // namespace retrompi::coll
