// Shared by the algorithms of an alltoall.
#pragma once
#include "coll/data.hpp"

namespace retrompi::coll {

inline Step send_to(const Args& a, int32_t r, int32_t slot) { return send(r, block_of(static_cast<int64_t>(a.me) * a.n + r, a.to(r)), slot); }
inline Step receive_from(const Args& a, int32_t r, int32_t slot) {
  return receive(r, block_of(static_cast<int64_t>(r) * a.n + a.me, a.from(r)), slot);
}

}  // namespace retrompi::coll
