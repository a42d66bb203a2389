// Recursive halving among a power of two of members, shared by Rabenseifner's algorithms.
#pragma once
#include "coll/data.hpp"

namespace retrompi::coll {

/// A power of two of the members does the work, also for the others: of the first 2 * extra members the even ones (`odd` 0) or
/// the odd ones (`odd` 1) work.
struct Inner {
  int32_t count, extra, odd;
  Inner(int32_t n, int32_t which) : count(power_below(n)), extra(n - count), odd(which) {}
  /// Conversion to ranks of the communicator and back (-1: does not work).
  [[nodiscard]] int32_t rank(int32_t r) const { return r < extra ? 2 * r + odd : r + extra; }
  [[nodiscard]] int32_t of(int32_t rank) const { return rank >= 2 * extra ? rank - extra : rank % 2 == odd ? rank / 2 : -1; }
};

/// The pieces that member `r` is responsible for when it has exchanged with the partners at 1, 2, .. `mask` / 2.
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

/// Members beyond the power of two send the whole vector to the neighbour that works for them.
Steps fold_in(Args a, Inner in);
/// A reduce-scatter, from neighbours outwards: in each round half of the pieces of which a member is still in charge go to its partner, and the other
/// half is combined with the partner's.
Steps halve(int32_t r, Inner in, int64_t bytes);
/// The allgather, with the rounds in reverse order: every member gets all pieces.
Steps unhalve(int32_t r, Inner in, int64_t bytes);
/// Members beyond the power of two get the result.
Steps fold_out(Args a, Inner in);

}  // namespace retrompi::coll
