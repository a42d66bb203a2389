// A stream socket: send and receive buffers, segments, window, Nagle, delayed acknowledgement, the cost of each call.
#include <optional>

#include "channel/proc.hpp"

namespace retrompi {

namespace {

class StreamChan final : public Chan {
 public:
  StreamChan(World& w, const HopSpec& s, Proc& a, Proc& b)
      : Chan(w, s, a, b),
        local_(&a.host == &b.host),
        mss_(local_ ? a.host.spec.loopback_mss : a.host.spec.mss),
        sndbuf_(s.sndbuf ? s.sndbuf : a.host.spec.sndbuf),
        rcvbuf_(s.rcvbuf ? s.rcvbuf : b.host.spec.window),
        edge_(rcvbuf_),
        advertised_(rcvbuf_),
        credits_(s.credits) {}

  StreamChan* reverse = nullptr;

  [[nodiscard]] bool no_room() const override { return (spec.credits > 0 && credits_ <= 0) || room() <= 0; }
  [[nodiscard]] std::optional<Resource> resource() const override {
    Resource r;
    const bool packets = spec.credits > 0 && credits_ <= 0;
    r.name = (packets ? "the credits of " : "the socket buffers from ") + from.thread.name() + " to " + to.thread.name();
    r.total = packets ? spec.credits : sndbuf_ + rcvbuf_;
    r.unit = packets ? "packets" : "B";
    for (const Frame& f : frames_) r.used.push_back({f.p.m, packets ? 1 : f.p.bytes + spec.header, f.p.m->at});
    return r;
  }

  Task push(Packet p) override {
    Host& h = from.host;
    if (!open_) {
      open_ = true;
      if (reverse) reverse->open_ = true;
      co_await from.thread.run(h.scaled(spec.connect), Stage::Syscall);
    }
    if (spec.io != SocketIo::Blocking) {
      co_await submit(p);
      co_return;
    }
    if (spec.credits > 0) {
      if (!(credits_ > 0)) co_await from.until([this] { return credits_ > 0; }, spec.space_wait, spec.progress);
      --credits_;
    }
    in(p);
    co_await from.thread.run(h.scaled(spec.send_cpu + (p.first ? spec.message_cpu : 0)), Stage::Library);
    int64_t left = p.bytes + spec.header;
    const int64_t end = written_ + left;
    Frame f{p, end, 0};
    if (reverse && reverse->owed_ > 0) {  // credits ride on whatever goes the other way
      f.credits = reverse->owed_;
      reverse->owed_ = 0;
    }
    frames_.push_back(f);
    ++common.count.packets;
    int64_t piece = spec.header_write && p.bytes > 0 && p.first ? spec.header : left;  // what the current write still holds
    while (left > 0) {
      if (!(room() > 0)) co_await from.until([this] { return room() > 0; }, spec.space_wait, spec.progress);
      if (piece == 0) piece = left;
      const int64_t n = std::min(piece, room());
      piece -= n;
      const Ps call = h.spec.syscall + h.scaled(spec.call);
      const Ps copy = static_cast<Ps>(spec.copies_in * static_cast<double>(copy_time(h, p, n, true)));
      if (world.anatomy.on || h.shares_memory) {
        co_await from.thread.run(call, Stage::Syscall);
        co_await from.thread.run(copy, Stage::Copy);
      } else {
        co_await from.thread.run_parts({call, Stage::Syscall}, {copy, Stage::Copy});
      }
      written_ += n;
      left -= n;
      transmit();
    }
  }

