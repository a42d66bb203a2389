// A host-aware barrier: one within each host, one among the first members of all hosts, then a broadcast of one byte within each.
// code: MPICH2 1.1 to 1.3, src/mpi/coll/barrier.c, MPI_Barrier
#include "coll/nodes.hpp"

namespace retrompi::coll::barrier_nodes {
namespace {

Steps nodes(Args a) {
  const Nodes where(a);
  for (Steps s = among(a, where.mine, where.in_mine, 0, Op::Barrier); s.next();) co_yield s.step();
  for (Steps s = among(a, where.roots, where.in_roots, 0, Op::Barrier); s.next();) co_yield s.step();
  a.bytes = 1;
  for (Steps s = among(a, where.mine, where.in_mine, 0, Op::Bcast); s.next();) co_yield s.step();
}

const Algorithm kNodes{Op::Barrier, "nodes", &nodes, Algorithm::Hosts};

}  // namespace
}  // namespace retrompi::coll::barrier_nodes
