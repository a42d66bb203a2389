// TCP between two processes (RFC 793, RFC 1122 4.2): windows, Nagle's algorithm, delayed acknowledgement, recovery of lost segments.
#pragma once
#include <map>

#include "channel/chan.hpp"
#include "channel/congestion.hpp"
#include "channel/in_flight.hpp"
#include "channel/receive_space.hpp"
#include "channel/round_trip.hpp"

namespace retrompi {

/// One direction of a connection: the sender at `Chan::from`, the receiver at `Chan::to`. The other direction is a separate
/// `TcpConnection` (`pair_with`), whose segments carry the acknowledgements of this one. Sequence numbers count bytes from 0 on; names are those of
/// RFC 793 and, where it has none, of 4.4BSD.
class TcpConnection {
 public:
  /// The user of both sockets: writes to the sender's and reads from the receiver's.
  class User {
   public:
    virtual ~User() = default;
    /// `rcv_nxt` has moved: there are bytes to be read.
    virtual void on_readable() = 0;
    /// `snd_una` may have moved; `was_full`: the send buffer had no space before.
    virtual void on_acknowledged(bool was_full) = 0;
  };
  struct Options {
    int64_t sndbuf = 0, rcvbuf = 0;  // bytes; 0: the host's
    bool nagle = false;
    bool stack = true;  // of protocols; false: the sockets of two processes of one host hand data over
  };
  TcpConnection(Chan& chan, User& user, const Options& options);

  /// The opposite direction of the same connection.
  void pair_with(TcpConnection& other) { reverse_ = &other; }
  [[nodiscard]] TcpConnection* reverse() const { return reverse_; }

  // ---- the sender's socket
  /// Free space in the send buffer, in bytes; an asynchronous write may leave it below 0.
  [[nodiscard]] int64_t space() const { return sndbuf_ - (written_ - snd_una_); }
  /// Whether the send buffer counts memory; then a writer that has filled it goes on only when a third is free (code: Linux 2.4, net/tcp.h:
  /// tcp_min_write_space).
  [[nodiscard]] bool counts_memory() const { return space_.counts_memory(); }
  [[nodiscard]] bool writable() const { return space() > 0 && (!counts_memory() || 2 * space() >= written_ - snd_una_); }
  [[nodiscard]] int64_t sndbuf() const { return sndbuf_; }
  [[nodiscard]] int64_t mss() const { return mss_; }
  [[nodiscard]] int64_t written() const { return written_; }
  [[nodiscard]] int64_t snd_una() const { return snd_una_; }
  [[nodiscard]] int64_t snd_nxt() const { return snd_nxt_; }
  /// Appends `bytes` to the send buffer.
  void write(int64_t bytes) {
    written_ = checked_sum(written_, bytes);
    written_point_ = world_.loop.cause;
    from_.host.acted();
    output();
  }

  // ---- the receiver's socket
  [[nodiscard]] int64_t rcvbuf() const { return rcvbuf_; }
  [[nodiscard]] int64_t rcv_nxt() const { return rcv_nxt_; }
  [[nodiscard]] int64_t read_bytes() const { return read_; }
  [[nodiscard]] int64_t readable() const { return rcv_nxt_ - read_; }
  /// Removes `bytes` from the receive buffer.
  void read(int64_t bytes) {
    read_ += bytes;
    to_.host.acted();
    assert(read_ <= rcv_nxt_);
    if (window_opened()) send_ack();
  }

  [[nodiscard]] std::string process_name() const { return chan_.process_name(); }
  /// Its future, in words.
  void state(State& s);
  [[nodiscard]] static State::Call describe(const Callback& c, State& s);

  // ---- for other users of the connection (credits)
  /// Whether both ends are on one host.
  [[nodiscard]] bool local() const { return local_; }
  /// Whether protocols carry it; else the system hands data from socket to socket.
  [[nodiscard]] bool stack() const { return stack_; }
  /// Puts a segment without data of `sender` on the wire.
  void send_header(Proc& sender, const Delivery& d) { send_frame(sender, 0, d); }
  [[nodiscard]] Ps rto() const;
  [[noreturn]] static void give_up(const Proc& sender, const Proc& receiver, int tries);

  [[nodiscard]] const Congestion& congestion() const { return congestion_; }
  [[nodiscard]] const RoundTripTime& round_trip() const { return round_trip_; }

