// Credit flow control above a connection, as in Illinois Fast Messages: limits a sender's packets that the receiver has not taken in yet.
#pragma once
#include "channel/tcp.hpp"

namespace retrompi {

/// The credits of one direction. The receiver returns them in packets of the other direction, or in a separate update once it owes
/// half of them; a lost update is sent again after the connection's timeout.
class Credits {
 public:
  /// `total` 0: no limit.
  Credits(Chan& chan, TcpConnection& tcp, int32_t total) : chan_(chan), tcp_(tcp), total_(total), available_(total) {}

  [[nodiscard]] bool limited() const { return total_ > 0; }
  [[nodiscard]] bool exhausted() const { return limited() && available_ <= 0; }
  [[nodiscard]] int32_t total() const { return total_; }
  [[nodiscard]] int32_t available() const { return available_; }

  // ---- the sender
  void take() {
    assert(available_ > 0);
    --available_;
  }
  void refill(int32_t n) {
    available_ += n;
    assert(available_ <= total_);
    chan_.from.thread.signal();
  }

  // ---- the receiver
  /// A packet has been taken in; true when a separate update is due.
  [[nodiscard]] bool owe() { return ++owed_ >= std::max(1, total_ / 2); }
  /// Returns the credits owed and clears them.
  int32_t pay() {
    const int32_t n = owed_;
    owed_ = 0;
    return n;
  }
  void send_update();
  [[nodiscard]] std::string process_name() const { return chan_.process_name(); }
  void put(State& s) const {
    const auto& [chan_, tcp_, total_, available_, owed_, retransmits_] = *this;
    s.put(available_);
    s.put(owed_);
    if (retransmits_ > 0) s.refuse();
  }
  [[nodiscard]] static State::Call describe(const Callback& c, State& s) {
    if (!calls<&Credits::on_update, Credits>(c) && !calls<&Credits::on_update_frame, Credits>(c)) return State::Call::Unknown;
    s.put(c.fn);
    s.put(c.object);
    s.put(c.arg);
    return State::Call::Put;
  }

 private:
  void on_update(uint32_t n) { refill(static_cast<int32_t>(n)); }
  void on_update_frame(uint32_t n);
  void on_update_lost(uint32_t n);
  void send_update_again(uint32_t n);
  void put_on_wire(uint32_t n);

  Chan& chan_;
  TcpConnection& tcp_;
  int32_t total_, available_, owed_ = 0;
  int retransmits_ = 0;
};

}  // namespace retrompi
