// Transfers by a card or by the processor itself straight between the memories of two hosts: no operating system in the path.
#include "channel/chan.hpp"

namespace retrompi {

namespace {

/// Transfers that end in any order and are taken in that of their beginning: a short one does not overtake a long one sent before it.
class Transfers {
 public:
  /// The number of one that begins.
  uint32_t begin(const Packet& p) {
    under_way_.push_back({p, false, false});
    return first_ + static_cast<uint32_t>(under_way_.size()) - 1;
  }
  /// One has arrived or is lost; `take` gets what has arrived and waits for none before it.
  template <class F>
  void end(uint32_t number, bool lost, F take) {
    Transfer& ended = under_way_[number - first_];
    ended.over = true;
    ended.lost = lost;
    if (lost) ended.p.m->lost = true;
    while (!under_way_.empty() && under_way_.front().over) {
      const Transfer first = under_way_.front();
      under_way_.pop_front();
      ++first_;
      if (!first.lost) take(first.p);
    }
  }
  template <class F>
  void each(F f) const {
    for (const Transfer& t : under_way_) f(t.p);
  }

 private:
  struct Transfer {
    Packet p;
    bool over, lost;
  };
  uint32_t first_ = 0;  // number of the first that is under way
  std::deque<Transfer> under_way_;
};

class DmaChan final : public ChanOf<DmaSpec> {
 public:
  DmaChan(World& w, const DmaSpec& s, Proc& a, Proc& b) : ChanOf(w, s, a, b), free_slots_(s.slots) {}

  [[nodiscard]] bool out_of_space() const override { return spec.slots > 0 && free_slots_ <= 0; }
  [[nodiscard]] std::optional<Resource> resource() const override {
    if (spec.slots <= 0) return std::nullopt;
    Resource r{.name = "the places for unasked messages from " + from.thread.name() + " in the memory of " + to.thread.name(),
               .total = spec.slots,
               .unit = "packets",
               .used = {}};
    auto add = [&r](const Packet& p) {
      if (p.kind == Packet::Data && !p.m->rendezvous) r.used.push_back({p.m, 1, p.m->at});
    };
    flying_.each(add);
    for (const Packet& p : landed_) add(p);
    return r;
  }

  /// A message's header takes its part of the first packet, or all of it.
  [[nodiscard]] int64_t first_of(const Message& m, int64_t packet) const override {
    if (m.rendezvous || spec.message_header == 0) return packet;
    return header_alone(m) ? 0 : std::max<int64_t>(packet - spec.message_header, 1);
  }

