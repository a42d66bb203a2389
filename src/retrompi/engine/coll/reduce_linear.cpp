// The root receives from one member after the other and combines.
// code: Open MPI 1.x, ompi/mca/coll/basic, reduce_lin; SimGrid, smpi/colls/reduce, flat_tree (both from the last rank down)
#include "coll/data.hpp"

namespace retrompi::coll::reduce_linear {
namespace {

Steps linear(Args a) {
  const Part all = bytes_of(0, a.bytes);
  if (a.me != a.root) {
    co_yield send(a.root, all);
    co_yield wait();
    co_return;
  }
  for (int32_t r = a.n - 1; r >= 0; --r)
    if (r != a.root) {
      co_yield receive(r, all, 0, kCombined);
      co_yield wait();
      co_yield combine(a.bytes);
    }
}

const Algorithm kLinear{Op::Reduce, "linear", &linear};

}  // namespace
}  // namespace retrompi::coll::reduce_linear
