// A reduce-scatter by recursive halving, then an allgather by recursive doubling. 2 log2 p start-ups, 2 n (p - 1) / p bytes.
// paper: Rabenseifner 1997; Thakur, Rabenseifner, Gropp 2005, 4.5; code: MPICH2 1.0 to 1.3, src/mpi/coll/allreduce.c
#include "fold.hpp"
#include "halving.hpp"

namespace retrompi::coll {
namespace {

Steps rabenseifner(Args a) {
  const Fold f(a);
  for (Steps s = fold_in(a, f); s.next();) co_yield s.step();
  if (f.r >= 0) {
    const Cut cut{a.bytes, f.inner};
    auto rank = [f](int32_t r) { return f.rank(r); };
    for (Steps s = halve(f.r, f.inner, cut, rank); s.next();) co_yield s.step();
    for (Steps s = unhalve(f.r, f.inner, cut, rank); s.next();) co_yield s.step();
  }
  for (Steps s = fold_out(a, f); s.next();) co_yield s.step();
}

const Algorithm kRabenseifner{Op::Allreduce, "rabenseifner", &rabenseifner};

}  // namespace
}  // namespace retrompi::coll
