// A binomial tree towards the root.
// code: MPICH 1.0.12 and 1.1, src/coll/intra_fns.c, intra_Reduce
#include "../coll.hpp"

namespace retrompi::coll {
namespace {

Steps binomial(Args a) {
  const int32_t me = a.relative();
  for (int32_t mask = 1; mask < a.n; mask <<= 1) {
    if (me & mask) {
      co_yield isend(a.absolute(me & ~mask), a.bytes);
      co_yield wait();
      break;
    }
    if ((me | mask) < a.n) {
      co_yield irecv(a.absolute(me | mask), a.bytes);
      co_yield wait();
      co_yield combine(a.bytes);
    }
  }
}

const Algorithm kBinomial{Op::Reduce, "binomial", &binomial};

}  // namespace
}  // namespace retrompi::coll