  Task pull(Token t) override {
    if (t.kind == kRoom) {
      told_room_ = false;
      co_await write_some();
      co_return;
    }
    if (t.kind == kSent) {
      co_await from.thread.run(from.host.spec.syscall + from.host.scaled(spec.call), Stage::Syscall);
      told_sent_ = false;
      finish_sent(acked_ + sndbuf_);
      co_return;
    }
    if (spec.io != SocketIo::Blocking) {
      co_await read_some();
      co_return;
    }
    token_out_ = false;
    Host& h = to.host;
    const Frame& f = frames_.front();
    out(f.p);
    const int64_t n = std::min(delivered_ - consumed_, f.end - consumed_);
    const Ps call = h.spec.syscall + h.scaled(spec.call);
    const Ps copy = static_cast<Ps>(spec.copies_out * static_cast<double>(copy_time(h, f.p, n, false)));
    if (world.anatomy.on || h.shares_memory) {
      co_await to.thread.run(call, Stage::Syscall);
      co_await to.thread.run(copy, Stage::Copy);
    } else {
      co_await to.thread.run_parts({call, Stage::Syscall}, {copy, Stage::Copy});
    }
    consumed_ += n;
    open_window();
    const bool whole = consumed_ == frames_.front().end;
    std::optional<Frame> done;
    if (whole) {
      done = frames_.front();
      frames_.pop_front();
    }
    if (delivered_ > consumed_) offer();
    if (!done) co_return;
    co_await to.thread.run(h.scaled(spec.recv_cpu + (done->p.first ? spec.message_cpu : 0)), Stage::Library);
    if (done->credits > 0 && reverse) reverse->refill(done->credits);
    if (spec.credits > 0 && ++owed_ >= std::max(1, spec.credits / 2)) {
      co_await to.thread.run(call, Stage::Syscall);
      const int32_t n_back = owed_;
      owed_ = 0;
      moving(Thing::Credit, 0, true);
      if (local_)
        h.kernel(h.spec.loopback_segment, Stage::Stack, &StreamChan::on_credits, this, static_cast<uint64_t>(n_back));
      else
        send_frame(to, 0, &StreamChan::on_credits_frame, &StreamChan::on_credits_lost, static_cast<uint64_t>(n_back));
    }
    taken(done->p);
    if (!to.take(done->p)) co_await to.handle(done->p);
  }

 private:
  enum : uint8_t { kData, kRoom, kSent };  // tokens: for the reader, for the writer, for an asynchronous writer
  struct Frame {
    Packet p;
    int64_t end;
    int32_t credits;
  };
  struct Ack {
    int64_t upto, edge;
  };
  struct Segment {
    int64_t seq, bytes;
    Ack ack;  // of the other direction, carried with it; upto -1: none
  };
  /// What is on its way in the order in which it set out. On the wire a small frame may overtake a large one, which Ethernet's do not:
  /// whatever arrives brings what is due next. Only what is lost is lost by itself.
  template <class T>
  class OnTheWay {
   public:
    uint32_t put(const T& x) {
      if (n_ == ring_.size()) grow();
      entry(n_++) = {x, ++ids_};
      return ids_;
    }
    /// Takes the first out for an arrival; the others move up.
    T arrived(uint32_t id) {
      const T first = entry(0).what;
      for (size_t i = 0; entry(i).id != id; ++i) entry(i).what = entry(i + 1).what;
      erase(id);
      return first;
    }
    T lost(uint32_t id) {
      const T x = at(id);
      erase(id);
      return x;
    }
    template <class F>
    void each(F f) {
      for (size_t i = 0; i < n_; ++i) f(entry(i).what);
    }
    [[nodiscard]] T& at(uint32_t id) { return entry(find(id)).what; }
    [[nodiscard]] bool next(uint32_t id) { return entry(0).id == id; }

   private:
    struct Entry {
      T what;
      uint32_t id;
    };
    Entry& entry(size_t i) { return ring_[(head_ + i) & (ring_.size() - 1)]; }
    void grow() {
      std::vector<Entry> wider(std::max<size_t>(4, 2 * ring_.size()));
      for (size_t i = 0; i < n_; ++i) wider[i] = entry(i);
      ring_ = std::move(wider);
      head_ = 0;
    }
    [[nodiscard]] size_t find(uint32_t id) {
      size_t i = 0;
      while (entry(i).id != id) ++i;
      return i;
    }
    void erase(uint32_t id) {
      for (size_t i = find(id); i > 0; --i) entry(i) = entry(i - 1);
      head_ = (head_ + 1) & (ring_.size() - 1);
      --n_;
    }
    std::vector<Entry> ring_;  // a power of two of places, of which `n_` from `head_` on are taken
    size_t head_ = 0, n_ = 0;
    uint32_t ids_ = 0;
  };
  static uint64_t frame_of(uint32_t id, int64_t bytes) { return static_cast<uint64_t>(id) << 32 | static_cast<uint64_t>(bytes); }
  static uint32_t id_of(uint64_t frame) { return static_cast<uint32_t>(frame >> 32); }
  static int64_t bytes_of(uint64_t frame) { return static_cast<int64_t>(frame & UINT32_MAX); }
  [[nodiscard]] int64_t room() const { return sndbuf_ - (written_ - acked_); }

