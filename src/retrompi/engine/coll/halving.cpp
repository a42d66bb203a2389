// paper: Rabenseifner 1997, A new optimized MPI reduce algorithm; Thakur, Rabenseifner, Gropp 2005, 4.5;
// code: MPICH2 1.0 to 1.3, src/mpi/coll/reduce.c and allreduce.c
#include "coll/halving.hpp"

namespace retrompi::coll {

Steps fold_in(Args a, Inner in) {
  if (a.me >= 2 * in.extra) co_return;
  const Part all = bytes_of(0, a.bytes);
  const int32_t neighbour = a.me ^ 1;
  if (in.of(a.me) < 0) {
    co_yield send(neighbour, all);
    co_yield wait();
  } else {
    co_yield receive(neighbour, all, 0, kCombined);
    co_yield wait();
    co_yield combine(a.bytes);
  }
}

Steps fold_out(Args a, Inner in) {
  if (a.me >= 2 * in.extra) co_return;
  const Part all = bytes_of(0, a.bytes);
  if (in.of(a.me) < 0)
    co_yield receive(a.me ^ 1, all);
  else
    co_yield send(a.me ^ 1, all);
  co_yield wait();
}

Steps halve(int32_t r, Inner in, int64_t bytes) {
  const Cut cut{bytes, in.count};
  for (int32_t mask = 1; mask < in.count; mask <<= 1) {
    const Span kept = after(r, 2 * mask, in.count), given = after(r ^ mask, 2 * mask, in.count);
    const Part mine = cut.pieces(kept.from, kept.to);
    co_yield receive(in.rank(r ^ mask), mine, 0, kCombined);
    co_yield send(in.rank(r ^ mask), cut.pieces(given.from, given.to), 1);
    co_yield wait(1);
    co_yield wait(0);
    co_yield combine(mine.bytes);
  }
}

Steps unhalve(int32_t r, Inner in, int64_t bytes) {
  const Cut cut{bytes, in.count};
  for (int32_t mask = in.count >> 1; mask > 0; mask >>= 1) {
    const Span mine = after(r, 2 * mask, in.count), theirs = after(r ^ mask, 2 * mask, in.count);
    co_yield receive(in.rank(r ^ mask), cut.pieces(theirs.from, theirs.to), 0);
    co_yield send(in.rank(r ^ mask), cut.pieces(mine.from, mine.to), 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

}  // namespace retrompi::coll
