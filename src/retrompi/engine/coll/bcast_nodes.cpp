// Host-aware broadcasts. "nodes": the root sends to the first member of its host, a binomial tree joins the first members of all
// hosts, another the members of each. "nodes_scatter": first the members on the root's host, then scatter and allgather between the hosts, then the
// other hosts.
// code: MPICH2 1.1 to 1.3, src/mpi/coll/bcast.c, MPIR_SMP_Bcast
#include "coll/nodes.hpp"

namespace retrompi::coll::bcast_nodes {
namespace {

Steps nodes(Args a) {
  const Nodes where(a);
  const Algorithm* tree = find(Op::Bcast, "binomial");
  const int32_t local = where.place(a, a.root);
  if (local > 0 && a.me == a.root) {
    co_yield send(where.mine[0], bytes_of(0, a.bytes));
    co_yield wait();
  } else if (local > 0 && where.in_mine == 0) {
    co_yield receive(a.root, bytes_of(0, a.bytes));
    co_yield wait();
  }
  for (Steps s = among(a, where.roots, where.in_roots, where.host_of(a, a.root), Op::Bcast, tree); s.next();) co_yield s.step();
  for (Steps s = among(a, where.mine, where.in_mine, 0, Op::Bcast, tree); s.next();) co_yield s.step();
}

Steps nodes_scatter(Args a) {
  const Nodes where(a);
  const Algorithm* tree = find(Op::Bcast, "binomial");
  const auto hosts = static_cast<int32_t>(where.roots.size());
  const Algorithm* between = find(Op::Bcast, power_below(hosts) == hosts ? "scatter_doubling" : "scatter_ring");
  const int32_t local = where.place(a, a.root);
  if (local > 0)
    for (Steps s = among(a, where.mine, where.in_mine, local, Op::Bcast, tree); s.next();) co_yield s.step();
  for (Steps s = among(a, where.roots, where.in_roots, where.host_of(a, a.root), Op::Bcast, between); s.next();) co_yield s.step();
  if (local <= 0)
    for (Steps s = among(a, where.mine, where.in_mine, 0, Op::Bcast, tree); s.next();) co_yield s.step();
}

const Algorithm kNodes{Op::Bcast, "nodes", &nodes, Algorithm::Hosts};
const Algorithm kNodesScatter{Op::Bcast, "nodes_scatter", &nodes_scatter, Algorithm::Hosts};

}  // namespace
}  // namespace retrompi::coll::bcast_nodes
