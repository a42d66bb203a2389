// Transfers by a card or by the processor itself straight between the memories of two hosts: no operating system in the path.
#include "channel/proc.hpp"

namespace retrompi {

namespace {

class DmaChan final : public ChanOf<DmaSpec> {
 public:
  DmaChan(World& w, const DmaSpec& s, Proc& a, Proc& b) : ChanOf(w, s, a, b), free_slots_(s.slots) {}

  [[nodiscard]] bool no_room() const override { return spec.slots > 0 && free_slots_ <= 0; }
  [[nodiscard]] std::optional<Resource> resource() const override {
    if (spec.slots <= 0) return std::nullopt;
    Resource r{.name = "the places for unasked messages from " + from.thread.name() + " in the memory of " + to.thread.name(),
               .total = spec.slots,
               .unit = "packets",
               .used = {}};
    auto add = [&r](const Packet& p) {
      if (p.kind == Packet::Data && !p.m->rendezvous) r.used.push_back({p.m, 1, p.m->at});
    };
    for (const Flying& f : flying_) add(f.p);
    for (const Packet& p : landed_) add(p);
    return r;
  }

  Task push(Packet p) override {
    Host& h = from.host;
    const bool direct = p.kind == Packet::Data && p.m->rendezvous;  // into the user's buffer, whose address the receiver has sent
    if (!direct && p.kind == Packet::Data && spec.slots > 0) {
      // A buffer in the receiver's memory for data it has not requested.
      if (!(free_slots_ > 0)) co_await from.until([this] { return free_slots_ > 0; }, spec.space_wait, spec.progress);
      --free_slots_;
      assert(free_slots_ >= 0);
    }
    copy_in_begins(p);
    const int64_t fragments = spec.fragment > 0 ? (p.bytes + spec.fragment - 1) / spec.fragment : 0;
    const Ps lib = h.time(spec.send_cpu + (p.first ? spec.message_cpu : Work{}) + fragments * spec.fragment_cpu);
    co_await from.thread.run(lib, Stage::Library);
    if (!direct) co_await from.thread.run(copy_cost(p, p.bytes, true).times(spec.copies_in));
    // Both ends register their memory with the card: the receiver before it answers, the sender before its data leave.
    if (p.kind == Packet::Cts || direct) {
      const int64_t pages = (p.m->bytes + spec.page - 1) / spec.page;
      co_await from.thread.run(h.time(spec.pin + pages * spec.pin_page), Stage::Syscall);
    }
    ++common.count.packets;
    const int64_t bytes = p.bytes + spec.header;
    const int64_t piece = std::min(spec.piece, std::max(spec.piece_min, bytes / spec.pieces));
    const bool pio = bytes <= spec.pio_limit;
    const uint32_t seq = base_ + static_cast<uint32_t>(flying_.size());
    flying_.push_back({p, false, false});
    if (pio) co_await from.thread.run(to_ps(static_cast<double>(bytes) / spec.pio_rate), Stage::Nic);
    attribute(NetworkPacket::Transfer, p.bytes, false, p.transit);
    const Ps left = world.net->burst(common, from.host_index, to.host_index, bytes, spec.rate, piece,
                                     delivery<&DmaChan::on_arrival, &DmaChan::on_lost>(*this, seq));
    if (spec.cpu_driven) {
      co_await from.thread.run(left - world.loop.now, Stage::Nic);
    } else if (direct && p.last) {  // its memory is the user's until the card has read it
      busy_ = true;
      world.loop.schedule(left, callback<&DmaChan::on_left>(*this));
      co_await from.until([this] { return !busy_; }, spec.space_wait, spec.progress);
    }
  }

  Task pull(Token) override {
    const Packet p = landed_.front();
    landed_.pop_front();
    copy_out_begins(p);
    Host& h = to.host;
    const bool direct = p.kind == Packet::Data && p.m->rendezvous;
    co_await to.thread.run(h.time(spec.recv_cpu), Stage::Library);
    if (!direct && p.kind == Packet::Data) {
      co_await to.thread.run(copy_cost(p, p.bytes, false).times(spec.copies_out));
      if (spec.slots > 0) {
        ++free_slots_;
        assert(free_slots_ <= spec.slots);
        from.thread.signal();
      }
    }
    copy_out_ends(p);
    if (!to.take(p)) co_await to.handle(p);
  }

 private:
  void on_arrival(uint32_t seq) {
    flying_[seq - base_].arrived = true;
    land();
  }
  /// There is no retransmission: neither the card nor the library keeps a copy of sent data (docs/sharing.md).
  void on_lost(uint32_t seq) {
    Flying& f = flying_[seq - base_];
    f.arrived = f.lost = true;
    f.p.m->lost = true;
    land();
  }
  void land() {
    // Messages on one path stay in order: a short one does not overtake a long one sent before it.
    while (!flying_.empty() && flying_.front().arrived) {
      const Flying f = flying_.front();
      flying_.pop_front();
      ++base_;
      if (f.lost) continue;
      landed_.push_back(f.p);
      to.arrive({this, 0, 0}, true);
    }
  }
  void on_left() {
    busy_ = false;
    from.thread.signal();
  }
  struct Flying {
    Packet p;
    bool arrived, lost;
  };
  int32_t free_slots_;
  uint32_t base_ = 0;
  std::deque<Flying> flying_;
  std::deque<Packet> landed_;
  bool busy_ = false;
};

}  // namespace

std::unique_ptr<Chan> make_chan(World& w, SharedParts&, const DmaSpec& s, Proc& a, Proc& b) { return std::make_unique<DmaChan>(w, s, a, b); }

}  // namespace retrompi
