// Memory shared by a host's processes: p4's pool of size classes, and a ring of packet slots. Both only keep count; the channel models time.
#pragma once
#include "channel/chan.hpp"

namespace retrompi {

/// An allocator of size classes, as p4's global memory (E-P4-03): a request takes a buffer of the next size class; a buffer that is given back stays
/// in its class, so memory once cut into small pieces is not available for large ones. Larger requests are cut out as they are.
class SharedPool {
 public:
  /// `classes`: sizes of buffers, rising.
  SharedPool(int64_t bytes, int64_t prefix, std::vector<int64_t> classes)
      : total_(bytes), rest_(bytes), prefix_(prefix), classes_(std::move(classes)), free_(classes_.size()) {}

  /// Returns a handle, or -1 when there is no space now.
  int32_t take(int64_t bytes, const Message* m, Ps now) {
    const auto k = class_of(bytes);
    if (k >= classes_.size()) {
      if (bytes + prefix_ > rest_) return -1;
      rest_ -= bytes + prefix_;
      return put({bytes, k, m, now});
    }
    if (!free_[k].empty()) {
      const int32_t h = free_[k].back();
      free_[k].pop_back();
      buffers_[static_cast<size_t>(h)].m = m;
      buffers_[static_cast<size_t>(h)].since = now;
      return h;
    }
    if (classes_[k] + prefix_ > rest_) return -1;
    rest_ -= classes_[k] + prefix_;
    return put({classes_[k], k, m, now});
  }
  void give(int32_t h) {
    assert(h >= 0 && static_cast<size_t>(h) < buffers_.size() && buffers_[static_cast<size_t>(h)].m);  // it was taken
    buffers_[static_cast<size_t>(h)].m = nullptr;
    const Buffer b = buffers_[static_cast<size_t>(h)];
    if (b.cls >= classes_.size()) {
      rest_ += b.size + prefix_;
      assert(rest_ <= total_);
      spare_.push_back(h);
    } else {
      free_[b.cls].push_back(h);
    }
    const auto w = std::move(waiting);
    waiting.clear();
    for (Proc* p : w) p->thread.signal();
  }
  /// Could the request be served if nothing else were in the pool?
  [[nodiscard]] bool possible(int64_t bytes) const {
    const auto k = class_of(bytes);
    return (k < classes_.size() ? classes_[k] : bytes) + prefix_ <= total_;
  }
  [[nodiscard]] int64_t total() const { return total_; }
  void fill(std::vector<Occupant>& out) const {
    for (const Buffer& b : buffers_)
      if (b.m) out.push_back({b.m, b.size + prefix_, b.since});
  }
  void state(State& s) const {
    const auto& [waiting, total_, rest_, prefix_, classes_, buffers_, free_, spare_] = *this;  // all buffers are alike but for their class
    if (!waiting.empty() || std::any_of(buffers_.begin(), buffers_.end(), [](const Buffer& b) { return b.m != nullptr; })) s.refuse();
    s.put(rest_);
    for (const auto& free : free_) s.put(free.size());
  }
  std::vector<Proc*> waiting;

 private:
  struct Buffer {
    int64_t size;
    size_t cls;
    const Message* m;  // whose packet it holds; null: free
    Ps since;
  };
  [[nodiscard]] size_t class_of(int64_t bytes) const {
    return static_cast<size_t>(std::lower_bound(classes_.begin(), classes_.end(), bytes) - classes_.begin());
  }
  int32_t put(Buffer b) {
    if (!spare_.empty()) {
      const int32_t h = spare_.back();
      spare_.pop_back();
      buffers_[static_cast<size_t>(h)] = b;
      return h;
    }
    buffers_.push_back(b);
    return static_cast<int32_t>(buffers_.size()) - 1;
  }
  int64_t total_, rest_;
  int64_t prefix_;  // the allocator's own header before every buffer: four 256 KiB buffers do not fit into 1 MiB
  std::vector<int64_t> classes_;
  std::vector<Buffer> buffers_;
  std::vector<std::vector<int32_t>> free_;  // by class
  std::vector<int32_t> spare_;
};

class SlotRing {
 public:
  explicit SlotRing(int32_t slots) : slots_(slots), free_(slots) {}
  [[nodiscard]] bool empty() const { return free_ == slots_; }
  [[nodiscard]] int32_t slots() const { return slots_; }
  std::vector<const Chan*> users;  // channels whose packets lie in these slots
  bool take() {
    if (free_ == 0) return false;
    --free_;
    return true;
  }
  void give() {
    assert(free_ < slots_);  // it was taken
    ++free_;
    const auto w = std::move(waiting);
    waiting.clear();
    for (Proc* p : w) p->thread.signal();
  }
  void state(State& s) const {
    const auto& [users, waiting, slots_, free_] = *this;
    if (!waiting.empty()) s.refuse();
    s.put(free_);
  }
  std::vector<Proc*> waiting;

 private:
  int32_t slots_, free_;
};

}  // namespace retrompi
