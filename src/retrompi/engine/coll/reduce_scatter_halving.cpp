// Recursive halving: partners are half of the members apart, then a quarter, and so on; each sends the partner's half and combines
// its own half. log2 p start-ups, n (p - 1) / p bytes. Of the first 2 (p - 2^k) members each even one leaves its work to the odd
// one above it. Nothing is sent for an empty part.
// paper: Thakur, Rabenseifner, Gropp 2005, 4.4; code: MPICH2 1.0 to 1.3, src/mpi/coll/red_scat.c
#include "coll/data.hpp"

namespace retrompi::coll::reduce_scatter_halving {
namespace {

Steps halving(Args a) {
  const int32_t inner = power_below(a.n), extra = a.n - inner;
  auto rank = [extra](int32_t r) { return r < extra ? 2 * r + 1 : r + extra; };
  auto begin = [extra](int32_t r) { return r < extra ? 2 * r : r + extra; };  // first block that member r of the power of two works for
  auto parts = [&](int32_t from, int32_t to) {
    const int32_t first = begin(from), count = begin(to) - first;
    return blocks_of(first, count, a.n, total(a, first, count));
  };
  const Part all = blocks_of(0, a.n, a.n, total(a, 0, a.n));
  if (all.bytes == 0) co_return;
  int32_t r = a.me - extra;
  if (a.me < 2 * extra) {
    if (a.me % 2 == 0) {
      co_yield send(a.me + 1, all);
      co_yield wait();
      if (a.from(a.me) > 0) {
        co_yield receive(a.me + 1, block_of(a.me, a.from(a.me)));
        co_yield wait();
      }
      co_return;
    }
    r = a.me / 2;
    co_yield receive(a.me - 1, all, 0, kCombined);
    co_yield wait();
    co_yield combine(all.bytes);
  }
  for (int32_t mask = inner >> 1; mask > 0; mask >>= 1) {
    const int32_t mine = r & ~(mask - 1), theirs = mine ^ mask, peer = rank(r ^ mask);
    const Part kept = parts(mine, mine + mask), given = parts(theirs, theirs + mask);
    if (kept.bytes > 0) co_yield receive(peer, kept, 0, kCombined);
    if (given.bytes > 0) co_yield send(peer, given, 1);
    if (given.bytes > 0) co_yield wait(1);
    if (kept.bytes > 0) {
      co_yield wait(0);
      co_yield combine(kept.bytes);
    }
  }
  if (a.me < 2 * extra && a.from(a.me - 1) > 0) {
    co_yield send(a.me - 1, block_of(a.me - 1, a.from(a.me - 1)));
    co_yield wait();
  }
}

const Algorithm kHalving{Op::ReduceScatter, "halving", &halving};
const Algorithm kBlock{Op::ReduceScatterBlock, "halving", &halving};

}  // namespace
}  // namespace retrompi::coll::reduce_scatter_halving
