// paper: Thakur, Rabenseifner, Gropp 2005, 4.1; code: MPICH2 1.0 to 1.3, src/mpi/coll/allgather.c
#include "coll/doubling.hpp"

namespace retrompi::coll {

Steps doubling(const Args& a, bool vector) {
  const Gathered part{a, vector};
  const int32_t n = a.n, me = a.relative();
  int32_t level = 0;
  for (int32_t mask = 1; mask < n; mask <<= 1, ++level) {
    const int32_t other = me ^ mask;
    const int32_t mine = me >> level << level, theirs = other >> level << level;
    if (other < n) {
      co_yield receive(a.absolute(other), part(theirs, std::min(theirs + mask, n)), 0);
      co_yield send(a.absolute(other), part(mine, std::min(mine + mask, n)), 1);
      co_yield wait(1);
      co_yield wait(0);
    }
    if (theirs + mask <= n) continue;
    const int32_t served = n - theirs;  // members of my subtree that had a partner
    int32_t deep = level;
    for (int32_t half = mask >> 1; half > 0; half >>= 1, --deep) {
      const int32_t next = me ^ half, top = me >> deep << deep;
      if (next > me && me < top + served && next >= top + served) {
        co_yield send(a.absolute(next), part(theirs, n));
        co_yield wait();
      } else if (next < me && next < top + served && me >= top + served) {
        co_yield receive(a.absolute(next), part(theirs, n));
        co_yield wait();
      }
    }
  }
}

}  // namespace retrompi::coll
