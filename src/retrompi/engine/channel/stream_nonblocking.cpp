// Socket I/O of a library that does not wait in its calls: it writes and reads what is possible whenever it gets to run (non-blocking), or
// the system moves the data and reports completed operations (asynchronous).
#include "channel/stream.hpp"

namespace retrompi {

namespace {

struct QueuedParts {
  struct Unsent {
    Packet p;
    int64_t end;
  };
  int64_t queued_ = 0;  // end of the bytes that the library has submitted
  std::deque<Unsent> unsent_;
  int64_t packets_end_ = 0;  // end of the last packet read completely
};

/// Common to these styles: packets are queued by the library and leave it later.
class QueuedStream : public StreamChan, protected QueuedParts {
 public:
  using StreamChan::StreamChan;
  [[nodiscard]] bool tells_sent() const override { return true; }

 protected:
  void put_queued(State& s) {
    put_stream(s);
    const auto& [queued_, unsent_, packets_end_] = static_cast<const QueuedParts&>(*this);
    s.put(unsent_.size());
    for (const Unsent& each : unsent_) {
      const auto& [p, end] = each;
      put_packet(s, p);
      s.put(end - tcp_.written());
    }
    s.put(queued_ - tcp_.written());
    s.put(packets_end_ - tcp_.written());
  }
  Task send(Packet p) override {
    copy_in_begins(p);
    co_await library_work(from, p);
    queued_ = checked_sum(queued_, length(p));
    frames_.push_back({p, queued_, 0});
    unsent_.push_back({p, queued_});
    ++common.count.packets;
    co_await submit(p);
  }
  virtual Task submit(Packet p) = 0;
  /// Packets that end before `upto` have left the library.
  void finish_sent(int64_t upto) {
    while (!unsent_.empty() && unsent_.front().end <= upto) {
      const Packet p = unsent_.front().p;
      unsent_.pop_front();
      copy_in_ends(p);
      if (p.last && p.kind == Packet::Data) from.sent(*p.m);
    }
  }
  /// Whether the next byte to be read begins a packet.
  [[nodiscard]] bool at_packet() const { return tcp_.read_bytes() == packets_end_; }
  /// How much a read issued now may take: the rest of a message that has begun goes to the user's buffer; what begins a
  /// message is read into one of the library's, with whatever follows it there.
  [[nodiscard]] int64_t next_read() const { return at_packet() ? spec.first_read : frames_.front().end - tcp_.read_bytes(); }
  /// Packets that have been read completely.
  std::vector<Packet> whole_packets() {
    std::vector<Packet> whole;
    while (!frames_.empty() && frames_.front().end <= tcp_.read_bytes()) {
      whole.push_back(frames_.front().p);
      packets_end_ = frames_.front().end;
      frames_.pop_front();
    }
    return whole;
  }
  [[nodiscard]] CopyCost copy_out(int64_t n) const { return copy_cost(frames_.front().p, n, false); }
  Task take_in(std::vector<Packet> packets) {
    for (const Packet& p : packets) {
      co_await library_work(to, p);
      copy_out_ends(p);
      if (!to.take(p)) co_await to.handle(p);
    }
  }
};

struct NonblockingParts {
  bool writing_ = false, announced_space_ = false;
};

class NonblockingStream final : public QueuedStream, NonblockingParts {
 public:
  using QueuedStream::QueuedStream;

  Task pull(Token t) override {
    if (t.kind == kSpace) {
      announced_space_ = false;
      return write_some();
    }
    return read_some();
  }

  void state(State& s) override {
    put_queued(s);
    const auto& [writing_, announced_space_] = static_cast<const NonblockingParts&>(*this);
    s.put(writing_);
    s.put(announced_space_);
  }

