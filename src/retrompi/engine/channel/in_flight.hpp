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

/// A queue from which elements may also leave out of order. On the simulated wire a small frame may overtake a large one, which the frames of
/// an Ethernet do not: any arrival delivers the element that is due next, and only lost elements leave separately.
template <class T>
class InFlight {
 public:
  /// Returns the id under which its frame travels.
  uint32_t put(const T& x) {
    if (n_ == ring_.size()) grow();
    entry(n_++) = {x, ++ids_};
    return ids_;
  }
  /// The frame `id` has arrived: returns the first element; those up to `id` each move to the next frame.
  T arrived(uint32_t id) {
    const T first = entry(0).what;
    const size_t at = find(id);
    for (size_t i = 0; i < at; ++i) entry(i).what = entry(i + 1).what;
    erase(at);
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
  [[nodiscard]] T& at(uint32_t id) { return entry(find(id)).what; }
  [[nodiscard]] bool is_first(uint32_t id) {
    assert(n_ > 0);
    return entry(0).id == id;
  }
  [[nodiscard]] size_t size() const { return n_; }

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
    if (i == n_) throw std::logic_error("a frame that is not on its way has arrived");
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
