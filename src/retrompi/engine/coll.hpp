// What a collective algorithm is: the steps of one member, made one at a time.
#pragma once
#include <span>
#include <string_view>

#include "trace.hpp"

namespace retrompi::coll {

/// One step of one member. Peers are ranks of the communicator.
struct Step {
  enum Kind : uint8_t {
    Isend,    // starts a send into `slot`
    Irecv,    // starts a receive into `slot`
    Wait,     // for `slot`
    WaitAll,  // for every slot that is open, in the order in which they were started
    Copy,     // `bytes` within the member's own memory
    Combine   // `bytes` of operands are combined
  } kind = Wait;
  int32_t peer = 0;
  int32_t slot = 0;
  int64_t bytes = 0;
};

/// What a member is called with.
struct Args {
  int32_t n = 1, me = 0, root = 0;
  int64_t bytes = 0;                 // bcast, reduce, allreduce, scan: the vector; the others: one block
  std::span<const int64_t> out, in;  // vector forms: bytes to and from each member, in the order of their ranks; empty: `bytes` each
  [[nodiscard]] int64_t to(int32_t r) const { return out.empty() ? bytes : out[static_cast<size_t>(r)]; }
  [[nodiscard]] int64_t from(int32_t r) const { return in.empty() ? bytes : in[static_cast<size_t>(r)]; }
};

}  // namespace retrompi::coll
