// A broadcast of a very long vector: a binomial scatter, then an allgather around the ring. log2 p + p - 1 start-ups, 2 n (p - 1) / p bytes.
// paper: van de Geijn and others (Barnett et al. 1994); Thakur, Rabenseifner, Gropp 2005, 4.2; code: MPICH2 1.0 to 1.3, src/mpi/coll/bcast.c
#include "coll/scatter.hpp"

namespace retrompi::coll::bcast_scatter_ring {
namespace {

Steps scatter_ring(Args a) {
  for (Steps s = scatter_vector(a); s.next();) co_yield s.step();
  const CutUp cut{a.bytes, a.n};
  const int32_t me = a.relative();
  for (int32_t k = 0; k + 1 < a.n; ++k) {
    const int32_t mine = (me - k + a.n) % a.n, theirs = (me - k - 1 + a.n) % a.n;
    co_yield receive((a.me - 1 + a.n) % a.n, cut.pieces(theirs, theirs + 1), 0);
    co_yield send((a.me + 1) % a.n, cut.pieces(mine, mine + 1), 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

const Algorithm kScatterRing{Op::Bcast, "scatter_ring", &scatter_ring};

}  // namespace
}  // namespace retrompi::coll::bcast_scatter_ring
