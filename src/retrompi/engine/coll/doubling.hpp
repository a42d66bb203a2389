// Recursive doubling of an allgather: in round k members 2^k apart exchange all they have. When the number is no power of two,
// those without a partner are served by the others of their subtree.
// paper: Thakur, Rabenseifner, Gropp 2005, 4.1; code: MPICH2 1.0 to 1.3, src/mpi/coll/allgather.c
#pragma once
#include "data.hpp"

namespace retrompi::coll {

/// `me` of `n`, `peer(r)` is the rank of the communicator of member r, `part(from, to)` the blocks of the members from..to-1.
template <class Peer, class Blocks>
Steps doubling(int32_t n, int32_t me, Peer peer, Blocks part) {
  int32_t level = 0;
  for (int32_t mask = 1; mask < n; mask <<= 1, ++level) {
    const int32_t other = me ^ mask;
    const int32_t mine = me >> level << level, theirs = other >> level << level;
    if (other < n) {
      co_yield receive(peer(other), part(theirs, std::min(theirs + mask, n)), 0);
      co_yield send(peer(other), part(mine, std::min(mine + mask, n)), 1);
      co_yield wait(1);
      co_yield wait(0);
    }
    if (theirs + mask <= n) continue;
    const int32_t served = n - theirs;  // members of my subtree that had a partner
    int32_t deep = level;
    for (int32_t half = mask >> 1; half > 0; half >>= 1, --deep) {
      const int32_t next = me ^ half, top = me >> deep << deep;
      if (next > me && me < top + served && next >= top + served) {
        co_yield send(peer(next), part(theirs, n));
        co_yield wait();
      } else if (next < me && next < top + served && me >= top + served) {
        co_yield receive(peer(next), part(theirs, n));
        co_yield wait();
      }
    }
  }
}

}  // namespace retrompi::coll
