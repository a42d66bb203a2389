// paper: Barnett, Shuler, van de Geijn, Gupta, Payne, Watts 1994, Interprocessor collective communication library (InterCom);
// code: MPICH2 1.2 and 1.3, src/mpi/coll/bcast.c, scatter_for_bcast
#include "coll/scatter.hpp"

namespace retrompi::coll {

Steps scatter_vector(Args a) {
  const int32_t me = a.relative();
  const CutUp cut{a.bytes, a.n};
  int32_t mask = 1;
  for (; mask < a.n; mask <<= 1)
    if (me & mask) {
      const Part mine = cut.pieces(me, std::min(me + mask, a.n));
      if (mine.bytes > 0) {
        co_yield receive(a.absolute(me - mask), mine);
        co_yield wait();
      }
      break;
    }
  for (mask >>= 1; mask > 0; mask >>= 1) {
    if (me + mask >= a.n) continue;
    const Part theirs = cut.pieces(me + mask, std::min(me + 2 * mask, a.n));
    if (theirs.bytes == 0) continue;
    co_yield send(a.absolute(me + mask), theirs);
    co_yield wait();
  }
}

}  // namespace retrompi::coll
