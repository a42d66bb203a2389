// The ring with long blocks cut into segments, of the smallest block or 32 KiB at least, so that unequal blocks do not wait for each other.
// paper: Traff, Ripke, Siebert, Balaji, Thakur, Gropp 2008, A Simple, Pipelined Algorithm for Large, Irregular All-gather Problems;
// code: MPICH2 1.1 to 1.3, src/mpi/coll/allgatherv.c, MPIR_ALLGATHERV_PIPELINE_MSGSIZE
#include "coll/data.hpp"

namespace retrompi::coll::allgather_ring_pipelined {
namespace {

constexpr int64_t kSegment = 32768;

/// Iterates over the blocks against the direction of the ring, from a given one.
struct Walk {
  const Args& a;
  int32_t block;
  int64_t at, left;  // offset in the block; bytes remaining in total
  Walk(const Args& args, int32_t first, int32_t never) : a(args), block(first), at(0), left(total(args, 0, args.n) - args.from(never)) {}
  int64_t ahead(int64_t most) const { return left > 0 ? std::min(most, a.from(block) - at) : 0; }
  /// The next `n` bytes, as bytes of all blocks together.
  Part take(int64_t n) {
    const int64_t begin = total(a, 0, block) + at;
    at += n;
    left -= n;
    return bytes_of(begin, begin + n);
  }
  void settle() {
    if (at != a.from(block)) return;
    at = 0;
    block = (block - 1 + a.n) % a.n;
  }
};

Steps ring_pipelined(Args a) {
  if (a.n < 2) co_return;
  if (a.in.empty()) a.bytes_in = a.bytes;
  const int32_t left = (a.me - 1 + a.n) % a.n, right = (a.me + 1) % a.n;
  int64_t most = a.from(0);
  for (int32_t r = 1; r < a.n; ++r) most = std::min(most, a.from(r));
  most = std::max(most, kSegment);
  Walk out(a, a.me, right), in(a, left, a.me);
  while (out.left > 0 || in.left > 0) {
    const int64_t outgoing = out.ahead(most), incoming = in.ahead(most);
    if (incoming > 0) co_yield receive(left, in.take(incoming), 0);
    if (outgoing > 0) co_yield send(right, out.take(outgoing), 1);
    if (outgoing > 0) co_yield wait(1);
    if (incoming > 0) co_yield wait(0);
    out.settle();
    in.settle();
  }
}

const Algorithm kRingPipelined{Op::Allgatherv, "ring_pipelined", &ring_pipelined};

}  // namespace
}  // namespace retrompi::coll::allgather_ring_pipelined
