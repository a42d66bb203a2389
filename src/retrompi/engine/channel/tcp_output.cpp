// The sender of a TCP connection: what may be sent (window, congestion window, Nagle), and what an acknowledgement changes.
#include "channel/tcp.hpp"

namespace retrompi {

namespace {
constexpr int64_t kTcpHeader = 20;      // the IP header is in the link's frame overhead
constexpr int64_t kSendOverhead = 400;  // space for headers and the kernel's descriptor of a segment (code: Linux 2.4, MAX_TCP_HEADER)

/// What a send buffer holds, in bytes of data: where it counts memory, segments are added until it is full.
int64_t send_space(int64_t buffer, int64_t mss, bool memory) {
  const int64_t segment = mss + kSendOverhead;
  return memory ? (buffer + segment - 1) / segment * mss : buffer;
}
}  // namespace

TcpConnection::TcpConnection(Chan& chan, User& user, const Options& o)
    : world_(chan.world),
      common_(chan.common),
      chan_(chan),
      from_(chan.from),
      to_(chan.to),
      user_(user),
      local_(&from_.host == &to_.host),
      nagle_(o.nagle),
      stack_(o.stack),
      mss_(!stack_  ? std::max<int64_t>(1, o.sndbuf ? o.sndbuf : from_.host.spec.sndbuf)
           : local_ ? from_.host.spec.loopback_mss
                    : from_.host.spec.mss),
      sndbuf_(send_space(o.sndbuf ? o.sndbuf : from_.host.spec.sndbuf, mss_, !local_ && from_.host.spec.rx_buffer > 0)),
      space_(o.rcvbuf ? o.rcvbuf : to_.host.spec.window, mss_, local_ ? 0 : to_.host.spec.rx_buffer),
      rcvbuf_(space_.widest()),
      snd_edge_(rcvbuf_),
      congestion_(mss_, rcvbuf_),
      rcv_adv_(rcvbuf_),
      rcv_wnd_(rcvbuf_) {}

void TcpConnection::output() {
  assert(snd_una_ <= snd_nxt_ && snd_nxt_ <= snd_max_ && snd_max_ <= written_);
  while (snd_nxt_ < written_) {
    const int64_t n = std::min(written_ - snd_nxt_, mss_);
    const int64_t usable = std::min(snd_edge_, snd_una_ + congestion_.cwnd()) - snd_nxt_;
    // Sender's silly-window avoidance (RFC 1122 4.2.3.4): no partial segment, unless nothing else is in flight.
    if (usable < n && !(snd_nxt_ == snd_una_ && usable > 0)) break;
    // Nagle (RFC 896): a small segment waits until all before it is acknowledged.
    if (nagle_ && n < mss_ && snd_nxt_ > snd_una_) break;
    const int64_t bytes = std::min(n, usable);
    if (snd_nxt_ == snd_una_) timer_start_ = world_.loop.now;
    if (!round_trip_.timing() && snd_nxt_ == snd_max_) round_trip_.start(snd_nxt_ + bytes, world_.loop.now);
    if (snd_nxt_ < snd_max_) ++common_.count.retransmissions;
    const CriticalPath::Point here = world_.loop.cause;
    if (world_.anatomy.critical.on) world_.loop.cause = allowed(snd_nxt_, bytes);
    send_segment(snd_nxt_, bytes);
    world_.loop.cause = here;
    snd_nxt_ += bytes;
    snd_max_ = std::max(snd_max_, snd_nxt_);
  }
}

/// On the critical path: a segment needs its data, and the last acknowledgement if it could not have been sent before that.
CriticalPath::Point TcpConnection::allowed(int64_t seq, int64_t bytes) const {
  CriticalPath& path = world_.anatomy.critical;
  const CriticalPath::Point written = path.join(world_.loop.cause, written_point_);
  const bool needed = seq + bytes > limit_before_ || (nagle_ && bytes < mss_ && seq > una_before_);
  return needed ? path.join(written, acked_point_) : written;
}

void TcpConnection::send_segment(int64_t seq, int64_t bytes) {
  Host& h = from_.host;
  chan_.attribute(NetworkPacket::Segment, bytes);
  const uint64_t frame = frame_of(segments_.put({seq, bytes, reverse_ ? reverse_->piggybacked_ack() : Ack{-1, 0}}), bytes);
  if (!stack_)
    world_.loop.schedule(world_.loop.now, callback<&TcpConnection::on_segment>(*this, frame));
  else if (local_)
    h.kernel(h.charge(host_number::loopback_segment), Stage::Stack, callback<&TcpConnection::on_segment>(*this, frame));
  else
    h.kernel(h.charge(host_number::tcp_segment, bytes * host_number::tcp_byte), Stage::Stack, callback<&TcpConnection::on_segment_out>(*this, frame));
}

void TcpConnection::on_segment_out(uint64_t frame) {
  send_frame(from_, bytes_of(frame), delivery<&TcpConnection::on_segment_frame, &TcpConnection::on_segment_lost>(*this, frame));
}

void TcpConnection::send_frame(Proc& sender, int64_t payload, const Delivery& d) {
  const Proc& other = &sender == &from_ ? to_ : from_;
  world_.net->frame(common_, sender.host_index, other.host_index, payload + kTcpHeader, d);
}

void TcpConnection::on_ack_frame(uint32_t id) {
  Host& h = from_.host;
  h.kernel(h.charge_frame(host_number::tcp_segment), Stage::Stack, callback<&TcpConnection::on_ack>(*this, id));
}

void TcpConnection::on_ack(uint32_t id) {
  const Ack a = acks_.arrived(id);
  if (probe_ == Probe::Sent) probe_ = Probe::Answered;
  const bool duplicate = recovering_ && a.ack == snd_una_ && a.edge == snd_edge_ && snd_max_ > snd_una_;
  if (!duplicate) return acknowledged(a);
  if (congestion_.on_duplicate_ack(from_.host.spec.dup_acks)) fast_retransmit();
}

void TcpConnection::acknowledged(const Ack& a) {
  assert(a.ack <= snd_max_);  // only data that was sent is acknowledged
  const bool was_full = space() <= 0;
  if (world_.anatomy.critical.on) {
    una_before_ = snd_una_;
    limit_before_ = std::min(snd_edge_, snd_una_ + congestion_.cwnd());
    acked_point_ = world_.loop.cause;
  }
  if (a.ack > snd_una_ || a.edge > snd_edge_) {
    timer_start_ = world_.loop.now;
    retransmits_ = 0;
    congestion_.forget_duplicates();
    round_trip_.acknowledged(a.ack, world_.loop.now);
    if (a.ack > snd_una_) congestion_.on_ack(a.ack - snd_una_);
  }
  snd_una_ = std::max(snd_una_, a.ack);
  snd_nxt_ = std::max(snd_nxt_, snd_una_);
  snd_edge_ = std::max(snd_edge_, a.edge);
  output();
  user_.on_acknowledged(was_full);
}

}  // namespace retrompi
