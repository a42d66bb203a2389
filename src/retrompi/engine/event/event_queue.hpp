// A priority queue of events in two parts: a heap of those that are near, and what is later, which is not in order.
#pragma once
#include <vector>

#include "event/event_heap.hpp"
#include "event/time.hpp"

namespace retrompi {

/// Most events are scheduled shortly before they happen, beside timers that are due long after: with all in one heap each event would go through as many
/// levels as the timers make. Here they wait in no order until the heap is empty; then those of the next `width_` go into it. What is popped
/// is in the order of one heap. The width follows what there is: between two looks at all that is later, about as many events are popped.
template <class E>
class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return near_.empty(); }
  [[nodiscard]] const E& front() const { return near_.front(); }
  void push(const E& e) {
    if (e.t <= until_) return near_.push(e);
    if (later_.size() == later_.capacity() && later_.size() >= kMany) later_.reserve(later_.size() + later_.size() / 4);
    later_.push_back(e);
    if (near_.empty()) refill();
  }
  void pop() {
    near_.pop();
    ++popped_;
    if (near_.empty() && !later_.empty()) refill();
  }
  /// Calls `f` with each, in no order.
  template <class F>
  void each(F f) const {
    for (const E& e : near_.items()) f(e);
    for (const E& e : later_) f(e);
  }

 private:
  static constexpr size_t kMany = size_t{1} << 16;  // then it is not copied into twice the space for one more
  static constexpr Ps kWidest = kNever / 4;

  [[gnu::noinline]] void refill() {
    if (popped_ < later_.size())
      width_ = std::min(2 * width_, kWidest);
    else if (popped_ > 16 * later_.size())
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

  EventHeap<E> near_;  // all up to `until_`; not empty unless all are gone
  std::vector<E> later_;
  Ps until_ = -1;
  Ps width_ = 1'000'000'000;  // a millisecond to begin with
  size_t popped_ = 0;         // since the last look
};

}  // namespace retrompi
