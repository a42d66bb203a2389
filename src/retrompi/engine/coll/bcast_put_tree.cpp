// The binomial tree by one-sided puts into buffers that every member has, each followed by a flag.
// assumed: how Cray MPT broadcasts between processing elements (models/craympt)
#include "coll/data.hpp"

namespace retrompi::coll::bcast_put_tree {
namespace {

Steps put_tree(Args a) {
  if (a.n < 2) co_return;
  const int32_t me = a.relative();
  if (me == 0) co_yield copy(a.bytes, a.table->copies_root);
  int32_t mask = 1;
  for (; mask < a.n; mask <<= 1)
    if (me & mask) {
      co_yield irecv(a.absolute(me - mask), 0);  // the flag: the data have arrived
      co_yield wait();
      break;
    }
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (me + mask < a.n) {
      const int32_t child = a.absolute(me + mask);
      co_yield {Step::Put, child, 0, a.bytes};  // data before flag
      co_yield isend(child, 0);
      co_yield wait();
    }
  if (me != 0) co_yield copy(a.bytes, a.table->copies_leaf);
}

const Algorithm kPutTree{Op::Bcast, "put_tree", &put_tree, Algorithm::Blocking};

}  // namespace
}  // namespace retrompi::coll::bcast_put_tree
