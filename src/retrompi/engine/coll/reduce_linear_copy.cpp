// The root receives from one member after the other, from the last down, and combines; if it is the last itself, it copies its operands into the
// result first.
// code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_reduce.c: basic_linear; ompi/mca/coll/basic/coll_basic_reduce.c: lin_intra
#include "coll/data.hpp"

namespace retrompi::coll::reduce_linear_copy {
namespace {

Steps linear(Args a) {
  const Part all = bytes_of(0, a.bytes);
  if (a.me != a.root) {
    co_yield send(a.root, all);
    co_yield wait();
    co_return;
  }
  const bool last = a.me == a.n - 1;
  // The first operands go into the result, all others into a temporary buffer.
  if (a.n > 2 || (a.n == 2 && last))
    if (const Ps ps = a.table->temporary(a, 1, a.bytes, a.bytes); ps > 0) co_yield work(ps);
  if (a.n > 1 && last) co_yield copy(a.bytes);
  for (int32_t r = a.n - 1; r >= 0; --r)
    if (r != a.root) {
      co_yield receive(r, all, 0, kCombined);
      co_yield wait();
      co_yield combine(a.bytes);
    }
}

const Algorithm kLinear{Op::Reduce, "linear_copy", &linear};

}  // namespace
}  // namespace retrompi::coll::reduce_linear_copy
