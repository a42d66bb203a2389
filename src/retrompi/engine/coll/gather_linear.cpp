// The root receives from one member after the other.
// code: MPICH 1.0.5 to 1.2, src/coll/intra_fns.c, intra_Gather, intra_Gatherv
#include "coll/data.hpp"

namespace retrompi::coll::gather_linear {
namespace {

Steps linear(Args a) {
  if (a.me != a.root) {
    co_yield send(a.root, block_of(a.me, a.bytes));
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.n; ++r)
    if (r != a.root) {
      co_yield receive(r, block_of(r, a.from(r)));
      co_yield wait();
    }
}

const Algorithm kLinear{Op::Gather, "linear", &linear};
const Algorithm kVector{Op::Gatherv, "linear", &linear};

}  // namespace
}  // namespace retrompi::coll::gather_linear
