// Recursive halving among a power of two of members, shared by Rabenseifner's algorithms.
#pragma once
#include "coll/data.hpp"

namespace retrompi::coll {

/// A power of two of the members, for the others of which a neighbour works: of the first 2 * extra members the even ones (`odd` 0) or
/// the odd ones (`odd` 1) work.
struct Inner {
  int32_t count, extra, odd;
  Inner(int32_t n, int32_t which) : count(power_below(n)), extra(n - count), odd(which) {}
  /// Its rank of the communicator, and back (-1: does not work).
  [[nodiscard]] int32_t rank(int32_t r) const { return r < extra ? 2 * r + odd : r + extra; }
  [[nodiscard]] int32_t of(int32_t rank) const { return rank >= 2 * extra ? rank - extra : rank % 2 == odd ? rank / 2 : -1; }
};

/// The pieces that member `r` answers for when it has exchanged with the partners at 1, 2, .. `mask` / 2.
struct Span {
  int32_t from = 0, to = 0;
};
constexpr Span after(int32_t r, int32_t mask, int32_t count) {
  Span s{0, count};
  for (int32_t bit = 1; bit < mask; bit <<= 1) {
    const int32_t middle = (s.from + s.to) / 2;
    if (r & bit)
      s.from = middle;
    else
      s.to = middle;
  }
  return s;
}

/// Those beside the power of two give the whole vector to the neighbour that works for them.
Steps fold_in(Args a, Inner in);
/// A reduce-scatter, from neighbours outwards: in each round half of what a member still answers for goes to its partner, and the other half
/// is combined with the partner's.
Steps halve(int32_t r, Inner in, int64_t bytes);
/// The way back: everybody gets all pieces.
Steps unhalve(int32_t r, Inner in, int64_t bytes);
/// Those beside the power of two get the result.
Steps fold_out(Args a, Inner in);

}  // namespace retrompi::coll
