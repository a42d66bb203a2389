// A binomial tree from the root, the largest subtree first. ceil(log2 p) start-ups, n log2 p bytes.
// code: MPICH 1.1.1 to 1.2, src/coll/intra_fns.c, intra_Bcast (1.1.0 and before: bcast_folded, the same for a power of two);
// MPICH2 1.0 to 1.3, src/mpi/coll/bcast.c, for short vectors
#include "coll/data.hpp"

namespace retrompi::coll::bcast_binomial {
namespace {

Steps binomial(Args a) {
  const int32_t me = a.relative();
  int32_t mask = 1;
  for (; mask < a.n; mask <<= 1)
    if (me & mask) {
      co_yield receive(a.absolute(me - mask), bytes_of(0, a.bytes));
      co_yield wait();
      break;
    }
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (me + mask < a.n) {
      co_yield send(a.absolute(me + mask), bytes_of(0, a.bytes));
      co_yield wait();
    }
}

const Algorithm kBinomial{Op::Bcast, "binomial", &binomial};

}  // namespace
}  // namespace retrompi::coll::bcast_binomial
