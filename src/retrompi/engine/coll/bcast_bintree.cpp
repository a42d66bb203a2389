// Down a tree in which each member passes a segment on to at most two, or to one (`pipeline`); it takes the next segment in meanwhile, but waits
// for its sends of one before it starts those of the next. Member m of level k has m + 2^k and m + 2^(k+1) below it, counted from the root.
// code: Open MPI 1.1, ompi/mca/coll/tuned/coll_tuned_bcast.c: bintree, chain; coll_tuned_topo.c: build_tree
#include "coll/data.hpp"

namespace retrompi::coll::bcast_bintree {
namespace {

constexpr int64_t kWhole = 0, kSegment = 16384;

/// Relative ranks of a member's parent and children.
struct Place {
  int32_t parent = -1;
  std::array<int32_t, 2> child{-1, -1};
};

Place in_tree(int32_t me, int32_t n) {
  Place p;
  int32_t width = 1, first = 0;  // of the member's level
  while (me >= first + width) {
    first += width;
    width *= 2;
  }
  for (int32_t i = 0; i < 2; ++i)
    if (const int32_t below = me + width * (i + 1); below < n) p.child[static_cast<size_t>(i)] = below;
  if (me > 0) {
    p.parent = me;
    while (p.parent >= first) p.parent -= width / 2;
  }
  return p;
}

Place in_chain(int32_t me, int32_t n) { return {me - 1, {me + 1 < n ? me + 1 : -1, -1}}; }

Steps down(Args a, Place at, int64_t segment) {
  const int64_t size = segment == kWhole ? std::max<int64_t>(a.bytes, 1) : segment;
  auto part = [&](int64_t from) { return bytes_of(from, std::min(from + size, a.bytes)); };
  const bool passes_on = at.child[0] >= 0;
  int32_t slot = 0;  // of the segment that comes: 0 and 1 in turn where the next is taken in meanwhile
  if (at.parent >= 0) co_yield receive(a.absolute(at.parent), part(0), slot);
  for (int64_t from = 0; from == 0 || from < a.bytes; from += size) {
    const bool more = from + size < a.bytes;
    if (at.parent >= 0) {
      if (more && passes_on) co_yield receive(a.absolute(at.parent), part(from + size), 1 - slot);
      co_yield wait(slot);
      if (more && !passes_on) co_yield receive(a.absolute(at.parent), part(from + size), 1 - slot);
      slot = 1 - slot;
    }
    for (int32_t i = 0; i < 2; ++i)
      if (const int32_t to = at.child[static_cast<size_t>(i)]; to >= 0) co_yield send(a.absolute(to), part(from), 2 + i);
    for (int32_t i = 0; i < 2; ++i)
      if (at.child[static_cast<size_t>(i)] >= 0) co_yield wait(2 + i);
  }
}

Steps bintree(Args a) { return down(a, in_tree(a.relative(), a.n), kWhole); }
Steps bintree_segments(Args a) { return down(a, in_tree(a.relative(), a.n), kSegment); }
Steps pipeline(Args a) { return down(a, in_chain(a.relative(), a.n), kSegment); }

const Algorithm kTree{Op::Bcast, "bintree", &bintree};
const Algorithm kSegments{Op::Bcast, "bintree_16k", &bintree_segments};
const Algorithm kPipeline{Op::Bcast, "pipeline_16k", &pipeline};

}  // namespace
}  // namespace retrompi::coll::bcast_bintree
