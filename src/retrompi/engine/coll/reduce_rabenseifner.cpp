// A reduce-scatter by recursive halving, then a binomial gather to the root. 2 log2 p start-ups, 2 n (p - 1) / p bytes.
// Members beyond a power of two send their data to a neighbour first; a root among them takes the first one's place at the end.
// paper: Rabenseifner 1997; Thakur, Rabenseifner, Gropp 2005, 4.5; code: MPICH2 1.0 to 1.3, src/mpi/coll/reduce.c,
// MPIR_Reduce_redscat_gather
#include "coll/halving.hpp"

namespace retrompi::coll::reduce_rabenseifner {
namespace {

Steps rabenseifner(Args a) {
  const Inner in(a.n, 0);
  const Cut cut{a.bytes, in.count};
  for (Steps s = fold_in(a, in); s.next();) co_yield s.step();
  int32_t r = in.of(a.me), root = in.of(a.root);
  // code: MPICH 3 and 4, reduce_intra_reduce_scatter_gather.c: incoming data to be combined go into one buffer, the result into another unless the
  // member is the root
  const int64_t comes = r < 0 ? 0 : in.extra > 0 && a.me < 2 * in.extra ? a.bytes : in.count > 1 ? a.bytes - a.bytes / in.count : 0;
  if (const Ps ps = a.table->temporary(a, a.me == a.root ? 1 : 2, a.bytes, comes + (a.me == a.root ? 0 : a.bytes)); ps > 0) co_yield work(ps);
  if (r >= 0)
    for (Steps s = halve(r, in, a.bytes); s.next();) co_yield s.step();

  const bool outside = root < 0;
  if (outside) {
    const Span first = after(0, in.count, in.count);
    root = 0;
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
  while ((2 << level) < in.count) ++level;
  for (int32_t mask = in.count >> 1; mask > 0; mask >>= 1, --level) {
    const int32_t other = r ^ mask, peer = outside && other == 0 ? a.root : in.rank(other);
    const Span mine = after(r, 2 * mask, in.count), theirs = after(other, 2 * mask, in.count);
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
}  // namespace retrompi::coll::reduce_rabenseifner
