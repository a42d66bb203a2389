// Collectives that know which members share a host: within the hosts and between one member of each.
#pragma once
#include "coll/data.hpp"

namespace retrompi::coll {

/// Whether some members share a host.
bool shared_hosts(const Args& a);

/// The position of a member. Members of a host in the order of their ranks; the first of each is its host's root.
struct Nodes {
  std::vector<int32_t> mine, roots;
  int32_t in_mine = 0, in_roots = -1;  // this member's place; -1: it is not a root
  explicit Nodes(const Args& a);
  /// Place in `mine` of a member; -1 when it runs on another host.
  [[nodiscard]] int32_t place(const Args& a, int32_t rank) const;
  /// Place in `roots` of the root of a member's host.
  [[nodiscard]] int32_t host_of(const Args& a, int32_t rank) const;
};

/// An operation among some of the members, this one being the `place`-th: by `algorithm`, or by the model's choice. Empty if it takes no part.
Steps among(Args a, const std::vector<int32_t>& members, int32_t place, int32_t root, Op op, const Algorithm* algorithm = nullptr);

}  // namespace retrompi::coll