  void refill(int32_t n) {
    credits_ += n;
    from.thread.signal();
  }
  static void on_credits(void* p, uint64_t n) { static_cast<StreamChan*>(p)->refill(static_cast<int32_t>(n)); }
  static void on_credits_frame(void* p, uint64_t n) {
    auto& s = *static_cast<StreamChan*>(p);
    const HostSpec& h = s.from.host.spec;
    s.credit_tries_ = 0;
    s.from.host.kernel(h.interrupt + h.tcp_segment, Stage::Stack, &StreamChan::on_credits, p, n);
  }

  // ---- a library that does not wait in its calls
  Task submit(Packet p) {
    Host& h = from.host;
    in(p);
    co_await from.thread.run(h.scaled(spec.send_cpu + (p.first ? spec.message_cpu : 0)), Stage::Library);
    queued_ += p.bytes + spec.header;
    frames_.push_back({p, queued_, 0});
    unsent_.push_back({p, queued_});
    ++common.count.packets;
    if (spec.io == SocketIo::Nonblocking) {
      co_await write_some();
      co_return;
    }
    // What fits is copied into the socket's buffer now, the rest is taken from the user's as the buffer empties.
    const int64_t fits = std::clamp<int64_t>(room(), 0, p.bytes + spec.header);
    co_await from.thread.run(h.spec.syscall + h.scaled(spec.call), Stage::Syscall);
    co_await from.thread.run(copy_time(h, p, fits, true), Stage::Copy);
    written_ = queued_;
    transmit();
    finish_sent(acked_ + sndbuf_);
  }
  Task write_some() {
    if (writing_) co_return;
    writing_ = true;
    Host& h = from.host;
    while (written_ < queued_ && room() > 0) {
      const int64_t n = std::min(unsent_.front().end - written_, room());
      co_await from.thread.run(h.spec.syscall + h.scaled(spec.call), Stage::Syscall);
      co_await from.thread.run(copy_time(h, unsent_.front().p, n, true), Stage::Copy);
      written_ += n;
      transmit();
      finish_sent(written_);
    }
    writing_ = false;
  }
  void finish_sent(int64_t upto) {
    while (!unsent_.empty() && unsent_.front().end <= upto) {
      const Packet p = unsent_.front().p;
      unsent_.pop_front();
      laid(p);
      if (p.last && p.kind == Packet::Data) from.sent(*p.m);
    }
  }
  /// What a read that is posted or made now may take: the rest of a message that has begun goes to the user's buffer; what begins a
  /// message is read into one of the library's, with whatever follows it there.
  [[nodiscard]] int64_t next_read() const { return consumed_ > taken_ ? frames_.front().end - consumed_ : spec.first_read; }
  Task read_some() {
    Host& h = to.host;
    const Ps call = h.spec.syscall + h.scaled(spec.call);
    int64_t n = done_read_;
    bool begins = read_begins_;
    if (!frames_.empty()) out(frames_.front().p);
    co_await to.thread.run(call, Stage::Syscall);
    if (spec.io == SocketIo::Nonblocking) {
      token_out_ = false;
      begins = consumed_ == taken_;
      n = std::min(delivered_ - consumed_, next_read());
      co_await to.thread.run(copy_time(h, frames_.front().p, n, false), Stage::Copy);
      consumed_ += n;
      open_window();
    }
    if (begins) co_await to.thread.run(copy_time(h, frames_.front().p, n, false), Stage::Copy);
    std::vector<Packet> whole;
    while (!frames_.empty() && frames_.front().end <= consumed_) {
      whole.push_back(frames_.front().p);
      taken_ = frames_.front().end;
      frames_.pop_front();
    }
    if (spec.io == SocketIo::Async) {
      co_await to.thread.run(call, Stage::Syscall);  // the next read is posted
      told_read_ = false;
      move_in();
    } else if (delivered_ > consumed_) {
      offer();
    }
    for (const Packet& p : whole) {
      co_await to.thread.run(h.scaled(spec.recv_cpu + (p.first ? spec.message_cpu : 0)), Stage::Library);
      taken(p);
      if (!to.take(p)) co_await to.handle(p);
    }
  }
  /// Async: the system fills the posted buffer with what has come.
  void move_in() {
    const int64_t n = std::min(delivered_ - consumed_, told_read_ || moving_ ? 0 : next_read());
    if (n <= 0) return;
    moving_ = true;
    moving(Thing::Read, n);
    to.host.kernel(copy_time(to.host, frames_.front().p, n, false), Stage::Copy, &StreamChan::on_moved, this, static_cast<uint64_t>(n));
  }
  static void on_moved(void* p, uint64_t bytes) {
    auto& s = *static_cast<StreamChan*>(p);
    const auto n = static_cast<int64_t>(bytes);
    const bool begins = s.consumed_ == s.taken_;
    s.moving_ = false;
    s.done_read_ = n;
    s.read_begins_ = begins;
    s.consumed_ += n;
    s.open_window();
    if (!begins && s.consumed_ < s.frames_.front().end) return s.move_in();
    s.told_read_ = true;
    s.to.arrive({&s, kData, 0}, true, true);
  }
  // Silly-window avoidance (RFC 1122 4.2.3.3): tell the sender only of a worthwhile opening.
  void open_window() {
    if (consumed_ + rcvbuf_ - advertised_ >= std::min(2 * mss_, rcvbuf_ / 2)) acknowledge();
  }

