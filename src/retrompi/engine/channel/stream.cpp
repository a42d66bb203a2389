#include "channel/stream.hpp"

namespace retrompi {

std::optional<Resource> StreamChan::resource() const {
  Resource r;
  const bool packets = credits_.exhausted();
  r.name = (packets ? "the credits of " : "the socket buffers from ") + from.thread.name() + " to " + to.thread.name();
  r.total = packets ? credits_.total() : tcp_.sndbuf() + tcp_.rcvbuf();
  r.unit = packets ? "packets" : "B";
  for (const Frame& f : frames_) r.used.push_back({f.p.m, packets ? 1 : length(f.p), f.p.m->at});
  return r;
}

/// The connection is opened on its first use.
Task StreamChan::open_and_send(Packet p) {
  const SiteOf here([&](State& s) { put_packet(s, p); });
  co_await Task::At{here};
  opening_.open(reverse_ ? &reverse_->opening_ : nullptr, world);
  co_await from.thread.run(from.host.time(spec.connect), Stage::Syscall);
  co_await send(p);
}

std::unique_ptr<Chan> make_chan(World& w, SharedParts&, const StreamSpec& s, Proc& a, Proc& b) {
  switch (s.io) {
    case SocketIo::Nonblocking:
      return make_nonblocking_stream(w, s, a, b);
    case SocketIo::Async:
      return make_asynchronous_stream(w, s, a, b);
    case SocketIo::Signal:
      return make_signalled_stream(w, s, a, b);
    default:
      return make_blocking_stream(w, s, a, b);
  }
}

void join_streams(Chan& a, Chan& b) {
  auto& x = dynamic_cast<StreamChan&>(a);
  auto& y = dynamic_cast<StreamChan&>(b);
  x.pair_with(y);
  y.pair_with(x);
}

}  // namespace retrompi
