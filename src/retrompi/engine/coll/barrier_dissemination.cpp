// Dissemination: in round k every member sends to the one 2^k ranks ahead and receives from the one 2^k ranks behind.
// ceil(log2 p) start-ups. paper: Hensgen, Finkel, Manber 1988, Two algorithms for barrier synchronization;
// code: MPICH2 1.0 to 1.3, src/mpi/coll/barrier.c (MPICH 1: barrier_power_of_two)
#include "coll/data.hpp"

namespace retrompi::coll::barrier_dissemination {
namespace {

Steps dissemination(Args a) {
  for (int32_t k = 1; k < a.n; k <<= 1) {
    co_yield receive((a.me - k + a.n) % a.n, Part{}, 0);
    co_yield send((a.me + k) % a.n, Part{}, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
}

const Algorithm kDissemination{Op::Barrier, "dissemination", &dissemination};

}  // namespace
}  // namespace retrompi::coll::barrier_dissemination
