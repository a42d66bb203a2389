// Down a binomial tree: each member gets the blocks of its subtree and repeatedly passes on the upper half.
// code: MPICH2 1.0 to 1.3, src/mpi/coll/scatter.c
#include "coll/data.hpp"

namespace retrompi::coll::scatter_binomial {
namespace {

Steps binomial(Args a) {
  const int32_t me = a.relative();
  const int64_t each = a.me == a.root ? a.bytes : a.bytes_in;
  auto subtree = [a, each](int32_t top, int32_t mask) {
    const int32_t count = std::min(mask, a.n - top);
    return blocks_of(a.absolute(top), count, a.n, each * count);
  };
  int32_t mask = 1;
  for (; mask < a.n; mask <<= 1)
    if (me & mask) {
      co_yield receive(a.absolute(me - mask), subtree(me, mask));
      co_yield wait();
      break;
    }
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (me + mask < a.n) {
      co_yield send(a.absolute(me + mask), subtree(me + mask, mask));
      co_yield wait();
    }
}

const Algorithm kBinomial{Op::Scatter, "binomial", &binomial};

}  // namespace
}  // namespace retrompi::coll::scatter_binomial
