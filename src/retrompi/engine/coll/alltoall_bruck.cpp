// Blocks are routed by the bits of their distance: in round k all blocks whose distance has bit k move 2^k ahead, packed into one message.
// ceil(log2 p) start-ups, about p / 2 blocks a round, and copies: the blocks are rotated first, packed, and reordered at the end.
// paper: Bruck, Ho, Kipnis, Upfal, Weathersby 1997; Thakur, Rabenseifner, Gropp 2005, 4.3; code: MPICH2 1.0 to 1.3, src/mpi/coll/alltoall.c
#include "coll/data.hpp"

namespace retrompi::coll::alltoall_bruck {
namespace {

/// What member `me` sends in the round of `bit`: for every distance with this bit, the block that it holds.
void packed(const Args& a, int32_t me, int32_t bit, std::vector<int64_t>& list) {
  list.clear();
  for (int32_t distance = 1; distance < a.n; ++distance) {
    if ((distance & bit) == 0) continue;
    const int32_t gone = distance & (bit - 1);  // distance already covered
    const int32_t source = ((me - gone) % a.n + a.n) % a.n;
    list.push_back(static_cast<int64_t>(source) * a.n + (source + distance) % a.n);
  }
}

Steps bruck(Args a) {
  if (a.n < 2) co_return;
  std::vector<int64_t> outgoing, incoming;
  co_yield copy(a.bytes * a.n);
  for (int32_t bit = 1; bit < a.n; bit <<= 1) {
    const int32_t ahead = (a.me + bit) % a.n, behind = (a.me - bit + a.n) % a.n;
    int32_t count = 0;
    for (int32_t distance = 1; distance < a.n; ++distance) count += (distance & bit) != 0;
    const int64_t bytes = a.bytes * count;
    if (Listener::now) {
      packed(a, a.me, bit, outgoing);
      packed(a, behind, bit, incoming);
    }
    co_yield copy(bytes);
    co_yield receive(behind, Part{.unit = Part::Blocks, .bytes = bytes, .list = &incoming}, 0);
    co_yield send(ahead, Part{.unit = Part::Blocks, .bytes = bytes, .list = &outgoing}, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
  co_yield copy(a.bytes * a.n, 2);
}

const Algorithm kBruck{Op::Alltoall, "bruck", &bruck};

}  // namespace
}  // namespace retrompi::coll::alltoall_bruck
