// Host-aware reductions: within each host to its first member, then among those, then (the root's host comes last in a reduction to
// it) or (an allreduce's result goes to all of the host) within a host again. The model chooses the algorithms within and between hosts.
// "nodes_forward" reduces to member 0, wherever the root is.
// code: MPICH 4.0, src/mpid/ch4/src/ch4_coll_impl.h, MPIDI_Reduce_intra_composition_alpha (nodes_forward)
// code: MPICH2 1.1 to 1.3, src/mpi/coll/reduce.c, MPI_Reduce, and allreduce.c, MPI_Allreduce, for commutative operations
#include "coll/nodes.hpp"

namespace retrompi::coll::reduce_nodes {
namespace {

Steps reduce(Args a) {
  const Nodes where(a);
  const int32_t local = where.place(a, a.root);
  if (local < 0)
    for (Steps s = among(a, where.mine, where.in_mine, 0, Op::Reduce); s.next();) co_yield s.step();
  for (Steps s = among(a, where.roots, where.in_roots, where.host_of(a, a.root), Op::Reduce); s.next();) co_yield s.step();
  if (local >= 0)
    for (Steps s = among(a, where.mine, where.in_mine, local, Op::Reduce); s.next();) co_yield s.step();
}

/// Reduces to member 0, which forwards the result to another root.
Steps forward(Args a) {
  const Nodes where(a);
  if (a.me == 0 && a.root != 0) {  // forward the result to the root
    if (const Ps ps = a.table->temporary(a, 2, a.bytes, a.bytes); ps > 0) co_yield work(ps);
    a.buffers = 1;
  }
  for (Steps s = among(a, where.mine, where.in_mine, 0, Op::Reduce); s.next();) co_yield s.step();
  for (Steps s = among(a, where.roots, where.in_roots, where.host_of(a, 0), Op::Reduce); s.next();) co_yield s.step();
  if (a.root == 0) co_return;
  if (a.me == 0) {
    co_yield send(a.root, bytes_of(0, a.bytes));
    co_yield wait();
  } else if (a.me == a.root) {
    co_yield receive(0, bytes_of(0, a.bytes));
    co_yield wait();
  }
}

Steps allreduce(Args a) {
  const Nodes where(a);
  for (Steps s = among(a, where.mine, where.in_mine, 0, Op::Reduce); s.next();) co_yield s.step();
  for (Steps s = among(a, where.roots, where.in_roots, 0, Op::Allreduce); s.next();) co_yield s.step();
  for (Steps s = among(a, where.mine, where.in_mine, 0, Op::Bcast); s.next();) co_yield s.step();
}

const Algorithm kReduce{Op::Reduce, "nodes", &reduce, Algorithm::Hosts};
const Algorithm kForward{Op::Reduce, "nodes_forward", &forward, Algorithm::Hosts};
const Algorithm kAllreduce{Op::Allreduce, "nodes", &allreduce, Algorithm::Hosts};

}  // namespace
}  // namespace retrompi::coll::reduce_nodes
