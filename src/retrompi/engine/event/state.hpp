// The state of a simulation in words: two instants with equal words have the same future, but for the time that lies between them.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "event/callback.hpp"
#include "event/time.hpp"

namespace retrompi {

/// Every part of the simulation puts what its future depends on: times relative to now, positions in a stream relative to its end, no numbers
/// that only grow. A part that cannot say it all refuses, and its run is simulated in full.
///
/// Each part names all its members in a structured binding where it puts them, so that a member added later does not compile before somebody has
/// decided whether the future depends on it. Such a binding needs the members of one class: a part that inherits some has its own in a struct
/// beside (`StreamParts`, `RankParts`).
class State {
 public:
  /// How a pending call is put: not known, without any effect, or put.
  enum class Call : uint8_t { Unknown, Void, Put };
  using Describe = Call (*)(const Callback&, State&);
  State(Ps now, Describe describe) : now_(now), describe_(describe) {}

  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void put(T n) { words_.push_back(static_cast<int64_t>(n)); }
  void put(Ps ps) { words_.push_back(ps.count()); }
  void put(const void* object) { words_.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(object))); }
  void put_time(Ps t) { put(t - now_); }
  /// An object that comes and goes (a message, a request), by a number in the order in which they are met. True: it is met for the first time, and
  /// what it holds is to be put.
  [[nodiscard]] bool put_met(const void* object) {
    if (!object) {
      put(-1);
      return false;
    }
    const auto [at, fresh] = met_.try_emplace(object, static_cast<int64_t>(met_.size()));
    put(at->second);
    return fresh;
  }
  /// When something is free again; how long it has been is no matter.
  void put_busy_until(Ps t) { put(t > now_ ? t - now_ : Ps(0)); }
  /// A call that somebody else keeps: the end of kernel work, an arrival.
  void put(const Callback& c) {
    if (describe_(c, *this) == Call::Unknown) refuse();
  }
  /// An event of the loop.
  void put_event(Ps t, uint64_t order, const Callback& c) { events_.push_back({t, order, c, false}); }
  /// An event that is not in the loop's queue, or is there with an earlier time: it is due at `t`.
  void put_due(Ps t, uint64_t order, const Callback& c) { events_.push_back({t, order, c, true}); }
  void refuse() { refused_ = true; }
  [[nodiscard]] bool refused() const { return refused_; }
  [[nodiscard]] Ps now() const { return now_; }
  /// Words so far.
  [[nodiscard]] size_t size() const { return words_.size(); }

  /// All events have been put.
  [[nodiscard]] std::vector<int64_t> words() {
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) { return a.t != b.t ? a.t < b.t : a.order < b.order; });
    for (const Event& e : events_) {
      const size_t before = words_.size();
      put_time(e.t);
      if (e.due) {
        put(e.what.fn);
        put(e.what.object);
        continue;
      }
      const Call said = describe_(e.what, *this);
      if (said == Call::Unknown) refuse();
      if (said == Call::Void) words_.resize(before);
    }
    return std::move(words_);
  }

 private:
  struct Event {
    Ps t;
    uint64_t order;
    Callback what;
    bool due;
  };
  Ps now_;
  Describe describe_;
  std::vector<int64_t> words_;
  std::vector<Event> events_;
  bool refused_ = false;
  std::unordered_map<const void*, int64_t> met_;
};

}  // namespace retrompi
