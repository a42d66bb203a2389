// A reduction of everything to the first member, which then sends each its part.
// code: MPICH 1.0.12 and 1.1, src/coll/intra_fns.c, intra_Reduce_scatter
#include "../coll.hpp"

namespace retrompi::coll {
namespace {

Steps reduce_scatterv(Args a) {
  Args all = a;
  all.root = 0;
  all.bytes = volume(Op::ReduceScatter, a);
  for (Steps s = a.table->make(Op::Reduce, all); s.next();) co_yield s.step();
  Args part = a;
  part.root = 0;
  part.bytes = a.bytes_in;
  part.bytes_in = a.from(a.me);
  part.out = a.in;
  part.in = {};
  for (Steps s = a.table->make(Op::Scatterv, part); s.next();) co_yield s.step();
}

const Algorithm kReduceScatterv{Op::ReduceScatter, "reduce_scatterv", &reduce_scatterv};
const Algorithm kBlock{Op::ReduceScatterBlock, "reduce_scatterv", &reduce_scatterv};

}  // namespace
}  // namespace retrompi::coll
