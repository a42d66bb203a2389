// A reduction to the first member, then a broadcast from it, each by the model's algorithm.
// code: MPICH 1.0.5 to 1.2.0, src/coll/intra_fns.c, intra_Allreduce
#include "coll/data.hpp"

namespace retrompi::coll::allreduce_reduce_bcast {
namespace {

Steps reduce_bcast(Args a) {
  a.root = 0;
  for (Steps s = a.table->make(Op::Reduce, a); s.next();) co_yield s.step();
  for (Steps s = a.table->make(Op::Bcast, a); s.next();) co_yield s.step();
}

const Algorithm kReduceBcast{Op::Allreduce, "reduce_bcast", &reduce_bcast};

}  // namespace
}  // namespace retrompi::coll::allreduce_reduce_bcast
