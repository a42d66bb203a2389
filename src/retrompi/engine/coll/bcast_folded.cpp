// A binomial tree over the largest power of two of members; these finally send it to the others.
// code: MPICH 1.0.5 to 1.1.0, src/coll/intra_fns.c, intra_Bcast with blocks of one member (1.1.1 has the plain binomial tree)
#include "coll/data.hpp"

namespace retrompi::coll::bcast_folded {
namespace {

Steps folded(Args a) {
  const Part all = bytes_of(0, a.bytes);
  const int32_t me = a.relative(), inner = power_below(a.n);
  if (me >= inner) {
    co_yield receive(a.absolute(me - inner), all);
    co_yield wait();
    co_return;
  }
  int32_t mask = 1;
  for (; mask < inner; mask <<= 1)
    if (me & mask) {
      co_yield receive(a.absolute(me - mask), all);
      co_yield wait();
      break;
    }
  for (mask >>= 1; mask > 0; mask >>= 1) {
    co_yield send(a.absolute(me + mask), all);
    co_yield wait();
  }
  if (me + inner < a.n) {
    co_yield send(a.absolute(me + inner), all);
    co_yield wait();
  }
}

const Algorithm kFolded{Op::Bcast, "folded", &folded};

}  // namespace
}  // namespace retrompi::coll::bcast_folded
