// Datagrams between daemons, made reliable by the daemons themselves: sequence numbers, acknowledgement, retry.
#include "channel/chan.hpp"

namespace retrompi {

namespace {

struct DatagramParts {
  struct Out {
    Packet p;
    int32_t tries;
    bool acked;
    uint32_t timer;        // generation: only the latest timer counts
    bool fetched = false;  // taken in by the receiver
    Ps armed = 0;          // when the timer was set, and by which cause
    Cause by{};
  };
  struct Shipped {  // a datagram, or an acknowledgement
    Proc* sender = nullptr;
    uint8_t kind = 0;
    uint32_t seq = 0;
    int64_t frames = 0;  // still in flight
    bool lost = false;
  };
  struct Part {  // a frame of it
    uint32_t whole = 0;
    int64_t bytes = 0;
    bool late = false;
    bool last = false;
  };
  std::deque<Out> out_;
  uint32_t base_ = 0, expected_ = 0;
  std::map<uint32_t, Packet> early_;
  std::vector<Shipped> shipped_;
  std::vector<Part> parts_;
  std::vector<uint32_t> free_shipped_, free_;
};

class DatagramChan final : public ChanOf<DatagramSpec>, DatagramParts {
 public:
  using ChanOf::ChanOf;

  [[nodiscard]] bool out_of_space() const override { return static_cast<int32_t>(out_.size()) >= spec.window; }
  [[nodiscard]] std::optional<Resource> resource() const override {
    Resource r{.name = "the datagrams on their way from " + from.thread.name() + " to " + to.thread.name(),
               .total = spec.window,
               .unit = "datagrams",
               .used = {}};
    for (const Out& o : out_) r.used.push_back({o.p.m, 1, o.armed});
    return r;
  }

  void state(State& s) override {
    put_queue(s);
    // What was shipped is put by the calls that bring it (`describe`).
    const auto& [out_, base_, expected_, early_, shipped_, parts_, free_shipped_, free_] = static_cast<const DatagramParts&>(*this);
    if (!early_.empty()) s.refuse();
    s.put(expected_ - base_);
    s.put(out_.size());
    for (const Out& o : out_) {
      const auto& [p, tries, acked, timer, fetched, armed, by] = o;
      if (tries > 0) s.refuse();
      put_packet(s, p);
      s.put(fetched);
      s.put(acked);
      s.put_time(armed);
    }
  }
  static State::Call describe(const Callback& c, State& s) {
    using D = DatagramChan;
    D& d = *static_cast<D*>(c.object);
    if (calls<&D::on_timer, D>(c)) return State::Call::Void;  // of a first try, or past: whether it will expire is seen from `armed`
    if (!calls<&D::on_out, D>(c) && !calls<&D::on_frame, D>(c) && !calls<&D::on_in, D>(c)) return State::Call::Unknown;
    const auto& [whole, bytes, late, last] = d.parts_[c.arg];
    const auto& [sender, kind, seq, frames, lost] = d.shipped_[whole];
    s.put(c.fn);
    s.put(c.object);
    s.put(bytes);
    s.put(late);
    s.put(sender == &d.from);
    s.put(kind);
    s.put(seq - d.base_);
    s.put(frames);
    s.put(lost);
    return State::Call::Put;
  }

  Task push(Packet p) override {
    const SiteOf here([&](State& s) { put_packet(s, p); });
    co_await Task::At{here};
    co_await from.until([this] { return static_cast<int32_t>(out_.size()) < spec.window; }, spec.space_wait, true);
    copy_in_begins(p);
    out_.push_back({.p = p, .tries = 0, .acked = false, .timer = 0});
    ++common.count.packets;
    const uint32_t seq = base_ + static_cast<uint32_t>(out_.size()) - 1;
    co_await work(from, copied_number::send_cpu);
    co_await transmit(seq);
  }

