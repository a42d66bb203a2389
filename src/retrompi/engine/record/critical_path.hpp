// The critical path of a run: the chain of delays that its time consists of.
//
// Every event remembers the point of which it is the consequence (Loop::cause); who handles it extends that point by the delay that has passed,
// and says what it was. Who waits is resumed by what it waited for, so what follows continues the chain of the last that came. The chain from
// the end of the last rank back to the start is therefore a tiling of the run's time, to the picosecond.
//
// Recorded on request only. The simulation reads nothing here, so no time changes.
#pragma once
#include <cassert>
#include <compare>
#include <cstdint>
#include <deque>
#include <initializer_list>
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

  /// A part of a delay: seconds that it has for a unit of a declared number (`field` of `owner`, in base units).
  struct Term {
    const void* owner;
    const char* field;
    double times;
    friend auto operator<=>(const Term&, const Term&) = default;
  };
  using Bill = uint32_t;  // the terms of a delay; 0: they are not stated
  Bill bill(std::initializer_list<Term> terms);
  /// The terms of the work that is asked for next.
  void owe(std::initializer_list<Term> terms) {
    if (on) owed_ = bill(terms);
  }
  Bill take() { return std::exchange(owed_, 0); }

  /// The point at `t`, which is not before `from`: what lies between was spent on this.
  Point extend(Point from, Ps t, Stage s, Who who, Bill bill = 0) {
    const Ps begin = points_[from].t;
    assert(t >= begin);
    if (t <= begin) return charge(from, bill);
    points_.push_back({t, from, s, who, bill});
    return static_cast<Point>(points_.size() - 1);
  }
  /// The same instant; what led to it has these terms.
  Point charge(Point at, Bill bill) {
    if (bill == 0) return at;
    points_.push_back({points_[at].t, at, Stage{}, 0, bill});
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
  /// The terms of all its delays, summed by owner and field.
  [[nodiscard]] std::vector<Term> terms(Point end) const;

 private:
  struct At {
    Ps t;
    Point from;
    Stage s;
    Who who;
    Bill bill;
  };
  std::deque<At> points_ = {{0, 0, Stage{}, 0, 0}};  // the first: the start
  std::vector<std::vector<Term>> bills_{1};
  std::map<std::vector<Term>, Bill> known_bills_;
  Bill owed_ = 0;
  std::map<std::string, Who> places_;
  std::vector<std::string> names_;
};

}  // namespace retrompi
