// The root starts all sends at once and waits for all; nothing is sent for an empty block.
// code: MPICH2 1.1 to 1.3, src/mpi/coll/scatterv.c
#include "coll/data.hpp"

namespace retrompi::coll::scatter_posted {
namespace {

Steps posted(Args a) {
  if (a.me != a.root) {
    if (a.bytes_in == 0) co_return;
    co_yield receive(a.root, block_of(a.me, a.bytes_in));
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.n; ++r)
    if (r != a.root && a.to(r) > 0) co_yield send(r, block_of(r, a.to(r)), r);
  co_yield wait_all();
}

const Algorithm kPosted{Op::Scatter, "posted", &posted};
const Algorithm kVector{Op::Scatterv, "posted", &posted};

}  // namespace
}  // namespace retrompi::coll::scatter_posted
