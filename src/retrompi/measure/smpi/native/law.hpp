// The channels between ranks, by the curve rung's law (engine/channel/curve_law.hpp).
#pragma once
#include <map>
#include <memory>
#include <unordered_map>

#include "environment.hpp"

namespace retrompi::online {

/// The channel from one rank to another.
struct Channel : CurveLane {
  using CurveLane::CurveLane;
  Channel* back = nullptr;
  Ps connect = 0;
  bool open = false;
  int flying = 0;
  int prepaid = 0;  // plain SMPI: sends whose overhead has already been slept through
  /// The extra time of the first message between two ranks.
  Ps opened();
};

class Law {
 public:
  explicit Law(const Environment& e) : e_(e) {}
  Channel& channel(int from, int to);

 private:
  const Environment& e_;
  std::unordered_map<uint64_t, std::unique_ptr<Channel>> channels_;
  std::map<std::pair<bool, int>, CurvePort> ports_;
};

Law& law();

}  // namespace retrompi::online
