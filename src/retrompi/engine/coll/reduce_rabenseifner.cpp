// A reduce-scatter by recursive halving, then a binomial gather to the root. 2 log2 p start-ups, 2 n (p - 1) / p bytes.
// Members above a power of two give their data to a neighbour first; a root among them takes the first one's place at the end.
// paper: Rabenseifner 1997; Thakur, Rabenseifner, Gropp 2005, 4.5; code: MPICH2 1.0 to 1.3, src/mpi/coll/reduce.c,
// MPIR_Reduce_redscat_gather
#include "halving.hpp"

namespace retrompi::coll {
namespace {

Steps rabenseifner(Args a) {
  const int32_t inner = power_below(a.n), extra = a.n - inner;
  const Cut cut{a.bytes, inner};
  const Part all = bytes_of(0, a.bytes);
  auto rank = [extra](int32_t r) { return r < extra ? 2 * r : r + extra; };
  int32_t r = a.me - extra;  // among the power of two, -1: not there
  if (a.me < 2 * extra) {
    if (a.me % 2 != 0) {
      r = -1;
      co_yield send(a.me - 1, all);
      co_yield wait();
    } else {
      r = a.me / 2;
      co_yield receive(a.me + 1, all, 0, kCombined);
      co_yield wait();
      co_yield combine(a.bytes);
    }
  }
  if (r >= 0)
    for (Steps s = halve(r, inner, cut, rank); s.next();) co_yield s.step();

  int32_t root = a.root - extra;
  const bool outside = a.root < 2 * extra && a.root % 2 != 0;
  if (a.root < 2 * extra) root = outside ? 0 : a.root / 2;
  if (outside) {
    const Span first = after(0, inner, inner);
    if (r == 0) {
      co_yield send(a.root, cut.pieces(first.from, first.to));
      co_yield wait();
      r = -1;
    } else if (a.me == a.root) {
      co_yield receive(0, cut.pieces(first.from, first.to));
      co_yield wait();
      r = 0;
    }
  }
  if (r < 0) co_return;
  int32_t level = 0;
  while ((2 << level) < inner) ++level;
  for (int32_t mask = inner >> 1; mask > 0; mask >>= 1, --level) {
    const int32_t other = r ^ mask;
    const int32_t peer = outside && other == 0 ? a.root : rank(other);
    const Span mine = after(r, 2 * mask, inner), theirs = after(other, 2 * mask, inner);
    if (other >> level == root >> level) {
      co_yield send(peer, cut.pieces(mine.from, mine.to));
      co_yield wait();
      break;
    }
    co_yield receive(peer, cut.pieces(theirs.from, theirs.to));
    co_yield wait();
  }
}

const Algorithm kRabenseifner{Op::Reduce, "rabenseifner", &rabenseifner};

}  // namespace
}  // namespace retrompi::coll