  // ---- sending kernel
  void transmit() {
    while (sent_ < written_) {
      const int64_t n = std::min(mss_, written_ - sent_);
      const int64_t open = std::min(edge_, acked_ + cwnd_) - sent_;
      if (open < n && !(sent_ == acked_ && open > 0)) break;  // the window is shut
      if (spec.nagle && n < mss_ && sent_ > acked_) break;
      const int64_t m = std::min(n, open);
      if (sent_ == acked_) timer_from_ = world.loop.now;
      if (timed_ < 0 && sent_ == most_sent_) {
        timed_ = sent_ + m;
        timed_at_ = world.loop.now;
      }
      if (sent_ < most_sent_) ++common.count.retransmissions;
      send_segment(sent_, m);
      sent_ += m;
      most_sent_ = std::max(most_sent_, sent_);
    }
  }
  void send_segment(int64_t seq, int64_t m) {
    Host& h = from.host;
    moving(Thing::Segment, m);
    const uint64_t frame = frame_of(segments_.put({seq, m, reverse ? reverse->acked_by_data() : Ack{-1, 0}}), m);
    if (local_)
      h.kernel(h.spec.loopback_segment, Stage::Stack, &StreamChan::on_segment, this, frame);
    else
      h.kernel(h.spec.tcp_segment + static_cast<Ps>(h.spec.tcp_byte * static_cast<double>(m)), Stage::Stack, &StreamChan::on_out, this, frame);
  }
  void send_frame(Proc& sender, int64_t payload, Loop::Fn done, Loop::Fn lost, uint64_t arg) {
    const Proc& other = &sender == &from ? to : from;
    world.net->frame(common, sender.host_index, other.host_index, payload + kTcpHeader, done, this, arg, lost);
  }
  static void on_out(void* p, uint64_t frame) {
    auto& s = *static_cast<StreamChan*>(p);
    s.send_frame(s.from, bytes_of(frame), &StreamChan::on_frame, &StreamChan::on_segment_lost, frame);
  }
  static void on_frame(void* p, uint64_t frame) {
    auto& s = *static_cast<StreamChan*>(p);
    const HostSpec& h = s.to.host.spec;
    const auto n = static_cast<double>(bytes_of(frame));
    s.to.host.kernel(h.interrupt + h.tcp_segment + static_cast<Ps>(h.tcp_byte * n), Stage::Stack, &StreamChan::on_segment, p, frame);
  }

