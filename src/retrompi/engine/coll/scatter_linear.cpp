// The root sends to one member after the other.
// code: MPICH 1.0.5 to 1.2, src/coll/intra_fns.c, intra_Scatter, intra_Scatterv
#include "coll/data.hpp"

namespace retrompi::coll::scatter_linear {
namespace {

Steps linear(Args a) {
  if (a.me != a.root) {
    co_yield receive(a.root, block_of(a.me, a.bytes_in));
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.n; ++r)
    if (r != a.root) {
      co_yield send(r, block_of(r, a.to(r)));
      co_yield wait();
    }
}

const Algorithm kLinear{Op::Scatter, "linear", &linear};
const Algorithm kVector{Op::Scatterv, "linear", &linear};

}  // namespace
}  // namespace retrompi::coll::scatter_linear