  Task push(Packet p) override {
    const bool direct = p.kind == Packet::Data && p.m->rendezvous;  // into the user's buffer, whose address the receiver has sent
    if (!direct && p.kind == Packet::Data && spec.slots > 0) {
      // A buffer in the receiver's memory for data it has not requested.
      if (!(free_slots_ > 0)) co_await from.until([this] { return free_slots_ > 0; }, spec.space_wait, spec.progress);
      --free_slots_;
      assert(free_slots_ >= 0);
    }
    copy_in_begins(p);
    const int64_t fragments = spec.fragment > 0 ? (p.bytes + spec.fragment - 1) / spec.fragment : 0;
    // Data behind a header that went alone are a second message of the layer below.
    const bool begins = p.first || (second_ && p.kind == Packet::Data);
    if (p.kind == Packet::Data) second_ = p.first && !p.last && header_alone(*p.m);
    co_await work(from, copied_number::send_cpu, static_cast<int64_t>(begins) * dma_number::message_cpu, fragments * dma_number::fragment_cpu);
    if (const int64_t n = copied(p, p.first)) co_await from.thread.run(copy_cost(p, n, true).times(spec.copies_in));
    // Both ends register their memory with the card: the receiver before it answers, the sender before its data leave, or before it asks
    // where the receiver's card reads them.
    if (spec.reads && p.kind == Packet::Rts) co_await pin(0, p.m->bytes, from.pinned_to_send);
    if (p.kind == Packet::Cts) co_await pin(0, p.m->bytes, from.pinned_to_receive);
    if (direct) {
      const int64_t at = p.first ? 0 : moved_;
      moved_ = at + p.bytes;
      co_await pin(at, moved_, from.pinned_to_send);
    }
    ++common.count.packets;
    const bool by_card = direct || reads(p);  // the library says nothing
    const int64_t bytes = p.bytes + spec.header + (p.first && !by_card ? spec.message_header : 0);
    const bool pio = bytes <= spec.pio_limit;
    const uint32_t number = flying_.begin(p);
    if (pio) co_await from.thread.run(to_ps(static_cast<double>(bytes) / spec.pio_rate), Stage::Nic);
    attribute(NetworkPacket::Transfer, p.bytes, false, p.transit);
    // A card puts data into memory without a word: a message right behind them says that they are there.
    const int64_t behind = direct ? spec.told_by : 0;
    const Ps left = world.net->burst(common, from.host_index, to.host_index, bytes, spec.rate, piece_of(bytes),
                                     delivery<&DmaChan::on_arrival, &DmaChan::on_lost>(*this, number), behind,
                                     {.fetch = pio || reads(p) ? Ps{} : spec.fetch, .interleaved = spec.interleaved});
    if (behind > 0) co_await work(from, copied_number::send_cpu);
    if (spec.cpu_driven) {
      co_await from.thread.run(left - world.loop.now, Stage::Nic);
    } else if (direct && p.last) {  // its memory is the user's until the card has read it
      busy_ = true;
      const CriticalPath::Point here = world.loop.cause;
      if (CriticalPath& path = world.anatomy.critical; path.on) world.loop.cause = path.extend(here, left, Stage::Nic, from.host.place());
      world.loop.schedule(left, callback<&DmaChan::on_left>(*this));
      world.loop.cause = here;
      co_await from.until([this] { return !busy_; }, spec.space_wait, spec.progress);
    }
  }

  Task pull(Token t) override {
    if (t.kind == kRead) return has_read();
    return take_in(t);
  }

