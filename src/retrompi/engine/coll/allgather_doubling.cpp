// Recursive doubling. log2 p start-ups, (p - 1) blocks.
// paper: Thakur, Rabenseifner, Gropp 2005, 4.1; code: MPICH2 1.0 to 1.3, src/mpi/coll/allgather.c and allgatherv.c
#include "coll/doubling.hpp"

namespace retrompi::coll::allgather_doubling {
namespace {

Steps by_doubling(Args a) {
  if (a.in.empty()) a.bytes_in = a.bytes;
  a.root = 0;
  for (Steps s = doubling(a, false); s.next();) co_yield s.step();
}

const Algorithm kDoubling{Op::Allgather, "doubling", &by_doubling};
const Algorithm kVector{Op::Allgatherv, "doubling", &by_doubling};

}  // namespace
}  // namespace retrompi::coll::allgather_doubling
