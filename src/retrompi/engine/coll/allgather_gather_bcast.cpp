// A gather to the first member and a broadcast of everything from it, each by the model's algorithm.
// code: Open MPI 1.x, ompi/mca/coll/basic, allgather_intra; the straightforward algorithm of the first MPI libraries
#include "coll/data.hpp"

namespace retrompi::coll::allgather_gather_bcast {
namespace {

Steps gather_bcast(Args a, Op gather) {
  if (a.in.empty()) a.bytes_in = a.bytes;
  Args whole = a;
  whole.root = 0;
  whole.bytes = total(a, 0, a.n);
  Args each = a;
  each.root = 0;
  each.bytes = a.from(a.me);
  for (Steps s = a.table->make(gather, each); s.next();) co_yield s.step();
  for (Steps s = a.table->make(Op::Bcast, whole); s.next();) co_yield s.step();
}
Steps equal(Args a) { return gather_bcast(a, Op::Gather); }
Steps vector(Args a) { return gather_bcast(a, Op::Gatherv); }

const Algorithm kEqual{Op::Allgather, "gather_bcast", &equal};
const Algorithm kVector{Op::Allgatherv, "gather_bcast", &vector};

}  // namespace
}  // namespace retrompi::coll::allgather_gather_bcast
