// What a TCP receive buffer can take, and so the window that it lets its owner advertise.
#pragma once
#include <algorithm>
#include <cstdint>

namespace retrompi {

/// A receive buffer that counts data; or, on Linux, the memory of the frames that hold them (code: Linux 2.4, net/ipv4/tcp_input.c and
/// tcp_output.c). There a quarter of the buffer is kept back, one segment is reserved, windows are whole segments, and a driver that takes large
/// buffers for its frames limits the window to as many of them as fit.
class ReceiveSpace {
 public:
  /// `buffer`: its size (B); `frame`: memory of a received frame (B), 0: the buffer counts data.
  ReceiveSpace(int64_t buffer, int64_t mss, int64_t frame)
      : buffer_(buffer),
        mss_(frame > 0 ? std::max<int64_t>(1, std::min(mss, usable(buffer))) : mss),
        frame_(frame),
        widest_(frame > 0 ? whole(limit()) : buffer) {}

  [[nodiscard]] bool counts_memory() const { return frame_ > 0; }
  /// The widest window (B) that is ever advertised.
  [[nodiscard]] int64_t widest() const { return widest_; }
  /// The window (B) to be advertised while `unread` bytes are in the buffer; `last`: the one advertised before.
  [[nodiscard]] int64_t window(int64_t unread, int64_t last) const {
    if (frame_ == 0) return buffer_ - unread;
    const int64_t space = usable(buffer_ - (unread + mss_ - 1) / mss_ * frame_);
    if (space < mss_) return 0;
    const int64_t most = std::min(space, limit());
    return last <= most - mss_ || last > most ? whole(most) : last;
  }

 private:
  static int64_t usable(int64_t memory) { return memory - memory / 4; }
  [[nodiscard]] int64_t whole(int64_t bytes) const { return std::max(mss_, bytes / mss_ * mss_); }
  /// Where the window stops growing: at what is usable less a segment; or, where a frame's memory is worth more than its data, soon after the
  /// fraction of it at which the data would be worth as much. It starts at four segments, three or two if they are long (tcp_select_initial_window),
  /// and grows by two.
  [[nodiscard]] int64_t limit() const {
    const int64_t all = usable(buffer_), clamp = all > 2 * mss_ ? std::max(2 * mss_, all - mss_) : all;
    if (usable(frame_) <= mss_) return clamp;
    int64_t share = all / 2, memory = usable(frame_) / 2;
    for (; memory > mss_; memory /= 2) share /= 2;
    int64_t reached = std::min((mss_ > 3 * 1460 ? 2 : mss_ > 1460 ? 3 : 4) * mss_, clamp);
    while (reached <= share && reached < clamp) reached = std::min(reached + 2 * mss_, clamp);
    return reached;
  }
  int64_t buffer_, mss_, frame_, widest_;
};

}  // namespace retrompi