  // ---- what is lost (RFC 793; RFC 1122 4.2.3.1; Jacobson 1988: round trips, back-off, slow start; fast retransmit as in 4.3BSD-Reno)
  //
  // The retransmission timer of a connection is always there in a real system. Here it becomes an event only when something has been
  // lost, for the time at which the real one ends, and until all that was sent is acknowledged: it changes nothing before.
  static void on_segment_lost(void* p, uint64_t frame) {
    auto& s = *static_cast<StreamChan*>(p);
    s.number();
    const Segment g = s.segments_.lost(id_of(frame));
    s.recover();
    if (g.ack.upto >= 0) s.reverse->recover();  // it carried an acknowledgement
  }
  static void on_ack_lost(void* p, uint64_t id) {
    auto& s = *static_cast<StreamChan*>(p);
    s.acks_.lost(static_cast<uint32_t>(id));
    s.recover();
  }
  /// From the first loss on bytes are told apart by their numbers; before, all that is on its way comes and it is enough to count.
  void number() {
    if (numbered_) return;
    numbered_ = true;
    int64_t at = delivered_;
    segments_.each([&at](Segment& g) {
      g.seq = at;
      at += g.bytes;
    });
  }
  static void on_credits_lost(void* p, uint64_t n) {
    auto& s = *static_cast<StreamChan*>(p);
    const HostSpec& h = s.to.host.spec;
    if (s.from.thread.dead() || s.to.thread.dead()) return;
    if (s.credit_tries_ >= h.tcp_retries) s.give_up(s.to, s.from, h.tcp_retries);
    // They are data of the other direction, whose round trips are timed there.
    const Ps rto = s.reverse ? s.reverse->rto() : h.rto_first;
    s.world.loop.at(s.world.loop.now + s.backed_off(h, rto, s.credit_tries_++), &StreamChan::on_credits_again, p, n);
  }
  static void on_credits_again(void* p, uint64_t n) {
    auto& s = *static_cast<StreamChan*>(p);
    if (s.to.thread.dead()) return;
    ++s.common.count.retransmissions;
    s.send_frame(s.to, 0, &StreamChan::on_credits_frame, &StreamChan::on_credits_lost, n);
  }
  [[nodiscard]] static Ps backed_off(const HostSpec& h, Ps rto, int tries) { return std::min(rto << std::min(tries, 12), std::max(rto, h.rto_max)); }
  [[noreturn]] void give_up(const Proc& sender, const Proc& receiver, int tries) const {
    throw Abort{"the connection from " + sender.thread.name() + " to " + receiver.thread.name() + " was given up: a segment was sent again " +
                std::to_string(tries) + " times and not acknowledged"};
  }
  void recover() {
    if (losing_ || from.thread.dead()) return;
    number();
    losing_ = true;
    lost_by_ = world.anatomy.current;
    arm();
  }
  [[nodiscard]] Ps rto() const {
    const HostSpec& h = from.host.spec;
    return srtt_ < 0 ? h.rto_first : std::min(std::max(srtt_ + 4 * rttvar_, h.rto_min), h.rto_max);
  }
  [[nodiscard]] Ps due() const { return timer_from_ + backed_off(from.host.spec, rto(), tries_); }
  void arm() { world.loop.at(std::max(world.loop.now, due()), &StreamChan::on_timer, this); }
  static void on_timer(void* p, uint64_t) {
    auto& s = *static_cast<StreamChan*>(p);
    // Nobody will read what a dead process has written, and its system has forgotten the connection.
    if (s.from.thread.dead() || s.to.thread.dead()) return;
    const bool shut = s.acked_ == s.most_sent_ && s.written_ > s.sent_;  // the window is; its opening may have been lost
    if (s.acked_ == s.most_sent_ && (!shut || s.probe_ == Probe::Answered)) {
      s.losing_ = false;
      s.probe_ = Probe::None;
      s.tries_ = s.same_acks_ = 0;
      return;
    }
    if (s.world.loop.now < s.due()) return s.arm();
    if (s.tries_ >= s.from.host.spec.tcp_retries) s.give_up(s.from, s.to, s.tries_);
    if (s.world.anatomy.on) {
      s.world.anatomy.current = s.lost_by_;
      s.moving(Thing::Segment, 0);
      s.world.anatomy.current =
          s.world.anatomy.of(s.world.anatomy.record("tcp retransmission", Stage::Ack, s.timer_from_, s.timer_from_, s.world.loop.now));
    }
    ++s.tries_;
    s.timer_from_ = s.world.loop.now;
    if (shut) {
      s.probe_ = Probe::Sent;
      s.send_segment(s.sent_, 0);
    } else {
      s.back_off();
      s.cwnd_ = s.mss_;
      s.sent_ = s.acked_;  // and on from there
      s.transmit();
    }
    s.arm();
  }
  void back_off() {
    const int64_t flight = std::min(most_sent_ - acked_, cwnd_);
    threshold_ = std::max(2 * mss_, flight / 2);
    timed_ = -1;  // a round trip of what is sent twice says nothing (Karn 1987)
    same_acks_ = 0;
  }
  void count_round_trip(Ps took) {
    if (srtt_ < 0) {
      srtt_ = took;
      rttvar_ = took / 2;
      return;
    }
    const Ps error = took - srtt_;
    srtt_ += error / 8;
    rttvar_ += (std::abs(error) - rttvar_) / 4;
  }
  void widen(int64_t news) {
    if (cwnd_ >= kNoLimit) return;
    cwnd_ += cwnd_ < threshold_ ? std::min(news, mss_) : std::max<int64_t>(1, mss_ * mss_ / cwnd_);
    if (cwnd_ >= rcvbuf_ && cwnd_ >= threshold_) cwnd_ = kNoLimit;  // the receiver's window is the narrower one from here on
  }
  void same_again() {
    if (++same_acks_ != from.host.spec.dup_acks) return;
    back_off();
    cwnd_ = threshold_;
    timer_from_ = world.loop.now;
    ++common.count.retransmissions;
    send_segment(acked_, std::min(mss_, most_sent_ - acked_));
  }