  Task pull(Token t) override {
    switch (t.kind) {
      case kAck:
        co_await socket_call(from, spec.calls_in);
        if (Out* o = find(t.seq)) {
          o->acked = true;
          if (world.loop.now - o->armed >= spec.timeout) ++world.loop.tick_uses;  // at another phase of the clock the timer had expired
        }
        while (!out_.empty() && out_.front().acked && out_.front().fetched) {
          out_.pop_front();
          ++base_;
        }
        break;
      case kTimer: {
        Out* o = find(t.seq);
        if (!o || o->acked) break;
        if (++o->tries > spec.retries)
          throw Abort{"datagram " + std::to_string(t.seq) + " from " + from.thread.name() + " to " + to.thread.name() +
                      " was not acknowledged after " + std::to_string(spec.retries) + " retries"};
        ++common.count.retransmissions;
        co_await transmit(t.seq);
        break;
      }
      default:
        co_await receive(t.seq);
    }
  }

 private:
  static constexpr uint8_t kData = 0, kAck = 1, kTimer = 2;
  static constexpr int64_t kUdpHeader = 8;
  [[nodiscard]] Thread::Await socket_call(Proc& p, double calls) const {
    return p.thread.run_parts({p.host.time(spec.call), Stage::Library},
                              {static_cast<Ps>(calls * static_cast<double>(p.host.spec.syscall)), Stage::Syscall});
  }
  [[nodiscard]] int64_t length(const Packet& p) const { return p.bytes + spec.header + (p.first ? spec.message_header : 0); }
  Out* find(uint32_t seq) {
    const uint32_t i = seq - base_;
    return i < out_.size() ? &out_[i] : nullptr;
  }

  Task transmit(uint32_t seq) {
    const Packet p = find(seq)->p;
    Host& h = from.host;
    co_await socket_call(from, spec.calls_out);
    co_await from.thread.run(copy_cost(p, p.bytes, true).times(spec.copies_in));
    Out* o = find(seq);
    if (!o || o->acked) co_return;  // acknowledged while it was being retransmitted
    // The retry timer is a timed wait of the daemon: it ends on a clock tick and doubles with each try.
    o->armed = world.loop.now;
    o->by = world.anatomy.current;
    const Ps due = h.next_tick(world.loop.now + spec.timeout * (1 << std::min(o->tries, 6)));
    world.loop.schedule(due, callback<&DatagramChan::on_timer>(*this, (static_cast<uint64_t>(seq) << 32) | ++o->timer));
    ship(from, kData, seq, length(p));
    if (spec.duplicate > 0 && common.rng.uniform() < spec.duplicate) {
      ++common.count.duplicates;
      ship(from, kData, seq, length(p));
    }
  }

