// Each member waits for the one before it. The exclusive form sends the same messages, it only leaves its own data out.
// code: MPICH 1.0.12, src/coll/intra_fns.c, intra_Scan
#include "../coll.hpp"

namespace retrompi::coll {
namespace {

Steps linear(Args a) {
  if (a.me > 0) {
    co_yield irecv(a.me - 1, a.bytes);
    co_yield wait();
    co_yield combine(a.bytes);
  }
  if (a.me + 1 < a.n) {
    co_yield isend(a.me + 1, a.bytes);
    co_yield wait();
  }
}

const Algorithm kLinear{Op::Scan, "linear", &linear};
const Algorithm kExclusive{Op::Exscan, "linear", &linear};

}  // namespace
}  // namespace retrompi::coll
