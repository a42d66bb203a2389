// What a TCP connection does about lost segments: the retransmission timer (RFC 793 3.7, RFC 1122 4.2.3.1), probes of a closed window
// (RFC 1122 4.2.2.17) and fast retransmit (RFC 2001, as in 4.3BSD-Reno but without fast recovery's inflation of the window).
//
// The timer of a real connection always exists. Here it becomes an event only after a loss, at the time at which the real one would
// expire, and until all sent data are acknowledged: before a loss it has no effect.
#include "channel/tcp.hpp"

namespace retrompi {

void TcpConnection::on_segment_lost(uint64_t frame) {
  number_segments();
  const Segment s = segments_.lost(id_of(frame));
  recover();
  if (s.ack.ack >= 0) reverse_->recover();  // it carried an acknowledgement
}

void TcpConnection::on_ack_lost(uint32_t id) {
  acks_.lost(id);
  recover();
}

/// From the first loss on, segments are tracked by sequence number; before, everything in flight arrives and counting suffices.
void TcpConnection::number_segments() {
  if (numbered_) return;
  numbered_ = true;
  int64_t at = rcv_nxt_;
  segments_.each([&at](Segment& s) {
    s.seq = at;
    at += s.bytes;
  });
}

void TcpConnection::give_up(const Proc& sender, const Proc& receiver, int tries) {
  throw Abort{"the connection from " + sender.thread.name() + " to " + receiver.thread.name() + " was given up: a segment was sent again " +
              std::to_string(tries) + " times and not acknowledged"};
}

void TcpConnection::recover() {
  if (recovering_ || from_.thread.dead()) return;
  number_segments();
  recovering_ = true;
  lost_by_ = world_.anatomy.current;
  schedule_retransmission();
}

Ps TcpConnection::rto() const {
  const HostSpec& h = from_.host.spec;
  return round_trip_.rto(h.rto_first, h.rto_min, h.rto_max);
}

Ps TcpConnection::retransmission_due() const { return timer_start_ + RoundTripTime::backed_off(rto(), retransmits_, from_.host.spec.rto_max); }

void TcpConnection::schedule_retransmission() {
  world_.loop.schedule(std::max(world_.loop.now, retransmission_due()), callback<&TcpConnection::on_retransmission_timer>(*this));
}

void TcpConnection::on_retransmission_timer() {
  // What a dead process has written will not be read, and its system has dropped the connection.
  if (from_.thread.dead() || to_.thread.dead()) return;
  const bool closed = snd_una_ == snd_max_ && written_ > snd_nxt_;  // the window is closed; the segment that opened it may have been lost
  if (snd_una_ == snd_max_ && (!closed || probe_ == Probe::Answered)) {
    recovering_ = false;
    probe_ = Probe::None;
    retransmits_ = 0;
    congestion_.forget_duplicates();
    return;
  }
  if (world_.loop.now < retransmission_due()) return schedule_retransmission();
  if (retransmits_ >= from_.host.spec.tcp_retries) give_up(from_, to_, retransmits_);
  if (CriticalPath& path = world_.anatomy.critical; path.on)
    world_.loop.cause = path.extend(world_.loop.cause, world_.loop.now, Stage::Ack, from_.host.place());
  if (Anatomy& a = world_.anatomy; a.on) {
    a.current = lost_by_;
    chan_.attribute(NetworkPacket::Segment, 0);
    a.current = a.of(a.record("tcp retransmission", Stage::Ack, timer_start_, timer_start_, world_.loop.now));
  }
  ++retransmits_;
  timer_start_ = world_.loop.now;
  if (closed) {
    probe_ = Probe::Sent;
    send_segment(snd_nxt_, 0);
  } else {
    round_trip_.cancel();
    congestion_.on_timeout(snd_max_ - snd_una_);
    snd_nxt_ = snd_una_;  // go back N
    output();
  }
  schedule_retransmission();
}

void TcpConnection::fast_retransmit() {
  round_trip_.cancel();
  congestion_.on_fast_retransmit(snd_max_ - snd_una_);
  timer_start_ = world_.loop.now;
  ++common_.count.retransmissions;
  send_segment(snd_una_, std::min(mss_, snd_max_ - snd_una_));
}

/// Round trips are timed for the time-out alone, which does not matter where nothing can be lost (the wire says so).
void TcpConnection::state(State& s) {
  auto& [world_, common_, chan_, from_, to_, user_, reverse_, local_, nagle_, stack_, mss_, sndbuf_, space_, rcvbuf_, snd_una_, snd_nxt_, snd_max_,
         written_, snd_edge_, congestion_, round_trip_, rcv_nxt_, read_, rcv_adv_, rcv_wnd_, unacked_, ack_delayed_, ack_timer_, ack_delayed_at_,
         ack_sequence_, ack_cause_, ack_point_, written_point_, acked_point_, una_before_, limit_before_, segments_, acks_, timer_start_, numbered_,
         recovering_, retransmits_, probe_, lost_by_, reassembly_] = *this;
  if (numbered_ || recovering_ || !reassembly_.empty() || probe_ != Probe::None || retransmits_ > 0) return s.refuse();
  congestion_.state(s);
  for (const int64_t at : {snd_una_, snd_nxt_, snd_max_, snd_edge_, rcv_nxt_, read_, rcv_adv_}) s.put(at - written_);
  s.put(rcv_wnd_);
  s.put(unacked_);
  s.put(ack_delayed_);
  if (ack_delayed_) s.put_due(ack_delayed_at_ + to_.host.spec.delayed_ack, ack_sequence_ << 1, callback<&TcpConnection::on_delayed_ack>(*this));
  s.put(segments_.size());
  const int64_t here = written_, there = reverse_ ? reverse_->written_ : 0;
  segments_.each([&](const Segment& each) {
    const auto& [seq, bytes, carried] = each;
    s.put(seq - here);
    s.put(bytes);
    s.put(carried.ack >= 0);
    if (carried.ack < 0) return;
    s.put(carried.ack - there);
    s.put(carried.edge - there);
  });
  s.put(acks_.size());
  acks_.each([&](const Ack& each) {
    const auto& [ack, edge] = each;
    s.put(ack - here);
    s.put(edge - here);
  });
}

State::Call TcpConnection::describe(const Callback& c, State& s) {
  using T = TcpConnection;
  T& tcp = *static_cast<T*>(c.object);
  if (calls<&T::on_delayed_ack, T>(c)) return State::Call::Void;  // put as due by `state`
  const bool segment = calls<&T::on_segment_out, T>(c) || calls<&T::on_segment_frame, T>(c) || calls<&T::on_segment, T>(c);
  const bool ack = calls<&T::on_ack_out, T>(c) || calls<&T::on_ack_frame, T>(c) || calls<&T::on_ack, T>(c);
  if (!segment && !ack) return State::Call::Unknown;
  s.put(c.fn);
  s.put(c.object);
  s.put(segment ? tcp.segments_.before(id_of(c.arg)) : tcp.acks_.before(static_cast<uint32_t>(c.arg)));
  if (segment) s.put(bytes_of(c.arg));
  return State::Call::Put;
}

}  // namespace retrompi
