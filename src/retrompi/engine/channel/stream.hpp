// A channel over a stream socket: packets are written to it as bytes, and the reader finds their boundaries. Each style of socket I/O has
// its own class (stream_blocking.cpp, stream_nonblocking.cpp).
#pragma once
#include "channel/credits.hpp"
#include "channel/tcp.hpp"

namespace retrompi {

class StreamChan;
struct StreamParts {
  /// A packet in the byte stream.
  struct Frame {
    Packet p;
    int64_t end;      // the byte after it
    int32_t credits;  // carried with it
  };
  StreamParts(Chan& c, TcpConnection::User& u, const StreamSpec& s)
      : tcp_(c, u, {.sndbuf = s.sndbuf, .rcvbuf = s.rcvbuf, .nagle = s.nagle, .stack = s.domain == SocketDomain::Inet}),
        credits_(c, tcp_, s.credits) {}
  TcpConnection tcp_;
  Credits credits_;
  bool offered_ = false;
  std::deque<Frame> frames_;  // not yet read completely
  StreamChan* reverse_ = nullptr;
  Opening opening_;
};

class StreamChan : public ChanOf<StreamSpec>, protected TcpConnection::User, protected StreamParts {
 public:
  StreamChan(World& w, const StreamSpec& s, Proc& a, Proc& b) : ChanOf(w, s, a, b), StreamParts(*this, *this, s) {}

  /// The opposite direction of the same connection.
  void pair_with(StreamChan& other) {
    reverse_ = &other;
    tcp_.pair_with(other.tcp_);
  }
  [[nodiscard]] bool out_of_space() const override { return credits_.exhausted() || tcp_.space() <= 0; }
  [[nodiscard]] std::optional<Resource> resource() const override;
  Task push(Packet p) final {
    if (!opening_.is_open()) return open_and_send(p);
    opening_.used(world);
    return send(p);
  }

 protected:
  void put_stream(State& s) {
    put_queue(s);
    auto& [tcp_, credits_, offered_, frames_, reverse_, opening_] = static_cast<StreamParts&>(*this);
    s.put(frames_.size());
    for (const Frame& f : frames_) {
      const auto& [p, end, credits] = f;
      put_packet(s, p);
      s.put(end - tcp_.written());
      s.put(credits);
    }
    s.put(opening_.is_open());
    s.put(offered_);
    tcp_.state(s);
    credits_.put(s);
  }
  /// Puts a packet into the connection, by the style of I/O.
  virtual Task send(Packet p) = 0;
  /// Credits that this end owes for packets of the opposite direction: they are piggybacked on whatever is sent there.
  [[nodiscard]] int32_t pay_reverse() { return reverse_ ? reverse_->credits_.pay() : 0; }
  void refill_reverse(int32_t n) {
    if (n > 0 && reverse_) reverse_->credits_.refill(n);
  }

  /// A write (by the sender) or a read, with the system calls before it.
  [[nodiscard]] Thread::Await socket_call(Proc& p) const {
    return library_call(p, p.host.system_calls(spec, &p == &from ? stream_number::calls_out : stream_number::calls_in));
  }
  /// One of them alone.
  [[nodiscard]] Thread::Await bare_socket_call(Proc& p) const { return library_call(p, p.host.spec.syscall); }
  /// What the library does for a packet at one end, and for a message with its first packet.
  [[nodiscard]] Thread::Await library_work(Proc& at, const Packet& p) const {
    const auto& packet = &at == &from ? copied_number::send_cpu : copied_number::recv_cpu;
    return at.thread.run_parts({at.host.work_of(spec, packet, static_cast<int64_t>(p.first) * stream_number::message_cpu), Stage::Library},
                               {p.first ? at.host.time(spec.message_call) : Ps(0), Stage::Syscall});
  }
  /// Bytes of a packet in the stream; at least one, since a packet that has none would never be read.
  [[nodiscard]] int64_t length(const Packet& p) const { return std::max<int64_t>(1, p.bytes + header_of(p)); }
  [[nodiscard]] int64_t header_of(const Packet& p) const { return spec.header + (p.first ? spec.message_header : 0); }
  /// There are bytes to be read: a token in the reader's inbox, one at a time.
  void offer() {
    if (offered_) return;
    offered_ = true;
    to.arrive({this, kData, 0}, true, true);
  }
  enum : uint8_t { kData, kSpace, kSent };  // tokens: for the reader, for a writer that may continue, for a writer whose operation is complete

 private:
  [[nodiscard]] Thread::Await library_call(Proc& p, Charge system) const {
    return p.thread.run_parts({p.host.work_of(spec, stream_number::call), Stage::Library}, {system, Stage::Syscall});
  }
  Task open_and_send(Packet p);
};

/// Kernel work of the styles of I/O.
State::Call describe_stream(const Callback& c, State& s);
std::unique_ptr<Chan> make_blocking_stream(World&, const StreamSpec&, Proc&, Proc&);
std::unique_ptr<Chan> make_nonblocking_stream(World&, const StreamSpec&, Proc&, Proc&);
std::unique_ptr<Chan> make_asynchronous_stream(World&, const StreamSpec&, Proc&, Proc&);
std::unique_ptr<Chan> make_signalled_stream(World&, const StreamSpec&, Proc&, Proc&);

}  // namespace retrompi