 private:
  struct Ack {
    int64_t ack, edge;  // the next byte expected; the right edge of the window
  };
  struct Segment {
    int64_t seq, bytes;
    Ack ack;  // of the other direction, carried with it; ack -1: none
  };
  // One number identifies a frame: it combines the id of its segment and its payload.
  static uint64_t frame_of(uint32_t id, int64_t bytes) { return static_cast<uint64_t>(id) << 32 | static_cast<uint64_t>(bytes); }
  static uint32_t id_of(uint64_t frame) { return static_cast<uint32_t>(frame >> 32); }
  static int64_t bytes_of(uint64_t frame) { return static_cast<int64_t>(frame & UINT32_MAX); }
  void send_frame(Proc& sender, int64_t payload, const Delivery& d);

  // ---- sender (tcp_output.cpp)
  void output();
  void send_segment(int64_t seq, int64_t bytes);
  [[nodiscard]] CriticalPath::Point allowed(int64_t seq, int64_t bytes) const;
  void on_segment_out(uint64_t frame);
  void on_ack_frame(uint32_t id);
  void on_ack(uint32_t id);
  void acknowledged(const Ack& a);

  // ---- receiver (tcp_input.cpp)
  void on_segment_frame(uint64_t frame);
  void on_segment(uint64_t frame);
  void out_of_order(const Segment& s);
  void reassemble();
  void delay_ack();
  [[nodiscard]] bool ack_due() const;
  [[nodiscard]] bool window_opened() const;
  void schedule_delayed_ack();
  void on_delayed_ack(uint64_t sequence);
  void send_ack();
  void on_ack_out(uint32_t id);
  [[nodiscard]] Ack piggybacked_ack();
  [[nodiscard]] int64_t edge() const;
  Ack acknowledge();

  // ---- recovery (tcp_recovery.cpp)
  void on_segment_lost(uint64_t frame);
  void on_ack_lost(uint32_t id);
  void number_segments();
  void recover();
  [[nodiscard]] Ps retransmission_due() const;
  void schedule_retransmission();
  void on_retransmission_timer();
  void fast_retransmit();

  World& world_;
  Common& common_;
  Chan& chan_;
  Proc &from_, &to_;
  User& user_;
  TcpConnection* reverse_ = nullptr;
  const bool local_, nagle_, stack_;
  const int64_t mss_, sndbuf_;
  const ReceiveSpace space_;
  const int64_t rcvbuf_;  // the widest window

  // sender
  int64_t snd_una_ = 0;  // oldest byte that is not acknowledged
  int64_t snd_nxt_ = 0;  // next byte to be sent
  int64_t snd_max_ = 0;  // highest byte sent: `snd_nxt_` goes back when the retransmission timer expires
  int64_t written_ = 0;  // end of the data in the send buffer
  int64_t snd_edge_;     // right edge of the window, as the sender knows it: SND.UNA + SND.WND
  Congestion congestion_;
  RoundTripTime round_trip_;
  // receiver
  int64_t rcv_nxt_ = 0;                           // next byte expected
  int64_t read_ = 0;                              // how far the process has read
  int64_t rcv_adv_;                               // right edge of the advertised window
  int64_t rcv_wnd_;                               // the window as it was last advertised
  int32_t unacked_ = 0;                           // segments since the last acknowledgement
  bool ack_delayed_ = false, ack_timer_ = false;  // an acknowledgement is due; its timer event is pending
  Ps ack_delayed_at_ = 0;
  uint64_t ack_sequence_ = 0;
  Cause ack_cause_;
  CriticalPath::Point ack_point_ = 0;
  // On the critical path: when the last data were written; when the last acknowledgement came, and what might be sent before it.
  CriticalPath::Point written_point_ = 0, acked_point_ = 0;
  int64_t una_before_ = 0, limit_before_ = 0;
  InFlight<Segment> segments_;
  InFlight<Ack> acks_;
  // recovery: the sender's
  Ps timer_start_ = 0;       // of the retransmission timer
  bool numbered_ = false;    // segments in flight are tracked by sequence number
  bool recovering_ = false;  // a segment was lost and not all data are acknowledged: the timer is an event
  int retransmits_ = 0;      // of the oldest segment
  enum class Probe : uint8_t { None, Sent, Answered } probe_ = Probe::None;  // of a closed window (RFC 1122 4.2.2.17)
  Cause lost_by_;
  std::map<int64_t, int64_t> reassembly_;  // at the receiver: begin -> end of data received beyond a gap
};

}  // namespace retrompi
