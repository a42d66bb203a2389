// The root receives from one member after the other, from the last down, and combines.
// code: Open MPI 1.x, ompi/mca/coll/basic, reduce_lin; SimGrid, smpi/colls/reduce, flat_tree
//
// linear_copy: a root that is the last member copies its operands into the result first; all but the first operands come into a temporary buffer.
// code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_reduce.c: basic_linear; ompi/mca/coll/basic/coll_basic_reduce.c: lin_intra
#include "coll/data.hpp"

namespace retrompi::coll::reduce_linear {
namespace {

Steps in_turn(Args a, bool copies) {
  const Part all = bytes_of(0, a.bytes);
  if (a.me != a.root) {
    co_yield send(a.root, all);
    co_yield wait();
    co_return;
  }
  const bool last = a.me == a.n - 1;
  if (copies && (a.n > 2 || (a.n == 2 && last)))
    if (const Ps ps = a.table->temporary(a, 1, a.bytes, a.bytes); ps > 0) co_yield work(ps);
  if (copies && a.n > 1 && last) co_yield copy(a.bytes);
  for (int32_t r = a.n - 1; r >= 0; --r)
    if (r != a.root) {
      co_yield receive(r, all, 0, kCombined);
      co_yield wait();
      co_yield combine(a.bytes);
    }
}

Steps linear(Args a) { return in_turn(a, false); }
Steps linear_copy(Args a) { return in_turn(a, true); }

const Algorithm kLinear{Op::Reduce, "linear", &linear};
const Algorithm kCopy{Op::Reduce, "linear_copy", &linear_copy};

}  // namespace
}  // namespace retrompi::coll::reduce_linear
