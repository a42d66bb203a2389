// The fluid wire's state of its links and of the flows that share a route.
#pragma once
#include <cstdint>
#include <vector>

#include "event/time.hpp"

namespace retrompi {

namespace {

struct Part {
  double until;  // of the bundle's measure
  uint64_t order;
  uint32_t slot;
  bool operator<(const Part& o) const { return until != o.until ? until > o.until : order > o.order; }
};
/// When a flow that is alone uses its links, and the picoseconds beside `end`.
struct Told {
  Ps start, end;
  double frac;
  uint32_t slot;
  bool reserved;  // before it has begun
};
struct Bundle {
  std::vector<uint32_t> links;
  double top = 0;               // rate of the slowest of them, bytes per picosecond
  std::vector<Part> parts;      // a heap: the first to finish in front
  double delivery_latency = 0;  // picoseconds from the end of a flow until its host is notified
  double entry_latency = 0;     // picoseconds before a flow gets its share
  double weight = 1;            // of one flow
  Ps last = 0;                  // when `got` was counted, and the picoseconds beside it
  double frac = 0;
  double got = 0;   // bytes that each flow has had since the bundle was last empty
  double rate = 0;  // of each flow, bytes per picosecond
  std::vector<Told> line;
  bool told = false;    // it has its links to itself: `line` has the times at which each of its flows uses them, and `parts` is empty
  size_t coming = 0;    // flows that an agenda item will start
  bool listed = false;  // on its links
  bool fresh = false;   // its flows have changed since its end was planned
  bool fixed = false;   // while shares are found
  double share = 0;
  uint32_t gen = 0;     // of the valid agenda item
  Ps planned = kNever;  // when the first of its flows finishes
  Ps item = kNever;     // time of the agenda item, which is not later
  uint64_t seen = 0;
};
struct Link {
  double rate = 0;  // bytes per picosecond
  std::vector<uint32_t> bundles;
  bool changed = false;          // since shares were last solved
  double spare = 0, weight = 0;  // while shares are found
  bool stale = false;            // `weight` includes bundles fixed since
  uint64_t seen = 0;
};
/// A link still to be divided, and what a flow of weight 1 could have had of it when it was last examined.
struct Scarce {
  double level;
  uint32_t line;
  bool operator<(const Scarce& o) const { return level != o.level ? level > o.level : line > o.line; }
};

}  // namespace

}  // namespace retrompi
