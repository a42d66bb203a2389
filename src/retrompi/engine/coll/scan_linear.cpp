// Each member waits for the one before it. The exclusive form sends the same messages; only its result excludes the member's own data.
// p - 1 start-ups. code: MPICH 1.0.5 to 1.2, src/coll/intra_fns.c, intra_Scan
#include "coll/data.hpp"

namespace retrompi::coll::scan_linear {
namespace {

// The forwarded data include the member's own; the result of the exclusive form does not.
Steps linear(Args a) {
  if (a.me > 0) {
    co_yield receive(a.me - 1, bytes_of(0, a.bytes), 0, Into{3, true});
    co_yield wait();
    co_yield combine(a.bytes);
  }
  if (a.me + 1 < a.n) {
    co_yield send(a.me + 1, bytes_of(0, a.bytes), 0, 1);
    co_yield wait();
  }
}

const Algorithm kLinear{Op::Scan, "linear", &linear};
const Algorithm kExclusive{Op::Exscan, "linear", &linear};

}  // namespace
}  // namespace retrompi::coll::scan_linear
