// All receives in the order of the sources, all sends in the order of the destinations, then one wait.
// code: MPICH 3.0, src/mpi/coll/inhb_allgather.c and its relatives (the blocking forms start these and wait)
#include "coll/data.hpp"

namespace retrompi::coll::neighbor_posted {
namespace {

Steps posted(Args a, bool gather) {
  const auto sends = static_cast<int32_t>(a.dests.size()), receives = static_cast<int32_t>(a.sources.size());
  for (int32_t k = 0; k < receives; ++k) co_yield irecv(a.sources[static_cast<size_t>(k)], a.from(k), k);
  for (int32_t k = 0; k < sends; ++k) co_yield isend(a.dests[static_cast<size_t>(k)], gather ? a.bytes : a.to(k), receives + k);
  co_yield wait_all();
}
Steps gather(Args a) { return posted(a, true); }
Steps exchange(Args a) { return posted(a, false); }

const Algorithm kAllgather{Op::NeighborAllgather, "posted", &gather};
const Algorithm kAllgatherv{Op::NeighborAllgatherv, "posted", &gather};
const Algorithm kAlltoall{Op::NeighborAlltoall, "posted", &exchange};
const Algorithm kAlltoallv{Op::NeighborAlltoallv, "posted", &exchange};
const Algorithm kAlltoallw{Op::NeighborAlltoallw, "posted", &exchange};

}  // namespace
}  // namespace retrompi::coll::neighbor_posted
