// In round k members 2^k apart exchange their subtrees' partial results; those from lower ranks also go into the result.
// ceil(log2 p) start-ups, n log2 p bytes.
// code: MPICH2 1.0 to 1.3, src/mpi/coll/scan.c and exscan.c
#include "coll/data.hpp"

namespace retrompi::coll::scan_doubling {
namespace {

Steps doubling(Args a) {
  const Part all = bytes_of(0, a.bytes);
  for (int32_t mask = 1; mask < a.n; mask <<= 1) {
    const int32_t peer = a.me ^ mask;
    if (peer >= a.n) continue;
    const bool below = peer < a.me;
    co_yield receive(peer, all, 0, Into{static_cast<uint8_t>(below ? 3 : 2), true});
    co_yield send(peer, all, 1, 1);
    co_yield wait(1);
    co_yield wait(0);
    co_yield combine(below ? 2 * a.bytes : a.bytes);
  }
}

const Algorithm kScan{Op::Scan, "doubling", &doubling};
const Algorithm kExscan{Op::Exscan, "doubling", &doubling};

}  // namespace
}  // namespace retrompi::coll::scan_doubling
