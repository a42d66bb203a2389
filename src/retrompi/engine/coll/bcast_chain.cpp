// A pipeline: each member passes a segment of 8 KiB on to the next while it waits for the next segment.
// paper: Patarasuk, Faraj, Yuan 2006, Pipelined Broadcast on Ethernet Switched Clusters; assumed: the segment, as SimGrid's NTSL has it
#include "coll/data.hpp"

namespace retrompi::coll::bcast_chain {
namespace {

constexpr int64_t kSegment = 8192;

Steps chain(Args a) {
  const int32_t me = a.relative();
  int64_t from = 0;
  int32_t segment = 0;
  do {
    const Part part = bytes_of(from, std::min(from + kSegment, a.bytes));
    if (me > 0) {
      co_yield receive(a.absolute(me - 1), part, 0);
      co_yield wait(0);
    }
    if (me + 1 < a.n) co_yield send(a.absolute(me + 1), part, 1 + segment);
    ++segment;
    from += kSegment;
  } while (from < a.bytes);
  co_yield wait_all();
}

const Algorithm kChain{Op::Bcast, "chain", &chain};

}  // namespace
}  // namespace retrompi::coll::bcast_chain
