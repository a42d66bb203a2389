// The root posts all receives at once and waits for all; nothing is sent for an empty block.
// code: MPICH2 1.1 to 1.3, src/mpi/coll/gatherv.c
#include "coll/data.hpp"

namespace retrompi::coll::gather_posted {
namespace {

Steps posted(Args a) {
  if (a.me != a.root) {
    if (a.bytes == 0) co_return;
    co_yield send(a.root, block_of(a.me, a.bytes));
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.n; ++r)
    if (r != a.root && a.from(r) > 0) co_yield receive(r, block_of(r, a.from(r)), r);
  co_yield wait_all();
}

const Algorithm kPosted{Op::Gather, "posted", &posted};
const Algorithm kVector{Op::Gatherv, "posted", &posted};

}  // namespace
}  // namespace retrompi::coll::gather_posted
