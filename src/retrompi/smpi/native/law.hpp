// The curve rung's law of contention, as engine/curve.cpp has it: what a message occupies, and when it has arrived.
#pragma once
#include <map>
#include <memory>
#include <unordered_map>

#include "environment.hpp"

namespace retrompi::online {

struct Port {
  Ps out = 0, in = 0, any = 0;  // until when streams out of it, into it, and the sum of both keep it busy
};

/// From one rank to another.
struct Channel {
  const Curve* curve = nullptr;
  Port *from = nullptr, *to = nullptr, *wire = nullptr;
  Channel* back = nullptr;
  Ps connect = 0;
  Ps free = 0, last = 0;
  bool open = false;
  int flying = 0;
  int prepaid = 0;  // of plain SMPI: sends whose overhead has been slept through
  Point known{.size = -1};
  /// Messages of a pair tend to be of one size.
  const Point& point(int64_t bytes) {
    if (bytes != known.size) {
      known = curve->at(bytes);
      known.size = bytes;
    }
    return known;
  }
  /// Books the ports for a message that is ready at `now`; when it is there.
  Ps depart(Ps now, const Point& p);
  /// What the first message of two ranks pays more.
  Ps opened();
};

class Law {
 public:
  explicit Law(const Environment& e) : e_(e) {}
  Channel& channel(int from, int to);

 private:
  const Environment& e_;
  std::unordered_map<uint64_t, std::unique_ptr<Channel>> channels_;
  std::map<std::pair<bool, int>, std::unique_ptr<Port>> ports_;
};

Law& law();

}  // namespace retrompi::online
