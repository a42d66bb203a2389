// Recursive doubling of an allgather, shared by the algorithms that end with one.
#pragma once
#include "coll/data.hpp"

namespace retrompi::coll {

/// The data gathered: the blocks of the members, or the pieces of a vector cut as MPICH2's broadcast cuts it.
struct Gathered {
  const Args& a;
  bool vector;
  /// Of the members from..to-1, counted from the root.
  [[nodiscard]] Part operator()(int32_t from, int32_t to) const {
    return vector ? CutUp{a.bytes, a.n}.pieces(from, to) : blocks_of(from, to - from, a.n, total(a, from, to - from));
  }
};

/// In round k members 2^k apart exchange all they have. If n is not a power of two, those without a partner are served by
/// the others of their subtree. `a` must outlive the steps.
Steps doubling(const Args& a, bool vector);

}  // namespace retrompi::coll