  /// Hands a datagram to the sending kernel; IP fragments it into frames, and it has arrived when all of them have.
  void ship(Proc& sender, uint8_t kind, uint32_t seq, int64_t bytes) {
    Host& h = sender.host;
    const int64_t payload = world.net->mtu() - 20;
    int64_t left = bytes + kUdpHeader;
    // Losing any fragment loses the datagram, so there is one random draw per datagram.
    const bool lost = spec.loss > 0 && common.rng.uniform() < spec.loss;
    const bool late = spec.reorder > 0 && common.rng.uniform() < spec.reorder;
    const uint32_t whole = take(shipped_, free_shipped_);
    shipped_[whole] = {&sender, kind, seq, (left + payload - 1) / payload, lost};
    const Cause before = world.anatomy.current;
    while (left > 0) {
      const int64_t n = std::min(left, payload);
      left -= n;
      const Out* o = kind == kData ? find(seq) : nullptr;
      attribute(o ? NetworkPacket::Datagram : NetworkPacket::DatagramAck, n, &sender == &to, o ? o->p.transit : -1);
      const uint32_t slot = take(parts_, free_);
      parts_[slot] = {whole, n, late, left == 0};
      h.kernel(h.charge(host_number::tcp_segment, n * host_number::tcp_byte), Stage::Stack, callback<&DatagramChan::on_out>(*this, slot));
    }
    world.anatomy.current = before;
  }
  template <class T>
  static uint32_t take(std::vector<T>& all, std::vector<uint32_t>& free) {
    if (free.empty()) {
      all.emplace_back();
      return static_cast<uint32_t>(all.size() - 1);
    }
    const uint32_t slot = free.back();
    free.pop_back();
    return slot;
  }
  [[nodiscard]] Proc& receiver(const Part& part) const { return shipped_[part.whole].sender == &from ? to : from; }
  void on_out(uint32_t slot) {
    const Part& part = parts_[slot];
    const Proc& there = receiver(part);
    // A frame before the last arrives before it (or all the same for nothing, if that one is lost): IP keeps it.
    const Ps alone = part.last || part.late || there.host.spec.napi ? Ps(0) : interrupt(there.host, part).ps;
    world.net->frame(common, shipped_[part.whole].sender->host_index, there.host_index, part.bytes,
                     delivery<&DatagramChan::on_frame, &DatagramChan::on_lost>(*this, slot), alone);
  }
  void on_frame(uint32_t slot) {
    Part& part = parts_[slot];
    if (part.late) {
      part.late = false;
      if (CriticalPath& path = world.anatomy.critical; path.on)
        world.loop.cause = path.extend(world.loop.cause, world.loop.now + spec.reorder_delay, Stage::Latency, path.place("wire"));
      world.loop.schedule(world.loop.now + spec.reorder_delay, callback<&DatagramChan::on_frame>(*this, slot));
      return;
    }
    Host& h = receiver(part).host;
    h.kernel(interrupt(h, part), Stage::Stack, callback<&DatagramChan::on_in>(*this, slot));
  }
  /// What a frame that arrives costs the receiver's kernel.
  [[nodiscard]] static Charge interrupt(const Host& h, const Part& part) {
    return h.charge_frame(host_number::tcp_segment, part.bytes * host_number::tcp_byte);
  }
  void on_in(uint32_t slot) { gone(slot, false); }
  void on_lost(uint32_t slot) { gone(slot, true); }
  /// A frame has arrived or is lost. IP cannot reassemble a datagram without all of its frames.
  void gone(uint32_t slot, bool lost) {
    const Part part = parts_[slot];
    free_.push_back(slot);
    Shipped& d = shipped_[part.whole];
    d.lost |= lost;
    assert(d.frames > 0);
    if (--d.frames > 0) return;
    free_shipped_.push_back(part.whole);
    if (!d.lost) receiver(part).arrive({this, d.kind, d.seq}, true);
  }
  void on_timer(uint64_t arg) {
    const auto seq = static_cast<uint32_t>(arg >> 32);
    const Out* o = find(seq);
    if (!o || o->acked || o->timer != static_cast<uint32_t>(arg)) return;
    ++world.loop.tick_uses;
    if (CriticalPath& path = world.anatomy.critical; path.on)
      world.loop.cause = path.extend(world.loop.cause, world.loop.now, Stage::Ack, from.host.place());
    if (world.anatomy.on) {
      world.anatomy.current = o->by;
      attribute(NetworkPacket::Datagram, o->p.bytes, false, o->p.transit);
      world.anatomy.current = world.anatomy.of(world.anatomy.record("udp retry", Stage::Ack, o->armed, o->armed, world.loop.now));
    }
    from.arrive({this, kTimer, seq}, true);
  }

  Task receive(uint32_t seq) {
    Out* o = find(seq);
    if (o) copy_out_begins(o->p);
    const int64_t bytes = o ? o->p.bytes : 0;
    const CopyCost copy = o ? copy_cost(o->p, bytes, false).times(spec.copies_out) : CopyCost{};
    co_await socket_call(to, spec.calls_in);
    co_await to.thread.run(copy);
    // Acknowledge every datagram, duplicates included: the first acknowledgement may have been lost.
    co_await socket_call(to, spec.calls_out);
    ship(to, kAck, seq, spec.header);
    o = find(seq);
    if (seq < expected_ || !o || o->fetched) co_return;
    o->fetched = true;
    if (seq != expected_) {
      early_.emplace(seq, o->p);
      co_return;
    }
    Packet p = o->p;
    while (true) {
      ++expected_;
      co_await work(to, copied_number::recv_cpu);
      copy_out_ends(p);
      if (!to.take(p)) co_await to.handle(p);
      const auto it = early_.find(expected_);
      if (it == early_.end()) break;
      p = it->second;
      early_.erase(it);
    }
  }
};

}  // namespace

State::Call describe_datagram(const Callback& c, State& s) { return DatagramChan::describe(c, s); }

std::unique_ptr<Chan> make_chan(World& w, SharedParts&, const DatagramSpec& s, Proc& a, Proc& b) {
  return std::make_unique<DatagramChan>(w, s, a, b);
}

}  // namespace retrompi
