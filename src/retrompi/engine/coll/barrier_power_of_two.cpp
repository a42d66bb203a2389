// Members beyond a power of two report to one within it, which exchange with partners 1, 2, 4.. apart and release them.
//
// power_of_two: the largest one. code: MPICH 1.0.5 to 1.2, src/coll/intra_fns.c, intra_Barrier
// doubling: the largest one below the number of members, so that a power of two has half of its members beyond; two members exchange. What a
// member sends last to another one is complete when that one has matched it: nobody leaves with a message that its card does not have.
// code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_barrier.c: recursivedoubling, two_procs
#include "coll/data.hpp"

namespace retrompi::coll::barrier_power_of_two {
namespace {

/// `inner`: the power of two. `sync`: as `doubling` sends, whose members beyond post their receive when they have reported.
Steps within(Args a, int32_t inner, bool sync) {
  const Part nothing{};
  const auto last = [&](int32_t peer, int32_t slot) { return sync ? send_sync(peer, nothing, slot) : send(peer, nothing, slot); };
  if (a.me >= inner) {
    if (!sync) co_yield receive(a.me - inner, nothing, 0);
    co_yield send(a.me - inner, nothing, 1);
    co_yield wait(1);
    if (sync) co_yield receive(a.me - inner, nothing, 0);
    co_yield wait(0);
    co_return;
  }
  const bool releases = a.me < a.n - inner;
  if (releases) {
    co_yield receive(a.me + inner, nothing);
    co_yield wait();
  }
  for (int32_t mask = 1; mask < inner; mask <<= 1) {
    co_yield receive(a.me ^ mask, nothing, 0);
    co_yield last(a.me ^ mask, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
  if (releases) {
    co_yield last(a.me + inner, 0);
    co_yield wait();
  }
}

Steps power_of_two(Args a) { return within(a, power_below(a.n), false); }
Steps doubling(Args a) { return within(a, a.n == 2 ? 2 : power_below(a.n - 1), true); }

const Algorithm kPowerOfTwo{Op::Barrier, "power_of_two", &power_of_two};
const Algorithm kDoubling{Op::Barrier, "doubling", &doubling};

}  // namespace
}  // namespace retrompi::coll::barrier_power_of_two
