// A priority queue of events: a 4-ary heap, ordered by time and among equal times by sequence number.
#pragma once
#include <cassert>
#include <cstddef>
#include <vector>

namespace retrompi {

/// E has `t` and `order`; no two events are equal in both. Four children to a node (LaMarca and Ladner 1996: fewer cache misses than two); the
/// least child is found without branches, and on `pop` the hole goes down to a leaf before the last event is put into it, which is usually
/// its place: a processor cannot predict any of these comparisons.
template <class E>
class EventHeap {
 public:
  [[nodiscard]] bool empty() const { return v_.empty(); }
  [[nodiscard]] size_t size() const { return v_.size(); }
  [[nodiscard]] const E& front() const { return v_.front(); }
  /// All of them, the first in front.
  [[nodiscard]] const std::vector<E>& items() const { return v_; }
  void push(const E& e) {
    // Millions of events are not copied into twice the space for one more.
    if (v_.size() == v_.capacity() && v_.size() >= kMany) v_.reserve(v_.size() + v_.size() / 4);
    v_.emplace_back();
    sift_up(v_.size() - 1, e);
  }
  void pop() {
    assert(!v_.empty());
    const E e = v_.back();
    v_.pop_back();
    const size_t n = v_.size();
    if (n == 0) return;
    size_t i = n < kOutOfCache ? 0 : raise();
    while (true) {
      const size_t first = i * 4 + 1;
      if (first + 4 <= n) {
        const size_t least = least_of_four(first);
        v_[i] = v_[least];
        i = least;
        continue;
      }
      if (first < n) {
        size_t least = first;
        for (size_t k = first + 1; k < n; ++k) least += (k - least) * before(v_[k], v_[least]);
        v_[i] = v_[least];
        i = least;
      }
      break;
    }
    sift_up(i, e);
  }
  /// 1 or 0.
  static size_t before(const E& a, const E& b) { return static_cast<size_t>(key(a) < key(b)); }
  /// Whether every event comes before its children.
  [[nodiscard]] bool is_heap() const {
    for (size_t i = 1; i < v_.size(); ++i)
      if (before(v_[i], v_[(i - 1) / 4])) return false;
    return true;
  }

 private:
  static constexpr size_t kOutOfCache = 1024;
  [[nodiscard]] size_t least_of_four(size_t first) const {
    const size_t a = first + before(v_[first + 1], v_[first]), b = first + 2 + before(v_[first + 3], v_[first + 2]);
    return a + (b - a) * before(v_[b], v_[a]);
  }
  /// The first levels of a heap whose events' objects are in no cache: what an event will use is fetched step by step while it rises through them.
  /// Returns where the hole is then.
  size_t raise() {
    size_t i = 0;
    if constexpr (requires(const E& e) { e.fetch(0); }) {
      static_assert(kOutOfCache > 4 * 4 * 4 * 4 * 2);
      for (int step = E::kFetchSteps; step-- > 0;) {
        const size_t least = least_of_four(i * 4 + 1);
        v_[i] = v_[least];
        v_[i].fetch(step);
        i = least;
      }
    }
    return i;
  }
  static constexpr size_t kMany = size_t{1} << 16;
  /// Time and sequence number in one: compared by a subtraction with a borrow, in half the instructions of two comparisons.
  static __int128 key(const E& e) { return (static_cast<__int128>(e.t.count()) << 64) | e.order; }
  void sift_up(size_t i, const E& e) {
    while (i > 0) {
      const size_t parent = (i - 1) / 4;
      if (!before(e, v_[parent])) break;
      v_[i] = v_[parent];
      i = parent;
    }
    v_[i] = e;
  }
  std::vector<E> v_;
};

}  // namespace retrompi
