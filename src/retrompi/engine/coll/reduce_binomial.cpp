// A binomial tree towards the root, the smallest subtree first. ceil(log2 p) start-ups, n log2 p bytes.
// code: MPICH 1.0.5 to 1.2, src/coll/intra_fns.c, intra_Reduce; MPICH2 1.0 to 1.3, src/mpi/coll/reduce.c, for short vectors
#include "data.hpp"

namespace retrompi::coll {
namespace {

Steps binomial(Args a) {
  const int32_t me = a.relative();
  for (int32_t mask = 1; mask < a.n; mask <<= 1) {
    if (me & mask) {
      co_yield send(a.absolute(me & ~mask), bytes_of(0, a.bytes));
      co_yield wait();
      break;
    }
    if ((me | mask) < a.n) {
      co_yield receive(a.absolute(me | mask), bytes_of(0, a.bytes), 0, kCombined);
      co_yield wait();
      co_yield combine(a.bytes);
    }
  }
}

const Algorithm kBinomial{Op::Reduce, "binomial", &binomial};

}  // namespace
}  // namespace retrompi::coll
