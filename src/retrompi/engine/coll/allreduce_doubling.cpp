// In round k members 2^k apart exchange and combine the whole vector. log2 p start-ups, n log2 p bytes. Of the first 2 (p - 2^k) members each
// even one gives its data to the odd one above it and gets the result from it at the end.
// paper: Thakur, Rabenseifner, Gropp 2005, 4.5; code: MPICH2 1.0 to 1.3, src/mpi/coll/allreduce.c
#include "coll/halving.hpp"

namespace retrompi::coll::allreduce_doubling {
namespace {

Steps by_doubling(Args a) {
  const Inner in(a.n, 1);
  // code: MPICH 3 and 4, allreduce_intra_recursive_doubling.c
  if (const Ps ps = a.table->temporary(a, 1, a.bytes, in.of(a.me) < 0 ? 0 : a.bytes); ps > 0) co_yield work(ps);
  for (Steps s = fold_in(a, in); s.next();) co_yield s.step();
  const Part all = bytes_of(0, a.bytes);
  const int32_t r = in.of(a.me);
  for (int32_t mask = 1; r >= 0 && mask < in.count; mask <<= 1) {
    const int32_t peer = in.rank(r ^ mask);
    co_yield receive(peer, all, 0, kCombined);
    co_yield send(peer, all, 1);
    co_yield wait(1);
    co_yield wait(0);
    co_yield combine(a.bytes);
  }
  for (Steps s = fold_out(a, in); s.next();) co_yield s.step();
}

const Algorithm kDoubling{Op::Allreduce, "doubling", &by_doubling};

}  // namespace
}  // namespace retrompi::coll::allreduce_doubling
