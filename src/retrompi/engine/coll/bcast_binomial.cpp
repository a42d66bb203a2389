// A binomial tree from the root, the largest subtree first.
// code: MPICH 1.0.12 and 1.1, src/coll/intra_fns.c, intra_Bcast
#include "../coll.hpp"

namespace retrompi::coll {
namespace {

Steps binomial(Args a) {
  const int32_t me = a.relative();
  int32_t mask = 1;
  for (; mask < a.n; mask <<= 1)
    if (me & mask) {
      co_yield irecv(a.absolute(me - mask), a.bytes);
      co_yield wait();
      break;
    }
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (me + mask < a.n) {
      co_yield isend(a.absolute(me + mask), a.bytes);
      co_yield wait();
    }
}

const Algorithm kBinomial{Op::Bcast, "binomial", &binomial};

}  // namespace
}  // namespace retrompi::coll