  // ---- receiving kernel
  /// A segment that is not the next one: what lacks is asked for at once (RFC 1122 4.2.2.21), as is what comes twice.
  void out_of_turn(const Segment& g) {
    if (g.seq > delivered_) early_[g.seq] = std::max(early_[g.seq], g.seq + g.bytes);
    acknowledge();
  }
  /// What had come early and is next now.
  void close_gap() {
    while (!early_.empty() && early_.begin()->first <= delivered_) {
      delivered_ = std::max(delivered_, early_.begin()->second);
      early_.erase(early_.begin());
    }
  }
  /// Where bytes are only counted, a segment that overtakes others comes with its own, and theirs stay theirs.
  void overtaking(Segment& it) {
    int64_t n = it.bytes;
    bool passed = false;
    segments_.each([&](Segment& g) {
      if (!passed) std::swap(g.bytes, n);
      passed |= &g == &it;
    });
  }
  static void on_segment(void* p, uint64_t frame) {
    auto& s = *static_cast<StreamChan*>(p);
    if (!s.numbered_ && !s.segments_.next(id_of(frame))) s.overtaking(s.segments_.at(id_of(frame)));
    const Segment g = s.segments_.arrived(id_of(frame));
    const bool gap = !s.early_.empty();
    if (s.numbered_ && (g.seq > s.delivered_ || g.seq + g.bytes <= s.delivered_)) {
      s.out_of_turn(g);
      if (g.ack.upto >= 0) s.reverse->on_acked(g.ack.upto, g.ack.edge);
      return;
    }
    s.delivered_ = s.numbered_ ? g.seq + g.bytes : s.delivered_ + g.bytes;
    if (gap) s.close_gap();
    if (s.to.thread.dead())
      s.consumed_ = s.delivered_;  // the system has closed the dead process's sockets and throws away what comes
    else if (s.spec.io == SocketIo::Async)
      s.move_in();
    else
      s.offer();
    if (g.ack.upto >= 0) s.reverse->on_acked(g.ack.upto, g.ack.edge);  // this segment carried an acknowledgement of the other direction
    if (++s.unacked_ >= 2 || gap) {
      s.acknowledge();
    } else {
      s.ack_held_ = true;
      s.ack_armed_ = s.world.loop.now;
      s.ack_by_ = s.world.anatomy.current;
      s.ack_ticket_ = s.world.loop.ticket();
      if (!s.ack_timer_) s.set_ack_timer();
    }
  }
  void offer() {
    if (token_out_) return;
    token_out_ = true;
    to.arrive({this, kData, 0}, true, true);
  }
  void set_ack_timer() {
    ack_timer_ = true;
    world.loop.at_ticket(ack_armed_ + to.host.spec.delayed_ack, ack_ticket_, &StreamChan::on_ack_timer, this, ack_ticket_);
  }
  /// One event for all segments: it goes on to the time of the newest that was to be acknowledged late, if only to end there.
  static void on_ack_timer(void* p, uint64_t ticket) {
    auto& s = *static_cast<StreamChan*>(p);
    if (ticket != s.ack_ticket_) return s.set_ack_timer();
    s.ack_timer_ = false;
    if (!s.ack_held_) return;
    if (s.world.anatomy.on) {
      // The segment that is acknowledged late armed the timer: the chain of causes goes on with it.
      s.world.anatomy.current = s.ack_by_;
      s.moving(Thing::Ack, 0, true);
      s.world.anatomy.current = s.world.anatomy.of(s.world.anatomy.record("tcp", Stage::Ack, s.ack_armed_, s.ack_armed_, s.world.loop.now));
    }
    s.acknowledge();
  }
  /// Data are about to leave in the other direction: they carry our acknowledgement for nothing. -1: there is none.
  [[nodiscard]] Ack acked_by_data() {
    if (unacked_ == 0 && advertised_ == consumed_ + rcvbuf_) return {-1, 0};
    unacked_ = 0;
    ack_held_ = false;
    advertised_ = consumed_ + rcvbuf_;
    return {delivered_, advertised_};
  }
  void acknowledge() {
    unacked_ = 0;
    ack_held_ = false;
    advertised_ = consumed_ + rcvbuf_;
    const uint32_t id = acks_.put({delivered_, advertised_});
    moving(Thing::Ack, 0, true);
    Host& h = to.host;
    if (local_)
      world.loop.at(world.loop.now, &StreamChan::on_ack, this, id);
    else
      h.kernel(h.spec.tcp_segment, Stage::Stack, &StreamChan::on_ack_out, this, id);
  }
  static void on_ack_out(void* p, uint64_t id) {
    auto& s = *static_cast<StreamChan*>(p);
    s.send_frame(s.to, 0, &StreamChan::on_ack_frame, &StreamChan::on_ack_lost, id);
  }
  static void on_ack_frame(void* p, uint64_t id) {
    auto& s = *static_cast<StreamChan*>(p);
    const HostSpec& h = s.from.host.spec;
    s.from.host.kernel(h.interrupt + h.tcp_segment, Stage::Stack, &StreamChan::on_ack, p, id);
  }
  static void on_ack(void* p, uint64_t id) {
    auto& s = *static_cast<StreamChan*>(p);
    const Ack a = s.acks_.arrived(static_cast<uint32_t>(id));
    if (s.probe_ == Probe::Sent) s.probe_ = Probe::Answered;
    if (s.losing_ && a.upto == s.acked_ && a.edge == s.edge_ && s.most_sent_ > s.acked_) return s.same_again();
    s.on_acked(a.upto, a.edge);
  }
  void on_acked(int64_t upto, int64_t edge) {
    const bool was_full = room() <= 0;
    if (upto > acked_ || edge > edge_) {
      timer_from_ = world.loop.now;
      tries_ = same_acks_ = 0;
      if (timed_ >= 0 && upto >= timed_) {
        count_round_trip(world.loop.now - timed_at_);
        timed_ = -1;
      }
      if (upto > acked_) widen(upto - acked_);
    }
    acked_ = std::max(acked_, upto);
    sent_ = std::max(sent_, acked_);
    edge_ = std::max(edge_, edge);
    transmit();
    if (spec.io == SocketIo::Blocking) {
      if (was_full && room() > 0) from.thread.signal();
    } else if (spec.io == SocketIo::Nonblocking) {
      if (written_ < queued_ && room() > 0 && !told_room_) {
        told_room_ = true;
        from.arrive({this, kRoom, 0}, true, true);
      }
    } else if (!unsent_.empty() && unsent_.front().end <= acked_ + sndbuf_ && !told_sent_) {
      told_sent_ = true;
      from.arrive({this, kSent, 0}, true, true);
    }
  }