 private:
  Task submit(Packet) override { return write_some(); }
  Task write_some() {
    if (writing_) co_return;
    writing_ = true;
    while (tcp_.written() < queued_ && tcp_.space() > 0) {
      const int64_t n = std::min(unsent_.front().end - tcp_.written(), tcp_.space());
      co_await socket_call(from);
      co_await from.thread.run(copy_cost(unsent_.front().p, n, true));
      tcp_.write(n);
      finish_sent(tcp_.written());
    }
    writing_ = false;
  }
  Task read_some() {
    if (!frames_.empty()) copy_out_begins(frames_.front().p);
    co_await socket_call(to);
    offered_ = false;
    const bool begins = at_packet();
    const int64_t n = std::min(tcp_.readable(), next_read());
    co_await to.thread.run(copy_out(n));
    tcp_.read(n);
    if (begins) co_await to.thread.run(copy_out(n));
    const std::vector<Packet> whole = whole_packets();
    if (tcp_.readable() > 0) offer();
    co_await take_in(whole);
  }
  void on_readable() override { offer(); }
  void on_acknowledged(bool) override {
    if (tcp_.written() >= queued_ || tcp_.space() <= 0 || announced_space_) return;
    announced_space_ = true;
    from.arrive({this, kSpace, 0}, true, true);
  }
};

struct AsynchronousParts {
  bool told_sent_ = false;
  int64_t completed_ = 0;  // bytes of the completed read
  bool completed_begins_ = false, told_read_ = false, filling_ = false;
};

class AsynchronousStream final : public QueuedStream, AsynchronousParts {
 public:
  using QueuedStream::QueuedStream;

  Task pull(Token t) override {
    if (t.kind == kSent) return complete_write();
    return complete_read();
  }

  void state(State& s) override {
    put_queued(s);
    const auto& [told_sent_, completed_, completed_begins_, told_read_, filling_] = static_cast<const AsynchronousParts&>(*this);
    for (const bool is : {told_sent_, completed_begins_, told_read_, filling_}) s.put(is);
    s.put(completed_);
  }
  [[nodiscard]] static bool made(const Callback& c) { return calls<&AsynchronousStream::on_filled, AsynchronousStream>(c); }

 private:
  /// What fits is copied into the socket's buffer now; the rest is copied from the user's buffer as space becomes free.
  Task submit(Packet p) override {
    const int64_t fits = std::clamp<int64_t>(tcp_.space(), 0, length(p));
    co_await bare_socket_call(from);
    co_await from.thread.run(copy_cost(p, fits, true));
    tcp_.write(queued_ - tcp_.written());
    finish_sent(buffered());
  }
  /// Position up to which written bytes are in the send buffer or already sent.
  [[nodiscard]] int64_t buffered() const { return tcp_.snd_una() + tcp_.sndbuf(); }
  Task complete_write() {
    co_await bare_socket_call(from);
    told_sent_ = false;
    finish_sent(buffered());
  }
  Task complete_read() {
    const int64_t n = completed_;
    const bool begins = completed_begins_;
    if (!frames_.empty()) copy_out_begins(frames_.front().p);
    co_await bare_socket_call(to);
    if (begins) co_await to.thread.run(copy_out(n));
    const std::vector<Packet> whole = whole_packets();
    co_await bare_socket_call(to);  // the next read is posted
    told_read_ = false;
    fill_posted_read();
    co_await take_in(whole);
  }
  /// The system fills the posted buffer with what has arrived.
  void fill_posted_read() {
    const int64_t n = std::min(tcp_.readable(), told_read_ || filling_ ? 0 : next_read());
    if (n <= 0) return;
    filling_ = true;
    attribute(NetworkPacket::Read, n);
    to.host.kernel(copy_out(n), callback<&AsynchronousStream::on_filled>(*this, static_cast<uint64_t>(n)));
  }
  void on_filled(int64_t n) {
    const bool begins = at_packet();
    filling_ = false;
    completed_ = n;
    completed_begins_ = begins;
    tcp_.read(n);
    if (!begins && tcp_.read_bytes() < frames_.front().end) return fill_posted_read();
    told_read_ = true;
    to.arrive({this, kData, 0}, true, true);
  }
  void on_readable() override { fill_posted_read(); }
  void on_acknowledged(bool) override {
    if (unsent_.empty() || unsent_.front().end > buffered() || told_sent_) return;
    told_sent_ = true;
    from.arrive({this, kSent, 0}, true, true);
  }
};

struct SignalledParts {
  std::vector<Packet> whole_;  // read, and not yet taken in by the library
  bool writing_ = false, reading_ = false, told_ = false;
};

/// A process writes what is possible in its call; whenever the system has data or a third of its buffer is free, it interrupts the process by a
/// signal, whose handler writes and reads on, straight from and into the users' buffers.
class SignalledStream final : public QueuedStream, SignalledParts {
 public:
  using QueuedStream::QueuedStream;

  Task pull(Token) override {
    told_ = false;
    std::vector<Packet> whole;
    whole.swap(whole_);
    return take_in(std::move(whole));
  }

