// One-sided operations: the origin's processor moves the data; the target takes no part. A put is complete at the origin when
// the data have left, and at the target when they have arrived (flush, fence).
#pragma once
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "mpi/request.hpp"

namespace retrompi {

class Rank;

class OneSided {
 public:
  explicit OneSided(Rank& rank) : rank_(rank) {}
  /// Any call on a window.
  Task execute(const Action& a);
  Task put(int32_t target, int64_t bytes);
  /// Waits until all operations of this rank have arrived.
  Task flush();
  /// Its future, in words: of no operation under way. Epochs only change in calls.
  void state(State& s) const {
    const auto& [rank_, puts_open_, get_open_, gets_, gets_open_, windows_, open_, lock_of_] = *this;
    if (puts_open_ > 0 || get_open_ || !gets_open_.empty() || lock_of_) s.refuse();
  }
  /// The rank whose memory this rank waits to lock; null: none.
  [[nodiscard]] const Rank* waits_to_lock() const { return lock_of_; }
  [[nodiscard]] bool holds_lock(int32_t window, int32_t target) const;
  /// Windows that this rank has made and not freed -> the line that made them.
  [[nodiscard]] const std::map<int32_t, uint32_t>& open() const { return open_; }
  /// Locks that this rank holds: (window, rank whose memory it has locked).
  [[nodiscard]] std::vector<std::pair<int32_t, int32_t>> locks_held() const;

 private:
  Task access(const Action& a, const action::Rma& x);
  /// `later`: the request that is complete when the data have arrived; without one the caller waits for them.
  Task get(int32_t target, int64_t bytes, Request* later = nullptr);
  Task origin(const RmaSpec& s, int32_t other, int64_t bytes, bool put);
  Task make_or_free(const Action& a);
  Task synchronise(const Action& a, const action::WindowSync& x);
  Task lock(int32_t window, Rank& target, bool exclusive);
  Task unlock(int32_t window, Rank& target, bool exclusive);
  Task lock_all(const Action& a, const action::WindowSync& x);
  Task send_to_each(std::span<const int64_t> ranks, int32_t ctx, int32_t tag);
  Task receive_from_each(std::span<const int64_t> ranks, int32_t ctx, int32_t tag);
  [[nodiscard]] const RmaSpec& rma(int32_t target) const;
  void put_arrived();
  void get_arrived();
  void requested_get_arrived(uint64_t number);

  struct Epoch {                                 // of this rank in a window
    std::vector<int64_t> exposed_to, access_to;  // world ranks
    std::unordered_map<int32_t, bool> locked;    // ranks whose memory this rank has locked -> exclusively
    int32_t shared = 0;                          // locks on this rank's memory, held by others or itself
    bool exclusive = false;
    std::vector<Rank*> wanted;  // ranks waiting for such a lock
  };
  Rank& rank_;
  int32_t puts_open_ = 0;
  bool get_open_ = false;
  uint64_t gets_ = 0;                                 // that returned a request, numbered from 1
  std::unordered_map<uint64_t, Request*> gets_open_;  // by number
  std::unordered_map<int32_t, Epoch> windows_;
  std::map<int32_t, uint32_t> open_;
  const Rank* lock_of_ = nullptr;
};

}  // namespace retrompi
