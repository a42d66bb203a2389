// code: MPICH2 1.1 to 1.3, src/mpi/comm/commutil.c, MPIR_Comm_commit: a communicator knows its nodes when any has two members
#include "coll/nodes.hpp"

#include <algorithm>

namespace retrompi::coll {

bool shared_hosts(const Args& a) {
  std::vector<int32_t> hosts(a.host.begin(), a.host.end());
  std::sort(hosts.begin(), hosts.end());
  return std::adjacent_find(hosts.begin(), hosts.end()) != hosts.end();
}

Nodes::Nodes(const Args& a) {
  if (a.host.empty()) throw ConfigError("an algorithm that asks for the members' hosts is not told them");
  auto on = [&a](int32_t r) { return a.host[static_cast<size_t>(r)]; };
  for (int32_t r = 0; r < a.n; ++r) {
    if (on(r) == on(a.me)) {
      if (r == a.me) in_mine = static_cast<int32_t>(mine.size());
      mine.push_back(r);
    }
    if (std::any_of(roots.begin(), roots.end(), [&](int32_t other) { return on(other) == on(r); })) continue;
    if (r == a.me) in_roots = static_cast<int32_t>(roots.size());
    roots.push_back(r);
  }
}

int32_t Nodes::place(const Args& a, int32_t rank) const {
  if (a.host[static_cast<size_t>(rank)] != a.host[static_cast<size_t>(a.me)]) return -1;
  return static_cast<int32_t>(std::find(mine.begin(), mine.end(), rank) - mine.begin());
}

int32_t Nodes::host_of(const Args& a, int32_t rank) const {
  const auto at =
      std::find_if(roots.begin(), roots.end(), [&](int32_t r) { return a.host[static_cast<size_t>(r)] == a.host[static_cast<size_t>(rank)]; });
  return static_cast<int32_t>(at - roots.begin());
}

Steps among(Args a, const std::vector<int32_t>& members, int32_t place, int32_t root, Op op, const Algorithm* algorithm) {
  if (place < 0 || members.size() < 2) co_return;
  a.n = static_cast<int32_t>(members.size());
  a.me = place;
  a.root = root;
  a.host = {};
  for (Steps s = algorithm ? algorithm->make(a) : a.table->make(op, a); s.next();) {
    Step t = s.step();
    t.peer = members[static_cast<size_t>(t.peer)];
    co_yield t;
  }
}

}  // namespace retrompi::coll
