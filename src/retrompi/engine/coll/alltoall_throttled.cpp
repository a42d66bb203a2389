// A limited number of receives and sends at a time, with partners spread over the members, and a wait for all of them before the next group.
// The vector form skips empty blocks.
// code: MPICH2 1.2 to MPICH 3.0.4, src/mpi/coll/alltoall.c and alltoallv.c, ALLTOALL_THROTTLE 4; 32 from MPICH 3.1 on
#include "coll/alltoall.hpp"

namespace retrompi::coll::alltoall_throttled {
namespace {

Steps throttled(Args a, int32_t most, bool all) {
  for (int32_t first = 0; first < a.n; first += most) {
    const int32_t count = std::min(most, a.n - first);
    for (int32_t i = 0; i < count; ++i) {
      const int32_t from = (a.me + first + i) % a.n;
      if (all || a.from(from) > 0) co_yield receive_from(a, from, i);
    }
    for (int32_t i = 0; i < count; ++i) {
      const int32_t to = ((a.me - first - i) % a.n + a.n) % a.n;
      if (all || a.to(to) > 0) co_yield send_to(a, to, most + i);
    }
    co_yield wait_all();
  }
}
Steps four(Args a) { return throttled(a, 4, true); }
Steps four_filled(Args a) { return throttled(a, 4, false); }
Steps many(Args a) { return throttled(a, 32, true); }
Steps many_filled(Args a) { return throttled(a, 32, false); }

const Algorithm kFour{Op::Alltoall, "throttled_4", &four};
const Algorithm kFourVector{Op::Alltoallv, "throttled_4", &four_filled};
const Algorithm kFourTyped{Op::Alltoallw, "throttled_4", &four_filled};
const Algorithm kMany{Op::Alltoall, "throttled_32", &many};
const Algorithm kManyVector{Op::Alltoallv, "throttled_32", &many_filled};
const Algorithm kManyTyped{Op::Alltoallw, "throttled_32", &many_filled};

}  // namespace
}  // namespace retrompi::coll::alltoall_throttled
