// One copy into a shared buffer, whose address is passed along a binomial tree; every receiver copies out of it.
// assumed: how Cray MPT broadcasts in shared memory (models/craympt)
#include "coll/data.hpp"

namespace retrompi::coll::bcast_by_reference {
namespace {

Steps by_reference(Args a) {
  if (a.n < 2) co_return;
  if (a.me == a.root) co_yield copy(a.bytes, a.table->copies_root);
  Args place = a;
  place.bytes = 0;
  for (Steps s = find(Op::Bcast, "binomial")->make(place); s.next();) co_yield s.step();
  if (a.me == a.root) {  // the buffer is not reused before the last receiver has copied
    co_yield {Step::AllTaken, 0, a.n - 1};
  } else {
    co_yield copy(a.bytes, a.table->copies_leaf);
    co_yield {Step::Taken, a.root};
  }
}

const Algorithm kByReference{Op::Bcast, "by_reference", &by_reference, Algorithm::Blocking};

}  // namespace
}  // namespace retrompi::coll::bcast_by_reference
