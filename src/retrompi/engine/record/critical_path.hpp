// The critical path of a run: the chain of delays that its time consists of.
//
// Every event remembers the point of which it is the consequence (Loop::cause); who handles it extends that point by the delay that has passed,
// and says what it was. Who waits is resumed by what it waited for, so what follows continues the chain of the last that came. The chain from
// the end of the last rank back to the start is therefore a tiling of the run's time, to the picosecond.
//
// Recorded on request only. The simulation reads nothing here, so no time changes.
#pragma once
#include <cassert>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "event/core.hpp"

namespace retrompi {

enum class Stage : uint8_t;

class CriticalPath {
 public:
  using Point = uint32_t;
  bool on = false;

  /// Who spends the time: a thread (the number of its log) or, from `kPlaces` on, a place outside of threads.
  using Who = uint32_t;
  static constexpr Who kPlaces = 1U << 24;
  Who place(const std::string& name) {
    const auto [it, fresh] = places_.emplace(name, static_cast<Who>(names_.size()));
    if (fresh) names_.push_back(name);
    return kPlaces + it->second;
  }
  [[nodiscard]] const std::vector<std::string>& places() const { return names_; }

  /// The point at `t`, which is not before `from`: what lies between was spent on this.
  Point extend(Point from, Ps t, Stage s, Who who) {
    const Ps begin = points_[from].t;
    assert(t >= begin);
    if (t <= begin) return from;
    points_.push_back({t, from, s, who});
    return static_cast<Point>(points_.size() - 1);
  }
  [[nodiscard]] Ps time(Point p) const { return points_[p].t; }
  [[nodiscard]] size_t size() const { return points_.size(); }

  /// A piece of the path; each ends where the next begins.
  struct Piece {
    Ps begin, end;
    Stage s;
    Who who;
  };
  /// The path to a point, from time 0 on; neighbours that are alike are one piece.
  [[nodiscard]] std::vector<Piece> to(Point end) const;

 private:
  struct At {
    Ps t;
    Point from;
    Stage s;
    Who who;
  };
  std::deque<At> points_ = {{0, 0, Stage{}, 0}};  // the first: the start
  std::map<std::string, Who> places_;
  std::vector<std::string> names_;
};

}  // namespace retrompi
