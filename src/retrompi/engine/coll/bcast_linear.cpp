// The root sends to one member after the other.
// code: Open MPI 1.x, ompi/mca/coll/basic, bcast_lin; SimGrid, smpi/colls/bcast, flat_tree
#include "coll/data.hpp"

namespace retrompi::coll::bcast_linear {
namespace {

Steps linear(Args a) {
  const Part all = bytes_of(0, a.bytes);
  if (a.me != a.root) {
    co_yield receive(a.root, all);
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.n; ++r)
    if (r != a.root) {
      co_yield send(r, all);
      co_yield wait();
    }
}

const Algorithm kLinear{Op::Bcast, "linear", &linear};

}  // namespace
}  // namespace retrompi::coll::bcast_linear
