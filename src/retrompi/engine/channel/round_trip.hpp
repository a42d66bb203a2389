// The retransmission timeout of a TCP connection (RFC 793 3.7, RFC 1122 4.2.3.1; Jacobson 1988, now RFC 6298).
#pragma once
#include <algorithm>
#include <cassert>

#include "event/time.hpp"

namespace retrompi {

class RoundTripTime {
 public:
  /// Whether a segment is being timed.
  [[nodiscard]] bool timing() const { return seq_ >= 0; }
  /// Times the round trip that ends with the acknowledgement of `seq`.
  void start(int64_t seq, Ps now) {
    seq_ = seq;
    started_ = now;
  }
  /// Karn's algorithm: a retransmitted segment gives no valid round-trip sample.
  void cancel() { seq_ = -1; }
  /// Everything before `ack` is acknowledged.
  void acknowledged(int64_t ack, Ps now) {
    if (seq_ < 0 || ack < seq_) return;
    seq_ = -1;
    const Ps took = now - started_;
    assert(took >= 0);
    if (srtt_ < 0) {
      srtt_ = took;
      rttvar_ = took / 2;
      return;
    }
    const Ps error = took - srtt_;
    srtt_ += error / 8;
    rttvar_ += (std::max(error, -error) - rttvar_) / 4;
  }
  /// The timeout before any back-off; `first`: before a round trip has been timed.
  [[nodiscard]] Ps rto(Ps first, Ps least, Ps most) const { return srtt_ < 0 ? first : std::min(std::max(srtt_ + 4 * rttvar_, least), most); }
  /// Exponential back-off: doubled with each of `shift` retransmissions, up to `most`.
  [[nodiscard]] static Ps backed_off(Ps rto, int shift, Ps most) { return std::min(rto * (1 << std::min(shift, 12)), std::max(rto, most)); }

  [[nodiscard]] Ps srtt() const { return srtt_; }
  [[nodiscard]] Ps rttvar() const { return rttvar_; }

 private:
  int64_t seq_ = -1;  // the acknowledgement of this byte ends a round trip; -1: none is timed
  Ps started_ = 0;
  Ps srtt_ = -1, rttvar_ = 0;
};

}  // namespace retrompi
