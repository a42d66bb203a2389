// Data in flight between two kernels, in the order in which they were sent.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace retrompi {

/// Frames of one path arrive in the order in which they were sent, or are lost.
template <class T>
class InFlight {
 public:
  /// Returns the id under which its frame travels.
  uint32_t put(const T& x) {
    if (n_ == ring_.size()) grow();
    entry(n_++) = {x, ++ids_};
    return ids_;
  }
  /// The frame `id`, the first of them, has arrived.
  T arrived(uint32_t id) {
    if (n_ == 0 || entry(0).id != id) throw std::logic_error("a frame has arrived before one that was sent earlier");
    const T first = entry(0).what;
    erase(0);
    return first;
  }
  T lost(uint32_t id) {
    const size_t at = find(id);
    const T x = entry(at).what;
    erase(at);
    return x;
  }
  template <class F>
  void each(F f) {
    for (size_t i = 0; i < n_; ++i) f(entry(i).what);
  }
  [[nodiscard]] size_t size() const { return n_; }
  /// How many were sent before it and are still on their way.
  [[nodiscard]] size_t before(uint32_t id) { return find(id); }

 private:
  struct Entry {
    T what;
    uint32_t id;
  };
  Entry& entry(size_t i) { return ring_[(head_ + i) & (ring_.size() - 1)]; }
  void grow() {
    std::vector<Entry> wider(std::max<size_t>(4, 2 * ring_.size()));
    for (size_t i = 0; i < n_; ++i) wider[i] = entry(i);
    ring_ = std::move(wider);
    head_ = 0;
  }
  [[nodiscard]] size_t find(uint32_t id) {
    size_t i = 0;
    while (i < n_ && entry(i).id != id) ++i;
    if (i == n_) throw std::logic_error("a frame that is not on its way is lost");
    return i;
  }
  void erase(size_t at) {
    for (size_t i = at; i > 0; --i) entry(i) = entry(i - 1);
    head_ = (head_ + 1) & (ring_.size() - 1);
    --n_;
  }
  std::vector<Entry> ring_;  // size is a power of two; `n_` entries from `head_` on are in use
  size_t head_ = 0, n_ = 0;
  uint32_t ids_ = 0;
};

}  // namespace retrompi
