// The root starts its sends to all members at once, in the order of their ranks, and waits for all.
// code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_bcast.c: basic_linear
#include "coll/data.hpp"

namespace retrompi::coll::bcast_posted {
namespace {

Steps posted(Args a) {
  const Part all = bytes_of(0, a.bytes);
  if (a.me != a.root) {
    co_yield receive(a.root, all);
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.n; ++r)
    if (r != a.root) co_yield send(r, all, r);
  co_yield wait_all();
}

const Algorithm kPosted{Op::Bcast, "posted", &posted};

}  // namespace
}  // namespace retrompi::coll::bcast_posted
