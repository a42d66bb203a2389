// The first hops of a process towards the ranks it communicates with. One rank of thousands talks to a few, so they are created on first use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace retrompi {

class Chan;
class Proc;

/// Creates the channels between a process and a rank on first use.
class ChannelMaker {
 public:
  virtual ~ChannelMaker() = default;
  /// Creates the channels between the two and enters them into the maps of `from` and of rank `to`.
  virtual void connect(Proc& from, size_t to) = 0;
};

/// Rank -> channel, by open addressing. With a maker, a missing channel is created when it is looked up.
class ChannelMap {
 public:
  /// `owner`: the process whose channels these are.
  void made_by(ChannelMaker& maker, Proc& owner) {
    maker_ = &maker;
    owner_ = &owner;
  }
  void put(size_t to, Chan* c) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& s = slot(to);
    if (s.key == 0) ++used_;
    s = {to + 1, c};
  }
  [[nodiscard]] Chan* find(size_t to) const {
    if (slots_.empty()) return nullptr;
    const Slot& s = const_cast<ChannelMap*>(this)->slot(to);
    return s.key == 0 ? nullptr : s.chan;
  }
  Chan* operator[](size_t to) {
    if (!slots_.empty()) {
      const Slot& s = slot(to);
      if (s.key != 0) return s.chan;
    }
    if (!maker_) return nullptr;
    maker_->connect(*owner_, to);
    return find(to);
  }

 private:
  struct Slot {
    size_t key = 0;  // rank + 1; 0: free
    Chan* chan = nullptr;
  };
  Slot& slot(size_t to) {
    const size_t mask = slots_.size() - 1;
    size_t i = (to * 0x9e3779b97f4a7c15ULL >> 40) & mask;
    while (slots_[i].key != 0 && slots_[i].key != to + 1) i = (i + 1) & mask;
    return slots_[i];
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 8 : 2 * slots_.size());
    before.swap(slots_);
    for (const Slot& s : before)
      if (s.key != 0) slot(s.key - 1) = s;
  }
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  size_t used_ = 0;
  ChannelMaker* maker_ = nullptr;
  Proc* owner_ = nullptr;
};

}  // namespace retrompi
