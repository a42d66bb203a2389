// A binomial tree towards the root, the smallest subtree first. ceil(log2 p) start-ups, n log2 p bytes.
// code: MPICH 1.0.5 to 1.2, src/coll/intra_fns.c, intra_Reduce; MPICH2 1.0 to 1.3, src/mpi/coll/reduce.c, for short vectors
#include "coll/data.hpp"

namespace retrompi::coll::reduce_binomial {
namespace {

Steps binomial(Args a) {
  const int32_t me = a.relative();
  // code: MPICH 3 and 4, reduce_intra_binomial.c: one buffer for incoming data, if any, and one for the result unless the member is the root
  const bool receives = (me & 1) == 0 && me + 1 < a.n;
  if (const Ps ps = a.table->temporary(a, me == 0 ? 1 : 2, a.bytes, (receives + (me != 0)) * a.bytes); ps > 0) co_yield work(ps);
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
}  // namespace retrompi::coll::reduce_binomial
