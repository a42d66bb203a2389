// Up a binomial tree: each member sends the blocks of its subtree. log2 p start-ups, (p - 1) blocks at the root.
// code: MPICH2 1.0 to 1.3, src/mpi/coll/gather.c
#include "coll/data.hpp"

namespace retrompi::coll::gather_binomial {
namespace {

Steps binomial(Args a) {
  const int32_t me = a.relative();
  const int64_t each = a.me == a.root ? a.bytes_in : a.bytes;
  auto subtree = [a, each](int32_t top, int32_t mask) {
    const int32_t count = std::min(mask, a.n - top);
    return blocks_of(a.absolute(top), count, a.n, each * count);
  };
  for (int32_t mask = 1; mask < a.n; mask <<= 1) {
    if (me & mask) {
      co_yield send(a.absolute(me - mask), subtree(me, mask));
      co_yield wait();
      break;
    }
    if (me + mask < a.n) {
      co_yield receive(a.absolute(me + mask), subtree(me + mask, mask));
      co_yield wait();
    }
  }
}

const Algorithm kBinomial{Op::Gather, "binomial", &binomial};

}  // namespace
}  // namespace retrompi::coll::gather_binomial
