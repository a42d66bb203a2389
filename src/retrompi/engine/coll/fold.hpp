// How MPICH2's allreduce comes down to a power of two of members: of the first 2 (p - 2^k) each even one gives its data to the odd one
// above it and gets the result from it at the end.
// code: MPICH2 1.0 to 1.3, src/mpi/coll/allreduce.c
#pragma once
#include "data.hpp"

namespace retrompi::coll {

struct Fold {
  int32_t inner, extra, r;  // the power of two, members beside it, this member among the power of two (-1: beside)
  explicit Fold(const Args& a) : inner(power_below(a.n)), extra(a.n - inner), r(a.me - extra) {
    if (a.me < 2 * extra) r = a.me % 2 == 0 ? -1 : a.me / 2;
  }
  [[nodiscard]] int32_t rank(int32_t k) const { return k < extra ? 2 * k + 1 : k + extra; }
};

inline Steps fold_in(Args a, Fold f) {
  if (a.me >= 2 * f.extra) co_return;
  const Part all = bytes_of(0, a.bytes);
  if (f.r < 0) {
    co_yield send(a.me + 1, all);
    co_yield wait();
  } else {
    co_yield receive(a.me - 1, all, 0, kCombined);
    co_yield wait();
    co_yield combine(a.bytes);
  }
}

inline Steps fold_out(Args a, Fold f) {
  if (a.me >= 2 * f.extra) co_return;
  const Part all = bytes_of(0, a.bytes);
  co_yield f.r < 0 ? receive(a.me + 1, all) : send(a.me - 1, all);
  co_yield wait();
}

}  // namespace retrompi::coll
