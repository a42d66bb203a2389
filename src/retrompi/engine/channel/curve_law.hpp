// The law of the curve rung: how long a message of a given size takes, what it occupies and what it waits for. The engine's channels (curve.cpp) and
// those of the SMPI plug-in (measure/smpi/native/law.hpp) both follow it; scheduling around it is up to each of them.
#pragma once
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "event/core.hpp"
#include "host/cost.hpp"

namespace retrompi {

/// What the mechanism rung measured for a message of `size` bytes, in picoseconds on the hosts themselves: work of the sender, from its end
/// to the beginning of the receiver's, work of the receiver; how long a channel, one direction of a port, a whole port
/// and the wire that all hosts share are busy.
struct CurvePoint {
  int64_t size = 0;
  Ps send = 0, transit = 0, recv = 0, gap = 0, port = 0, both = 0, wire = 0;
};
using CurveNumber = DeclaredNumber<CurvePoint, Ps>;
namespace curve_point_number {
inline constexpr CurveNumber send{&CurvePoint::send, "send"}, transit{&CurvePoint::transit, "transit"}, recv{&CurvePoint::recv, "recv"},
    gap{&CurvePoint::gap, "gap"}, port{&CurvePoint::port, "port"}, both{&CurvePoint::both, "both"}, wire{&CurvePoint::wire, "wire"};
}

struct CurveTable {
  std::vector<CurvePoint> points;  // by rising size, at least one; straight lines between them
  int64_t limit = INT64_MAX;       // from this size on the mechanism did not complete, and
  std::string reason;              // this is how it ended

  [[nodiscard]] CurvePoint at(int64_t size) const {
    auto hi = std::lower_bound(points.begin(), points.end(), size, [](const CurvePoint& p, int64_t s) { return p.size < s; });
    if (hi != points.end() && hi->size == size) return *hi;
    if (hi == points.begin()) return *hi;
    if (hi == points.end()) {
      if (points.size() == 1) return points.back();
      --hi;  // beyond the last point, extrapolate its rate
    }
    const CurvePoint &a = *(hi - 1), &b = *hi;
    const double x = static_cast<double>(size - a.size) / static_cast<double>(b.size - a.size);
    auto mix = [x](Ps u, Ps v) { return std::max<Ps>(0, u + static_cast<Ps>(std::floor(x * static_cast<double>(v - u) + 0.5))); };
    return {size,
            mix(a.send, b.send),
            mix(a.transit, b.transit),
            mix(a.recv, b.recv),
            mix(a.gap, b.gap),
            mix(a.port, b.port),
            mix(a.both, b.both),
            mix(a.wire, b.wire)};
  }
  /// `at`, remembered: the messages of a program have few sizes, and all pairs that follow this table share what is known.
  const CurvePoint& point(int64_t size) const {
    CurvePoint& slot = known_[(static_cast<uint64_t>(size) * 0x9e3779b97f4a7c15ULL) >> 60];
    if (slot.size != size) slot = at(size), slot.size = size;
    return slot;
  }
  /// Why a message is not carried; empty if it is.
  [[nodiscard]] std::string refusal(int64_t bytes, int32_t from) const {
    if (bytes < limit) return {};
    return "a message of " + std::to_string(bytes) + " B from rank " + std::to_string(from) + ": the mechanism did not carry one of " +
           std::to_string(limit) + " B: " + reason;
  }

 private:
  mutable std::array<CurvePoint, 16> known_ = [] {
    std::array<CurvePoint, 16> none;
    for (CurvePoint& p : none) p.size = -1;
    return none;
  }();
};

struct CurvePort {
  Ps out = 0, in = 0, any = 0;  // busy until: outgoing stream, incoming stream, both together
  /// On a recorded critical path: when it is free again, and when the last that occupies it came.
  struct Recorded {
    uint32_t free = 0, came = 0;
  } out_record, in_record, any_record;
};

/// From one rank to another. The ports outlive it.
class CurveLane {
 public:
  CurveLane(const CurveTable& t, CurvePort& from, CurvePort& to, CurvePort& wire) : table(t), from_(&from), to_(&to), wire_(&wire) {}

  const CurveTable& table;

  [[nodiscard]] const CurvePoint& point(int64_t size) const { return table.point(size); }
  struct Trip {
    Ps start, end;
  };
  /// Books the ports for a message that is ready at `now`.
  Trip depart(Ps now, const CurvePoint& p) {
    // A message neither waits for nor blocks a resource it does not occupy: it may itself begin late, for want of a port.
    Ps start = std::max(now, free_);
    if (p.port > 0) start = std::max({start, from_->out, to_->in});
    if (p.both > 0) start = std::max({start, from_->any, to_->any});
    if (p.wire > 0) start = std::max(start, wire_->any);
    free_ = start + p.gap;
    if (p.port > 0) from_->out = to_->in = start + p.port;
    if (p.both > 0) from_->any = to_->any = start + p.both;
    if (p.wire > 0) wire_->any = start + p.wire;
    return {start, arrival(start + p.transit)};
  }
  /// What a message with these numbers has to wait for and then occupies, and the number that says how long: for a recorded critical path.
  struct Held {
    CurvePort::Recorded* record;
    CurveNumber length;
  };
  [[nodiscard]] std::vector<Held> held(const CurvePoint& p) {
    using namespace curve_point_number;
    std::vector<Held> all{{&record_, gap}};
    if (p.port > 0) all.insert(all.end(), {{&from_->out_record, port}, {&to_->in_record, port}});
    if (p.both > 0) all.insert(all.end(), {{&from_->any_record, both}, {&to_->any_record, both}});
    if (p.wire > 0) all.push_back({&wire_->any_record, wire});
    return all;
  }
  /// The arrival of the last message on a recorded critical path.
  uint32_t last_point = 0;
  /// Arrival time of a message that would arrive at `t`: messages of a pair do not overtake each other.
  Ps arrival(Ps t) { return last_ = std::max(t, last_); }

 private:
  CurvePort *from_, *to_, *wire_;
  Ps free_ = 0, last_ = 0;
  CurvePort::Recorded record_;
};

}  // namespace retrompi
