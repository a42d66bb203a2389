// The receiver of a TCP connection: reassembly, and when it acknowledges (RFC 1122 4.2.3.2: at the latest every second segment, or when
// the delayed-ACK timer expires; immediately if it is out of order).
#include "channel/tcp.hpp"

namespace retrompi {

void TcpConnection::on_segment_frame(uint64_t frame) {
  Host& h = to_.host;
  h.kernel(h.charge_frame(host_number::tcp_segment, bytes_of(frame) * host_number::tcp_byte), Stage::Stack,
           callback<&TcpConnection::on_segment>(*this, frame));
}

void TcpConnection::on_segment(uint64_t frame) {
  const Segment s = segments_.arrived(id_of(frame));
  const bool gap = !reassembly_.empty();
  if (numbered_ && (s.seq > rcv_nxt_ || s.seq + s.bytes <= rcv_nxt_)) {
    out_of_order(s);
    if (s.ack.ack >= 0) reverse_->acknowledged(s.ack);
    return;
  }
  rcv_nxt_ = numbered_ ? s.seq + s.bytes : rcv_nxt_ + s.bytes;
  if (gap) reassemble();
  assert(rcv_nxt_ <= snd_max_);  // no byte arrives that was not sent
  if (to_.thread.dead())
    read_ = rcv_nxt_;  // the system has closed the dead process's sockets and discards what arrives
  else
    user_.on_readable();
  if (s.ack.ack >= 0) reverse_->acknowledged(s.ack);
  ++unacked_;
  if (ack_due() || gap || !stack_)
    send_ack();
  else
    delay_ack();
}

/// A segment out of order is acknowledged at once (RFC 1122 4.2.2.21), as is a duplicate.
void TcpConnection::out_of_order(const Segment& s) {
  if (s.seq > rcv_nxt_) reassembly_[s.seq] = std::max(reassembly_[s.seq], s.seq + s.bytes);
  send_ack();
}

void TcpConnection::reassemble() {
  while (!reassembly_.empty() && reassembly_.begin()->first <= rcv_nxt_) {
    rcv_nxt_ = std::max(rcv_nxt_, reassembly_.begin()->second);
    reassembly_.erase(reassembly_.begin());
  }
}

/// Every second segment is acknowledged. Linux holds that back while the window would be advertised smaller than before; the read that frees
/// the memory, or the timer, sends it.
bool TcpConnection::ack_due() const { return unacked_ >= 2 && (!space_.counts_memory() || space_.window(readable(), rcv_wnd_) >= rcv_wnd_); }

/// Silly-window avoidance (RFC 1122 4.2.3.3): after a read, only a sufficiently large opening is advertised. Linux acknowledges what is due
/// anyway, and else advertises a window that has doubled.
bool TcpConnection::window_opened() const {
  if (!space_.counts_memory()) return read_ + rcvbuf_ - rcv_adv_ >= std::min(2 * mss_, rcvbuf_ / 2);
  if (unacked_ >= 2) return true;
  const int64_t left = rcv_adv_ - rcv_nxt_, now = space_.window(readable(), rcv_wnd_);
  return 2 * left <= rcvbuf_ && now > 0 && now >= 2 * left;
}

void TcpConnection::delay_ack() {
  ack_delayed_ = true;
  ack_delayed_at_ = world_.loop.now;
  ack_cause_ = world_.anatomy.current;
  ack_point_ = world_.loop.cause;
  ack_sequence_ = world_.loop.reserve_sequence();
  if (!ack_timer_) schedule_delayed_ack();
}

void TcpConnection::schedule_delayed_ack() {
  ack_timer_ = true;
  world_.loop.schedule_reserved(ack_delayed_at_ + to_.host.spec.delayed_ack, ack_sequence_,
                                callback<&TcpConnection::on_delayed_ack>(*this, ack_sequence_));
}

/// One event serves all segments: it moves on to the time of the latest segment whose acknowledgement is delayed, even if it then does nothing.
void TcpConnection::on_delayed_ack(uint64_t sequence) {
  if (sequence != ack_sequence_) return schedule_delayed_ack();
  ack_timer_ = false;
  if (!ack_delayed_) return;
  if (CriticalPath& path = world_.anatomy.critical; path.on)
    world_.loop.cause = path.extend(ack_point_, world_.loop.now, Stage::Ack, to_.host.place());
  if (Anatomy& a = world_.anatomy; a.on) {
    // The segment whose acknowledgement is delayed started the timer: the chain of causes continues with it.
    a.current = ack_cause_;
    chan_.attribute(NetworkPacket::Ack, 0, true);
    a.current = a.of(a.record("tcp", Stage::Ack, ack_delayed_at_, ack_delayed_at_, world_.loop.now));
  }
  send_ack();
}

/// Data are about to leave in the other direction and can carry the acknowledgement; ack -1: nothing new to acknowledge.
TcpConnection::Ack TcpConnection::piggybacked_ack() {
  if (unacked_ == 0 && rcv_adv_ == edge()) return {-1, 0};
  return acknowledge();
}

/// The right edge of the window that may be advertised now; it does not move back (RFC 793 3.7).
int64_t TcpConnection::edge() const { return std::max(rcv_adv_, rcv_nxt_ + space_.window(readable(), rcv_wnd_)); }

/// What an acknowledgement sent now says.
TcpConnection::Ack TcpConnection::acknowledge() {
  unacked_ = 0;
  if (CriticalPath& path = world_.anatomy.critical; path.on && ack_delayed_)  // before its timer would have sent it
    path.follows(world_.loop.cause, path.extend(ack_point_, ack_delayed_at_ + to_.host.spec.delayed_ack, Stage::Wait, to_.host.place()));
  ack_delayed_ = false;
  rcv_adv_ = edge();
  rcv_wnd_ = rcv_adv_ - rcv_nxt_;
  return {rcv_nxt_, rcv_adv_};
}

void TcpConnection::send_ack() {
  const uint32_t id = acks_.put(acknowledge());
  chan_.attribute(NetworkPacket::Ack, 0, true);
  Host& h = to_.host;
  if (local_)
    world_.loop.schedule(world_.loop.now, callback<&TcpConnection::on_ack>(*this, id));
  else
    h.kernel(h.charge(host_number::tcp_segment), Stage::Stack, callback<&TcpConnection::on_ack_out>(*this, id));
}

void TcpConnection::on_ack_out(uint32_t id) { send_frame(to_, 0, delivery<&TcpConnection::on_ack_frame, &TcpConnection::on_ack_lost>(*this, id)); }

}  // namespace retrompi
