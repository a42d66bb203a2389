// Blocking socket I/O: a library waits in each call. Credits, where the runtime has them, are taken before a packet is written.
#include "channel/stream.hpp"

namespace retrompi {

namespace {

struct BlockingParts {
  bool waiting_ = false;  // for space in the send buffer
};

class BlockingStream final : public StreamChan, BlockingParts {
 public:
  using StreamChan::StreamChan;

  Task pull(Token) override {
    offered_ = false;
    const Frame& f = frames_.front();
    copy_out_begins(f.p);
    int64_t end = f.end;
    if (const int64_t body = f.end - length(f.p) + spec.header; spec.header_read && tcp_.read_bytes() < body) end = body;
    const int64_t n = std::min(tcp_.readable(), end - tcp_.read_bytes());
    const CopyCost copy = copy_cost(f.p, n, false).times(spec.copies_out);
    co_await socket_call(to);
    co_await to.thread.run(copy);
    tcp_.read(n);
    const bool whole = tcp_.read_bytes() == frames_.front().end;
    std::optional<Frame> done;
    if (whole) {
      done = frames_.front();
      frames_.pop_front();
    }
    if (tcp_.readable() > 0) offer();
    if (!done) co_return;
    co_await library_work(to, done->p);
    refill_reverse(done->credits);
    if (credits_.limited() && credits_.owe()) {
      co_await socket_call(to);
      credits_.send_update();
    }
    copy_out_ends(done->p);
    if (!to.take(done->p)) co_await to.handle(done->p);
  }

  void state(State& s) override {
    put_stream(s);
    const auto& [waiting_] = static_cast<const BlockingParts&>(*this);
    s.put(waiting_);
  }

 private:
  Task send(Packet p) override {
    int64_t left = 0, piece = 0;  // of the packet, and of that what the current write still holds
    const SiteOf here([&](State& s) {
      put_packet(s, p);
      s.put(left);
      s.put(piece);
    });
    co_await Task::At{here};
    if (credits_.limited()) {
      if (credits_.exhausted()) co_await from.until([this] { return !credits_.exhausted(); }, spec.space_wait, spec.progress);
      credits_.take();
    }
    copy_in_begins(p);
    co_await library_work(from, p);
    left = length(p);
    frames_.push_back({p, tcp_.written() + left, pay_reverse()});
    ++common.count.packets;
    const bool split = spec.header_write && p.bytes > spec.header_write_above && p.first;
    piece = split ? header_of(p) : left;
    while (left > 0) {
      if (!(tcp_.space() > 0)) co_await wait_for_space();
      if (piece == 0) piece = left;
      const int64_t n = std::min(piece, tcp_.space());
      piece -= n;
      left -= n;
      co_await socket_call(from);
      if (spec.by_segment) {
        for (int64_t done = 0; done < n;) {
          const int64_t part = std::min(n - done, tcp_.mss());
          co_await from.thread.run(copy_cost(p, part, true).times(spec.copies_in));
          tcp_.write(part);
          done += part;
        }
        continue;
      }
      co_await from.thread.run(copy_cost(p, n, true).times(spec.copies_in));
      tcp_.write(n);
    }
  }
  void on_readable() override { offer(); }
  Task wait_for_space() {
    const SiteOf here([this](State& s) { s.put(static_cast<const void*>(this)); });
    co_await Task::At{here};
    waiting_ = true;
    co_await from.until([this] { return tcp_.writable(); }, spec.space_wait, spec.progress);
    waiting_ = false;
  }
  void on_acknowledged(bool was_full) override {
    if ((tcp_.counts_memory() ? waiting_ : was_full) && tcp_.writable()) from.thread.signal();
  }
};

}  // namespace

std::unique_ptr<Chan> make_blocking_stream(World& w, const StreamSpec& s, Proc& a, Proc& b) { return std::make_unique<BlockingStream>(w, s, a, b); }

}  // namespace retrompi
