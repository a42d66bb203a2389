// All members report up a binomial tree, and the first member's release goes down the same tree.
// code: Open MPI 1.x, ompi/mca/coll/tuned, barrier tree; before it p4's global operations
#include "coll/data.hpp"

namespace retrompi::coll::barrier_tree {
namespace {

Steps tree(Args a) {
  const Part nothing{};
  int32_t mask = 1;
  for (; mask < a.n && (a.me & mask) == 0; mask <<= 1)
    if (a.me + mask < a.n) {
      co_yield receive(a.me + mask, nothing);
      co_yield wait();
    }
  if (a.me > 0) {
    co_yield send(a.me - mask, nothing);
    co_yield wait();
    co_yield receive(a.me - mask, nothing);
    co_yield wait();
  }
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (a.me + mask < a.n) {
      co_yield send(a.me + mask, nothing);
      co_yield wait();
    }
}

const Algorithm kTree{Op::Barrier, "tree", &tree};

}  // namespace
}  // namespace retrompi::coll::barrier_tree
