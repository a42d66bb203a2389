// Members beyond the largest power of two report to one within it, which exchange with partners 1, 2, 4.. apart and release them.
// code: MPICH 1.0.5 to 1.2, src/coll/intra_fns.c, intra_Barrier
#include "coll/data.hpp"

namespace retrompi::coll::barrier_power_of_two {
namespace {

Steps power_of_two(Args a) {
  const Part nothing{};
  const int32_t inner = power_below(a.n), extra = a.n - inner;
  if (a.me >= inner) {
    co_yield receive(a.me - inner, nothing, 0);
    co_yield send(a.me - inner, nothing, 1);
    co_yield wait(1);
    co_yield wait(0);
    co_return;
  }
  if (a.me < extra) {
    co_yield receive(a.me + inner, nothing);
    co_yield wait();
  }
  for (int32_t mask = 1; mask < inner; mask <<= 1) {
    co_yield receive(a.me ^ mask, nothing, 0);
    co_yield send(a.me ^ mask, nothing, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
  if (a.me < extra) {
    co_yield send(a.me + inner, nothing);
    co_yield wait();
  }
}

const Algorithm kPowerOfTwo{Op::Barrier, "power_of_two", &power_of_two};

}  // namespace
}  // namespace retrompi::coll::barrier_power_of_two