 private:
  static constexpr uint8_t kWoken = 1;  // a token of a packet for which the receiver slept
  static constexpr uint8_t kRead = 2;   // a token of data that this end has read
  Task take_in(Token t) {
    const Packet p = landed_.front();
    landed_.pop_front();
    copy_out_begins(p);
    Host& h = to.host;
    if (t.kind == kWoken) co_await to.thread.run(h.spec.syscall, Stage::Syscall);
    const bool direct = p.kind == Packet::Data && p.m->rendezvous;
    co_await work(to, copied_number::recv_cpu);
    if (!direct && p.kind == Packet::Data) {
      if (const int64_t n = copied(p, p.last)) co_await to.thread.run(copy_cost(p, n, false).times(spec.copies_out));
      if (spec.slots > 0) {
        ++free_slots_;
        assert(free_slots_ <= spec.slots);
        from.thread.signal();
      }
    }
    copy_out_ends(p);
    if (!to.take(p)) co_await to.handle(p);
  }
  /// The data of a message have come against the direction of this channel, which carried the request to read them.
  Task has_read() {
    const Packet p = read_.front();
    read_.pop_front();
    copy_out_begins(p);
    co_await work(from, copied_number::recv_cpu);
    Message& m = *p.m;  // the sender keeps it until it is told
    copy_out_ends(p);
    co_await from.handle(p);
    co_await from.post(*this, {.m = &m, .from = m.dst, .to = m.src, .kind = Packet::Done, .first = true, .last = true});
  }
  /// The card at the other end has the request: it reads its memory and sends what is there. No process takes part.
  void answer(const Packet& request) {
    Message& m = *request.m;
    Packet data{.m = &m, .bytes = m.bytes, .from = m.src, .to = m.dst, .kind = Packet::Data, .first = true, .last = true};
    if (MessagePath& path = world.anatomy.path; path.on) {
      const Ps now = world.loop.now;
      data.transit = path.add(
          PacketTransit{number, to.thread.log(), from.thread.log(), m.src, m.dst, Packet::Data, true, true, m.at, m.bytes, m.bytes, now, now, now});
    }
    ++common.count.packets;
    const int64_t bytes = m.bytes + spec.header;
    const uint32_t number = answers_.begin(data);
    attribute(NetworkPacket::Transfer, m.bytes, true, data.transit);
    world.net->burst(common, to.host_index, from.host_index, bytes, spec.rate, piece_of(bytes),
                     delivery<&DmaChan::on_answer, &DmaChan::on_answer_lost>(*this, number), 0,
                     {.fetch = spec.answer, .interleaved = spec.interleaved});
  }
  void on_answer(uint32_t number) { answer_ends(number, false); }
  void on_answer_lost(uint32_t number) { answer_ends(number, true); }
  void answer_ends(uint32_t number, bool lost) {
    answers_.end(number, lost, [this](const Packet& p) {
      read_.push_back(p);
      from.arrive({this, kRead, 0}, true);
    });
  }
  /// What must have crossed a stage before the next one starts.
  [[nodiscard]] int64_t piece_of(int64_t bytes) const { return std::min(spec.piece, std::max(spec.piece_min, bytes / spec.pieces)); }
  /// A request to read, which goes from card to card.
  [[nodiscard]] bool reads(const Packet& p) const { return spec.reads && p.kind == Packet::Cts; }
  [[nodiscard]] bool header_alone(const Message& m) const { return spec.alone > 0 && !m.rendezvous && m.bytes > spec.alone; }
  /// Bytes copied with a packet between the user's memory and the library's. A message with a header is copied as a whole: before
  /// its first packet is sent, after its last one has come (`whole`: whether this packet is the one).
  [[nodiscard]] int64_t copied(const Packet& p, bool whole) const {
    if (p.kind != Packet::Data) return p.bytes;
    if (p.m->rendezvous || header_alone(*p.m)) return 0;
    return spec.message_header == 0 ? p.bytes : whole ? p.m->bytes : 0;
  }
  /// Makes the bytes `begin` to `end` of a buffer known to the card, without those before `known` where that is remembered.
  Task pin(int64_t begin, int64_t end, int64_t& known) {
    if (spec.pin_cache) begin = std::max(begin, known);
    if (end <= begin) co_return;
    known = std::max(known, end);
    const int64_t pages = (end - begin + spec.page - 1) / spec.page;
    co_await from.thread.run(from.host.time(spec.pin + pages * spec.pin_page), Stage::Syscall);
  }
  void on_arrival(uint32_t number) { land(number, false); }
  void on_interrupt() { to.arrive({this, kWoken, 0}, true); }
  /// There is no retransmission: neither the card nor the library keeps a copy of sent data (docs/sharing.md).
  void on_lost(uint32_t number) { land(number, true); }
  void land(uint32_t number, bool lost) {
    flying_.end(number, lost, [this](const Packet& p) {
      if (reads(p)) return answer(p);
      landed_.push_back(p);
      if (spec.sleeps && to.thread.waiting())
        to.host.kernel(to.host.charge(host_number::interrupt), Stage::Interrupt, callback<&DmaChan::on_interrupt>(*this));
      else
        to.arrive({this, 0, 0}, true);
    });
  }
  void on_left() {
    busy_ = false;
    from.thread.signal();
  }
  int32_t free_slots_;
  Transfers flying_;
  std::deque<Packet> landed_;
  Transfers answers_;  // on their way to this end, which reads them
  std::deque<Packet> read_;
  bool busy_ = false;
  bool second_ = false;  // the packet before was a header alone
  int64_t moved_ = 0;    // of a rendezvous message
};

}  // namespace

std::unique_ptr<Chan> make_chan(World& w, SharedParts&, const DmaSpec& s, Proc& a, Proc& b) { return std::make_unique<DmaChan>(w, s, a, b); }

}  // namespace retrompi
