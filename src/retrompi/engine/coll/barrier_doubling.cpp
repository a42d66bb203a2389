// Members beyond the largest power of two below their number report to one within it, which exchange with partners 1, 2, 4.. apart and release
// them; two members exchange. A power of two has half of its members beyond. What a member sends last to another one is complete when that one
// has matched it: nobody leaves with a message that its card does not have.
// code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_barrier.c: recursivedoubling, two_procs
#include "coll/data.hpp"

namespace retrompi::coll::barrier_doubling {
namespace {

Steps doubling(Args a) {
  const Part nothing{};
  int32_t inner = a.n == 2 ? 2 : 1;
  while (2 * inner < a.n) inner *= 2;
  const int32_t extra = a.n - inner;
  if (a.me >= inner) {
    co_yield send(a.me - inner, nothing);
    co_yield wait();
    co_yield receive(a.me - inner, nothing);
    co_yield wait();
    co_return;
  }
  if (a.me < extra) {
    co_yield receive(a.me + inner, nothing);
    co_yield wait();
  }
  for (int32_t mask = 1; mask < inner; mask <<= 1) {
    co_yield receive(a.me ^ mask, nothing, 0);
    co_yield send_sync(a.me ^ mask, nothing, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
  if (a.me < extra) {
    co_yield send_sync(a.me + inner, nothing);
    co_yield wait();
  }
}

const Algorithm kDoubling{Op::Barrier, "doubling", &doubling};

}  // namespace
}  // namespace retrompi::coll::barrier_doubling
