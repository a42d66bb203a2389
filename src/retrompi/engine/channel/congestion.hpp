// Congestion control of a TCP connection (RFC 2001: slow start, congestion avoidance, fast retransmit).
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>

#include "event/state.hpp"

namespace retrompi {

/// `cwnd` does not limit anything before the first loss: on the links of a cluster the receiver's window is the narrower one, and it is
/// again as soon as `cwnd` has grown to it.
class Congestion {
 public:
  static constexpr int64_t kUnlimited = int64_t{1} << 60;

  Congestion(int64_t mss, int64_t rcvbuf) : mss_(mss), rcvbuf_(rcvbuf) {}

  [[nodiscard]] int64_t cwnd() const { return cwnd_; }
  [[nodiscard]] int64_t ssthresh() const { return ssthresh_; }
  [[nodiscard]] int dupacks() const { return dupacks_; }

  /// `bytes` are newly acknowledged: slow start below `ssthresh`, a segment a round trip above it.
  void on_ack(int64_t bytes) {
    if (cwnd_ >= kUnlimited) return;
    cwnd_ += cwnd_ < ssthresh_ ? std::min(bytes, mss_) : std::max<int64_t>(1, mss_ * mss_ / cwnd_);
    if (cwnd_ >= rcvbuf_ && cwnd_ >= ssthresh_) cwnd_ = kUnlimited;
  }
  /// The retransmission timer has expired with `flight` bytes unacknowledged.
  void on_timeout(int64_t flight) {
    halve(flight);
    cwnd_ = mss_;
  }
  /// Counts a duplicate acknowledgement; true at the `limit`th, which triggers a fast retransmit.
  [[nodiscard]] bool on_duplicate_ack(int limit) { return ++dupacks_ == limit; }
  /// The oldest segment is sent again without waiting for the timer.
  void on_fast_retransmit(int64_t flight) {
    halve(flight);
    cwnd_ = ssthresh_;
  }
  void forget_duplicates() { dupacks_ = 0; }
  /// Its future: only while it limits nothing.
  void state(State& s) const {
    const auto& [mss_, rcvbuf_, cwnd_, ssthresh_, dupacks_] = *this;
    if (cwnd_ < kUnlimited) s.refuse();
    s.put(ssthresh_);
    s.put(dupacks_);
  }

 private:
  void halve(int64_t flight) {
    assert(flight >= 0);
    ssthresh_ = std::max(2 * mss_, std::min(flight, cwnd_) / 2);
    dupacks_ = 0;
  }
  int64_t mss_, rcvbuf_;
  int64_t cwnd_ = kUnlimited, ssthresh_ = kUnlimited;
  int dupacks_ = 0;
};

}  // namespace retrompi
