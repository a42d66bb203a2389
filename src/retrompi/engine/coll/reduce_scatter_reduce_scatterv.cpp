// A reduction of everything to the first member, which then sends each its part.
// code: MPICH 1.0.5 to 1.2, src/coll/intra_fns.c, intra_Reduce_scatter;
// MPICH2 1.2 and 1.3, src/mpi/coll/red_scat_block.c (equal parts, so by a scatter)
#include "coll/data.hpp"

namespace retrompi::coll::reduce_scatter_reduce_scatterv {
namespace {

Steps reduce_then(Args a, Op scatter) {
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
  for (Steps s = a.table->make(scatter, part); s.next();) co_yield s.step();
}

Steps reduce_scatterv(Args a) { return reduce_then(a, Op::Scatterv); }
Steps reduce_scatter(Args a) { return reduce_then(a, Op::Scatter); }

const Algorithm kReduceScatterv{Op::ReduceScatter, "reduce_scatterv", &reduce_scatterv};
const Algorithm kBlock{Op::ReduceScatterBlock, "reduce_scatterv", &reduce_scatterv};
const Algorithm kEqual{Op::ReduceScatterBlock, "reduce_scatter", &reduce_scatter};

}  // namespace
}  // namespace retrompi::coll::reduce_scatter_reduce_scatterv
