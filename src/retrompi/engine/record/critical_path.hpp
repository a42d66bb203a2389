// The critical path of a run: the chain of delays that its time consists of.
//
// Every event remembers the point of which it is the consequence (Loop::cause); who handles it extends that point by the delay that has passed,
// and says what it was. Who waits is resumed by what it waited for, so what follows continues the chain of the last that came. The chain from
// the end of the last rank back to the start is therefore a tiling of the run's time, to the picosecond.
//
// Beside the chain it is recorded what else came: who waits for several things goes on with the last, and the others' times say how much later they
// could have come (`join`); and in which order the parts of a host and the frames of a link acted on each other (`order`), because another order is
// another run. record/path_graph.hpp reads all that.
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
    int64_t at = 0;  // of a sampled curve: the size of the message
    friend auto operator<=>(const Term&, const Term&) = default;
  };
  using Bill = uint32_t;  // the terms of a delay; 0: they are not stated
  Bill bill(std::initializer_list<Term> terms);
  Bill bill(std::vector<Term> terms);
  /// The same terms so many times.
  Bill scaled(Bill of, double times);
  /// The terms of what was to take `asked` and took longer, as if all of it had been slower.
  Bill stretched(Bill of, Ps asked, Ps took) { return took > asked ? scaled(of, static_cast<double>(took) / static_cast<double>(asked)) : of; }
  /// The terms of both.
  Bill joined(Bill a, Bill b);

  /// The point at `t`, which is not before `from`: what lies between was spent on this.
  Point extend(Point from, Ps t, Stage s, Who who, Bill bill = 0) {
    const Ps begin = points_[from].t;
    assert(t >= begin);
    if (t <= begin) return charge(from, bill);
    return add({t, from, s, false, who, bill});
  }
  /// The same until an instant that does not depend on when it began: a tick of the clock, the end of another's quantum.
  Point extend_to_fixed(Point from, Ps t, Stage s, Who who) {
    if (t <= points_[from].t) return from;
    return add({t, from, s, true, who, 0});
  }
  /// The same instant; what led to it has these terms.
  Point charge(Point at, Bill bill) {
    if (bill == 0) return at;
    return add({points_[at].t, at, Stage{}, false, 0, bill});
  }
  /// What goes on from `last` needed `other` as well, which had come before: from then on it would have waited for that.
  Point join(Point last, Point other) {
    if (other == 0 || other == last || points_[other].t > points_[last].t) return last;
    const Point made = add({points_[last].t, last, Stage{}, false, 0, 0});
    joins_.push_back({made, other});
    return made;
  }
  /// Work that was interrupted goes on at `at`: what is left of it is shorter by what was done of it, from `begun` (had nobody interrupted) to
  /// `ended`.
  Point resume(Point at, Point begun, Point ended) {
    const Point made = add({points_[at].t, at, Stage{}, false, 0, 0});
    resumed_.push_back({made, begun, ended});
    return made;
  }
  /// Somebody acts on something on which others act too, now: after the last of them, which was at `last`.
  void order(Point& last, Point now) {
    if (last != 0 && last != now && points_[now].from != last && points_[last].t <= points_[now].t) orders_.push_back({last, now});
    last = now;
  }
  /// The second came after the first, which would otherwise have happened differently.
  void follows(Point first, Point second) { order(first, second); }
  /// Something acts on the run of which no derivative is known.
  void unfollowed(const char* what) { ++unfollowed_[what]; }
  /// A rank has finished.
  void end(Point at) { ends_.push_back(at); }
  /// The end of the run, when the last rank finishes at `last`.
  Point last(Point last) {
    for (const Point other : ends_) last = join(last, other);
    return last;
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

  struct At {
    Ps t;
    Point from;
    Stage s;
    bool fixed;  // `t` does not depend on when `from` was
    Who who;
    Bill bill;
  };
  struct Join {
    Point into, other;
  };
  struct Resumed {
    Point at, begun, ended;
  };
  struct Order {
    Point before, after;
  };
  [[nodiscard]] const std::deque<At>& points() const { return points_; }
  [[nodiscard]] const std::deque<Join>& joins() const { return joins_; }
  [[nodiscard]] const std::deque<Resumed>& resumed() const { return resumed_; }
  [[nodiscard]] const std::deque<Order>& orders() const { return orders_; }
  [[nodiscard]] const std::vector<std::vector<Term>>& bills() const { return bills_; }
  [[nodiscard]] const std::map<std::string, int64_t>& unfollowed() const { return unfollowed_; }

 private:
  Point add(const At& at) {
    points_.push_back(at);
    return static_cast<Point>(points_.size() - 1);
  }
  std::deque<At> points_ = {{0, 0, Stage{}, false, 0, 0}};  // the first: the start
  std::deque<Join> joins_;                                  // by `into`
  std::deque<Resumed> resumed_;                             // by `at`
  std::deque<Order> orders_;
  std::map<std::string, int64_t> unfollowed_;
  std::vector<Point> ends_;
  std::vector<std::vector<Term>> bills_{1};
  std::map<std::vector<Term>, Bill> known_bills_;
  std::map<std::string, Who> places_;
  std::vector<std::string> names_;
};

}  // namespace retrompi
