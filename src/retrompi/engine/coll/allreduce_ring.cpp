// A reduce-scatter around the ring, then an allgather around it. 2 (p - 1) start-ups, 2 n (p - 1) / p bytes.
// paper: Patarasuk, Yuan 2009, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations; code: Open MPI 1.3 on, coll/tuned, ring
#include "coll/data.hpp"

namespace retrompi::coll::allreduce_ring {
namespace {

Steps ring(Args a) {
  const Cut cut{a.bytes, a.n};
  const int32_t left = (a.me - 1 + a.n) % a.n, right = (a.me + 1) % a.n;
  auto piece = [&](int32_t k) {
    const int32_t i = ((a.me - k) % a.n + a.n) % a.n;
    return cut.pieces(i, i + 1);
  };
  for (int32_t k = 0; k + 1 < a.n; ++k) {
    co_yield receive(left, piece(k + 1), 0, kCombined);
    co_yield send(right, piece(k), 1);
    co_yield wait(1);
    co_yield wait(0);
    co_yield combine(piece(k + 1).bytes);
  }
  for (int32_t k = 0; k + 1 < a.n; ++k) {
    co_yield receive(left, piece(k), 0);
    co_yield send(right, piece(k - 1), 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

const Algorithm kRing{Op::Allreduce, "ring", &ring};

}  // namespace
}  // namespace retrompi::coll::allreduce_ring
