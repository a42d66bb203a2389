// A priority queue of events in three parts: the first, a heap of those that are near, and what is later, which is not in order.
#pragma once
#include <vector>

#include "event/event_heap.hpp"
#include "event/time.hpp"

namespace retrompi {

/// Most events are scheduled shortly before they happen, beside timers that are due long after: with all in one heap each event would go through
/// as many levels as the timers make. Here they wait in no order until the heap is empty; then those of the next `width_` go into it. What is
/// popped is in the order of one heap. The width follows what there is: between two looks at all that is later, an eighth to a half as many
/// events are popped, and where there are few, some dozens.
template <class E>
class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return !leads_ && near_.empty(); }
  [[nodiscard]] const E& front() const { return leads_ ? leader_ : near_.front(); }
  void push(const E& e) {
    if (e.t > until_) return postpone(e);
    if (leads_ ? !near_.before(e, leader_) : !near_.empty() && !near_.before(e, near_.front())) return near_.push(e);
    if (leads_) near_.push(leader_);
    leader_ = e;
    leads_ = true;
  }
  void pop() {
    if (leads_)
      leads_ = false;
    else
      near_.pop();
    ++popped_;
    if (near_.empty() && !later_.empty()) refill();
  }
  /// Calls `f` with each, in no order.
  template <class F>
  void each(F f) const {
    if (leads_) f(leader_);
    for (const E& e : near_.items()) f(e);
    for (const E& e : later_) f(e);
  }

 private:
  static constexpr size_t kMany = size_t{1} << 16;  // then it is not copied into twice the space for one more
  static constexpr size_t kFew = 32;
  static constexpr Ps kWidest = kNever / 4;

  void postpone(const E& e) {
    if (later_.size() == later_.capacity() && later_.size() >= kMany) later_.reserve(later_.size() + later_.size() / 4);
    later_.push_back(e);
    if (empty()) refill();
  }
  [[gnu::noinline]] void refill() {
    if (popped_ < std::max(later_.size() / 8, kFew))
      width_ = std::min(2 * width_, kWidest);
    else if (popped_ > std::max(later_.size() / 2, 4 * kFew))
      width_ = std::max<Ps>(width_ / 2, 1);
    popped_ = 0;
    Ps first = kNever;
    for (const E& e : later_) first = std::min(first, e.t);
    until_ = first > kNever - width_ ? kNever : first + width_;
    size_t kept = 0;
    for (const E& e : later_)
      if (e.t <= until_)
        near_.push(e);
      else
        later_[kept++] = e;
    later_.resize(kept);
  }

  E leader_{};  // before all others, if one `leads_`: most that are scheduled first of all never see the heap
  bool leads_ = false;
  EventHeap<E> near_;  // the others up to `until_`
  std::vector<E> later_;
  Ps until_ = -1;
  Ps width_ = 1'000'000'000;  // a millisecond to begin with
  size_t popped_ = 0;         // since the last look
};

}  // namespace retrompi
