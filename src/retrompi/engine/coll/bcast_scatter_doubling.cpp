// A broadcast of a long vector: a binomial scatter, then an allgather by recursive doubling. 2 log2 p start-ups, 2 n (p - 1) / p bytes.
// paper: van de Geijn and others (Barnett et al. 1994); Thakur, Rabenseifner, Gropp 2005, 4.2;
// code: MPICH2 1.0 to 1.3, src/mpi/coll/bcast.c
#include "coll/doubling.hpp"
#include "coll/scatter.hpp"

namespace retrompi::coll::bcast_scatter_doubling {
namespace {

Steps scatter_doubling(Args a) {
  for (Steps s = scatter_vector(a); s.next();) co_yield s.step();
  for (Steps s = doubling(a, true); s.next();) co_yield s.step();
}

const Algorithm kScatterDoubling{Op::Bcast, "scatter_doubling", &scatter_doubling};

}  // namespace
}  // namespace retrompi::coll::bcast_scatter_doubling