  static constexpr int64_t kNoLimit = int64_t{1} << 60;
  static constexpr int64_t kTcpHeader = 20;  // the IP header is in the link's frame overhead
  bool local_;
  int64_t mss_, sndbuf_, rcvbuf_;
  int64_t written_ = 0, sent_ = 0, acked_ = 0;         // sender
  int64_t edge_;                                       // right edge of the window as the sender knows it
  int64_t delivered_ = 0, consumed_ = 0, advertised_;  // receiver
  int32_t unacked_ = 0;
  bool ack_held_ = false, ack_timer_ = false;  // an acknowledgement waits for company; an event looks after it
  Ps ack_armed_ = 0;
  uint64_t ack_ticket_ = 0;
  Cause ack_by_;
  bool token_out_ = false, open_ = false;
  int32_t credits_, owed_ = 0;
  struct Unsent {
    Packet p;
    int64_t end;
  };
  int64_t queued_ = 0;  // what the library has asked to be sent
  bool writing_ = false, told_room_ = false, told_sent_ = false;
  std::deque<Unsent> unsent_;
  int64_t taken_ = 0;      // what whole messages the library has got
  int64_t done_read_ = 0;  // Async: what the completed read has brought
  bool read_begins_ = false, told_read_ = false, moving_ = false;
  std::deque<Frame> frames_;
  OnTheWay<Segment> segments_;
  OnTheWay<Ack> acks_;
  // Losses: the sender's
  int64_t most_sent_ = 0;                           // `sent_` goes back when the timer ends
  int64_t cwnd_ = kNoLimit, threshold_ = kNoLimit;  // no limit while nothing has been lost
  int64_t timed_ = -1;                              // the acknowledgement of this byte ends a round trip; -1: none is timed
  Ps timed_at_ = 0, srtt_ = -1, rttvar_ = 0;
  Ps timer_from_ = 0;
  bool numbered_ = false;
  bool losing_ = false;  // something was lost and not all is acknowledged: the timer is an event
  int tries_ = 0, same_acks_ = 0, credit_tries_ = 0;
  enum class Probe : uint8_t { None, Sent, Answered } probe_ = Probe::None;  // of a window that is shut
  Cause lost_by_;
  std::map<int64_t, int64_t> early_;  // the receiver's: begin -> end of what came past a gap
};

}  // namespace

std::unique_ptr<Chan> make_stream_chan(World& w, const HopSpec& s, Proc& a, Proc& b) { return std::make_unique<StreamChan>(w, s, a, b); }

void join_streams(Chan& a, Chan& b) {
  auto& x = dynamic_cast<StreamChan&>(a);
  auto& y = dynamic_cast<StreamChan&>(b);
  x.reverse = &y;
  y.reverse = &x;
}

}  // namespace retrompi
