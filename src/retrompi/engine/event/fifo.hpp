// A first-in, first-out queue that takes no memory until it is used.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

namespace retrompi {

/// Its elements lie one after the other. std::deque allocates 576 bytes at once, which counts where each of a million processes has several
/// queues that are mostly empty; this is 24 bytes, and as much again as its longest state so far. T: default-constructible, copyable; what is pushed
/// is no element of the queue itself.
template <class T>
class Fifo {
 public:
  Fifo() = default;
  Fifo(Fifo&& o) noexcept
      : items_(std::move(o.items_)), begin_(std::exchange(o.begin_, 0)), end_(std::exchange(o.end_, 0)), capacity_(std::exchange(o.capacity_, 0)) {}
  Fifo& operator=(Fifo&& o) noexcept {
    std::swap(items_, o.items_);
    std::swap(begin_, o.begin_);
    std::swap(end_, o.end_);
    std::swap(capacity_, o.capacity_);
    return *this;
  }
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;
  ~Fifo() = default;

  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] size_t size() const { return end_ - begin_; }
  T* begin() { return items_.get() + begin_; }
  T* end() { return items_.get() + end_; }
  [[nodiscard]] const T* begin() const { return items_.get() + begin_; }
  [[nodiscard]] const T* end() const { return items_.get() + end_; }
  T& front() {
    assert(!empty());
    return items_[begin_];
  }
  [[nodiscard]] const T& front() const {
    assert(!empty());
    return items_[begin_];
  }
  void push_back(const T& t) {
    if (end_ == capacity_) make_space();
    items_[end_++] = t;
  }
  void push_front(const T& t) {
    if (begin_ == 0) {
      push_back(t);
      std::rotate(begin(), end() - 1, end());
    } else {
      items_[--begin_] = t;
    }
  }
  void pop_front() {
    assert(!empty());
    if (++begin_ == end_) begin_ = end_ = 0;
  }
  /// `at`: a place in the queue.
  void erase(T* at) {
    std::move(at + 1, end(), at);
    if (begin_ == --end_) begin_ = end_ = 0;
  }
  void clear() { begin_ = end_ = 0; }

 private:
  static constexpr uint32_t kFirst = sizeof(T) >= 32 ? 1 : 32 / sizeof(T);
  [[gnu::noinline]] void make_space() {
    if (begin_ > capacity_ / 2) {  // moves each element once before as many have been taken out
      std::move(begin(), end(), items_.get());
    } else {
      const uint32_t more = capacity_ == 0 ? kFirst : 2 * capacity_;
      auto wider = std::make_unique<T[]>(more);
      std::move(begin(), end(), wider.get());
      items_ = std::move(wider);
      capacity_ = more;
    }
    end_ -= begin_;
    begin_ = 0;
  }
  std::unique_ptr<T[]> items_;
  uint32_t begin_ = 0, end_ = 0, capacity_ = 0;
};

}  // namespace retrompi