  void state(State& s) override {
    put_queued(s);
    const auto& [whole_, writing_, reading_, told_] = static_cast<const SignalledParts&>(*this);
    for (const bool is : {writing_, reading_, told_}) s.put(is);
    if (!whole_.empty()) s.refuse();
  }
  [[nodiscard]] static bool made(const Callback& c) {
    using S = SignalledStream;
    return calls<&S::on_may_write, S>(c) || calls<&S::on_copied_in, S>(c) || calls<&S::on_may_read, S>(c) || calls<&S::on_copied_out, S>(c);
  }

 private:
  Task submit(Packet) override {
    if (writing_) co_return;
    writing_ = true;
    while (tcp_.written() < queued_ && tcp_.space() > 0) {
      int64_t left = std::min(unsent_.front().end - tcp_.written(), tcp_.space());
      co_await socket_call(from);
      while (left > 0) {  // the system sends each segment as soon as it has copied it
        const int64_t n = std::min(left, tcp_.mss());
        co_await from.thread.run(copy_cost(unsent_.front().p, n, true));
        tcp_.write(n);
        left -= n;
      }
      finish_sent(tcp_.written());
    }
    writing_ = false;
    on_acknowledged(false);
  }
  /// What reaches the process costs it a signal, and a call for each look.
  [[nodiscard]] Ps interruption(const Proc& p, double calls) const {
    return p.host.time(spec.signal) + static_cast<Ps>(calls * static_cast<double>(p.host.spec.syscall));
  }
  void on_acknowledged(bool) override {
    if (writing_ || tcp_.written() >= queued_ || 3 * tcp_.space() < tcp_.sndbuf() || from.thread.dead()) return;
    writing_ = true;
    from.host.kernel(interruption(from, spec.calls_out), Stage::Syscall, callback<&SignalledStream::on_may_write>(*this, uint64_t(0)));
  }
  void on_may_write(uint64_t) {
    const int64_t n = std::min({unsent_.front().end - tcp_.written(), tcp_.space(), tcp_.mss()});
    from.host.kernel(copy_cost(unsent_.front().p, n, true), callback<&SignalledStream::on_copied_in>(*this, static_cast<uint64_t>(n)));
  }
  void on_copied_in(uint64_t n) {
    tcp_.write(static_cast<int64_t>(n));
    const bool ended = tcp_.written() == unsent_.front().end;
    if (ended) finish_sent(tcp_.written());
    if (tcp_.written() < queued_ && tcp_.space() > 0) return on_may_write(0);
    writing_ = false;
    if (ended) from.thread.signal();
  }
  void on_readable() override {
    if (reading_ || to.thread.dead()) return;
    reading_ = true;
    to.host.kernel(interruption(to, spec.calls_in), Stage::Syscall, callback<&SignalledStream::on_may_read>(*this, uint64_t(0)));
  }
  void on_may_read(uint64_t) {
    const int64_t n = std::min(tcp_.readable(), frames_.front().end - tcp_.read_bytes());
    copy_out_begins(frames_.front().p);
    attribute(NetworkPacket::Read, n);
    to.host.kernel(copy_out(n), callback<&SignalledStream::on_copied_out>(*this, static_cast<uint64_t>(n)));
  }
  void on_copied_out(uint64_t n) {
    tcp_.read(static_cast<int64_t>(n));
    for (const Packet& p : whole_packets()) whole_.push_back(p);
    if (!whole_.empty() && !told_) {
      told_ = true;
      to.arrive({this, kData, 0}, true, true);
    }
    if (tcp_.readable() > 0) return on_may_read(0);
    reading_ = false;
  }
};

}  // namespace

State::Call describe_stream(const Callback& c, State& s) {
  if (!AsynchronousStream::made(c) && !SignalledStream::made(c)) return State::Call::Unknown;
  s.put(c.fn);
  s.put(c.object);
  s.put(c.arg);
  return State::Call::Put;
}

std::unique_ptr<Chan> make_signalled_stream(World& w, const StreamSpec& s, Proc& a, Proc& b) { return std::make_unique<SignalledStream>(w, s, a, b); }

std::unique_ptr<Chan> make_nonblocking_stream(World& w, const StreamSpec& s, Proc& a, Proc& b) {
  return std::make_unique<NonblockingStream>(w, s, a, b);
}

std::unique_ptr<Chan> make_asynchronous_stream(World& w, const StreamSpec& s, Proc& a, Proc& b) {
  return std::make_unique<AsynchronousStream>(w, s, a, b);
}

}  // namespace retrompi
