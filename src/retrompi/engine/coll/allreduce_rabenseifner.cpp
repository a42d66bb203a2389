// A reduce-scatter by recursive halving, then an allgather by recursive doubling. 2 log2 p start-ups, 2 n (p - 1) / p bytes.
// Members beyond a power of two as in allreduce_doubling.
// paper: Rabenseifner 1997; Thakur, Rabenseifner, Gropp 2005, 4.5; code: MPICH2 1.0 to 1.3, src/mpi/coll/allreduce.c
#include "coll/halving.hpp"

namespace retrompi::coll::allreduce_rabenseifner {
namespace {

Steps rabenseifner(Args a) {
  const Inner in(a.n, 1);
  // code: MPICH 3 and 4, allreduce_intra_reduce_scatter_allgather.c: incoming data to be combined go into a temporary buffer
  const int64_t comes = in.of(a.me) < 0 ? 0 : a.me < 2 * in.extra ? a.bytes : a.bytes - a.bytes / in.count;
  if (const Ps ps = a.table->temporary(a, 1, a.bytes, comes); ps > 0) co_yield work(ps);
  for (Steps s = fold_in(a, in); s.next();) co_yield s.step();
  if (const int32_t r = in.of(a.me); r >= 0) {
    for (Steps s = halve(r, in, a.bytes); s.next();) co_yield s.step();
    for (Steps s = unhalve(r, in, a.bytes); s.next();) co_yield s.step();
  }
  for (Steps s = fold_out(a, in); s.next();) co_yield s.step();
}

const Algorithm kRabenseifner{Op::Allreduce, "rabenseifner", &rabenseifner};

}  // namespace
}  // namespace retrompi::coll::allreduce_rabenseifner
