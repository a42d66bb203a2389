// Reduce-scatter by recursive halving, from neighbours outwards, among a power of two of members: in each round half of what a member
// still answers for goes to its partner and the other half is combined with the partner's.
// paper: Rabenseifner 1997, A new optimized MPI reduce algorithm; Thakur, Rabenseifner, Gropp 2005, 4.5
#pragma once
#include "data.hpp"

namespace retrompi::coll {

/// The pieces that member `r` of `count` answers for when it has exchanged with partners at 1, 2, .. `mask` / 2.
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

/// `r` of `count` members, a power of two; `peer(r)` their ranks of the communicator.
template <class Peer>
Steps halve(int32_t r, int32_t count, Cut cut, Peer peer) {
  for (int32_t mask = 1; mask < count; mask <<= 1) {
    const Span kept = after(r, 2 * mask, count), given = after(r ^ mask, 2 * mask, count);
    const Part mine = cut.pieces(kept.from, kept.to);
    co_yield receive(peer(r ^ mask), mine, 0, kCombined);
    co_yield send(peer(r ^ mask), cut.pieces(given.from, given.to), 1);
    co_yield wait(1);
    co_yield wait(0);
    co_yield combine(mine.bytes);
  }
}

/// The way back: everybody gets all pieces.
template <class Peer>
Steps unhalve(int32_t r, int32_t count, Cut cut, Peer peer) {
  for (int32_t mask = count >> 1; mask > 0; mask >>= 1) {
    const Span mine = after(r, 2 * mask, count), theirs = after(r ^ mask, 2 * mask, count);
    co_yield receive(peer(r ^ mask), cut.pieces(theirs.from, theirs.to), 0);
    co_yield send(peer(r ^ mask), cut.pieces(mine.from, mine.to), 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

}  // namespace retrompi::coll
