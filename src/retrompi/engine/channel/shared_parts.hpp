// What the channels of one job share beside their processes.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "channel/chan.hpp"
#include "channel/curve_law.hpp"

namespace retrompi {

class SharedPool;
class SlotRing;
/// The owner of a ring's slots (a hop, a process, a pair of processes), and the role that uses them.
using RingKey = std::tuple<const MediumSpec*, const Proc*, const Proc*, std::string>;
/// What the channels of one job share: the pool of a host, the slots of a ring, the ports of a curve.
struct SharedParts {
  std::map<size_t, std::shared_ptr<SharedPool>> pools;
  std::map<RingKey, std::shared_ptr<SlotRing>> rings;
  std::map<const MediumSpec*, std::deque<CurvePort>> ports;  // the wire's, then by host or rank
};
void join_streams(Chan& a, Chan& b);  // the two directions of one connection
void join_curves(Chan& a, Chan& b);

}  // namespace retrompi
