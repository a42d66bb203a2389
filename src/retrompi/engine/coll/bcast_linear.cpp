// The root sends to all members, in the order of their ranks.
//
// linear: to one after the other. code: Open MPI 1.x, ompi/mca/coll/basic, bcast_lin; SimGrid, smpi/colls/bcast, flat_tree
// posted: it starts all sends at once. code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_bcast.c: basic_linear
#include "coll/data.hpp"

namespace retrompi::coll::bcast_linear {
namespace {

Steps from_root(Args a, bool at_once) {
  const Part all = bytes_of(0, a.bytes);
  if (a.me != a.root) {
    co_yield receive(a.root, all);
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.n; ++r)
    if (r != a.root) {
      co_yield send(r, all, at_once ? r : 0);
      if (!at_once) co_yield wait();
    }
  if (at_once) co_yield wait_all();
}

Steps linear(Args a) { return from_root(a, false); }
Steps posted(Args a) { return from_root(a, true); }

const Algorithm kLinear{Op::Bcast, "linear", &linear};
const Algorithm kPosted{Op::Bcast, "posted", &posted};

}  // namespace
}  // namespace retrompi::coll::bcast_linear
