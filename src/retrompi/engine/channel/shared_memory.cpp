// Channels through memory that processes of one host share: p4's pool of size classes, and a ring of packet slots.
#include "channel/shared_parts.hpp"
#include "channel/shared_segment.hpp"

namespace retrompi {

namespace {

template <class Memory>
struct SegmentParts {
  struct Entry {
    Packet p;
    int32_t buffer;
    Ps at;
  };
  std::shared_ptr<Memory> memory_;
  int64_t filled_ = 0, emptied_ = 0;
  std::deque<Entry> queue_{};
};

/// Common to both kinds: copy in, link, signal; copy out, free.
template <class Spec, class Memory>
class SharedChan final : public ChanOf<Spec>, SegmentParts<Memory> {
  using Base = ChanOf<Spec>;
  using Parts = SegmentParts<Memory>;
  using Base::common, Base::from, Base::to, Base::spec, Base::world;
  using Base::copy_cost, Base::in_caches, Base::copy_in_begins, Base::copy_in_ends, Base::copy_out_begins, Base::copy_out_ends;
  using Parts::memory_, Parts::filled_, Parts::emptied_, Parts::queue_;
  using typename Parts::Entry;
  static constexpr bool kRing = std::is_same_v<Spec, RingSpec>;

 public:
  SharedChan(World& w, const Spec& s, Proc& a, Proc& b, std::shared_ptr<Memory> m) : Base(w, s, a, b), Parts{.memory_ = std::move(m)} {
    if constexpr (kRing) memory_->users.push_back(this);
  }

  [[nodiscard]] int64_t packet_of(const Message& m) const override {
    if constexpr (kRing)
      if (spec.short_packet > 0 && m.bytes <= spec.short_until) return spec.short_packet;
    return spec.packet;
  }
  [[nodiscard]] int64_t first_of(const Message& m, int64_t packet) const override {
    if constexpr (kRing)
      if (spec.alone > 0 && !m.rendezvous && m.bytes > spec.alone) return 0;
    return packet;
  }

  Task push(Packet p) override {
    const int64_t size = p.bytes + spec.header;
    int32_t buffer = 0;
    if (!acquire(p, size, buffer)) {
      refuse(p, size);
      co_await from.until(
          [this, &p, size, &buffer] {
            if (acquire(p, size, buffer)) return true;
            memory_->waiting.push_back(&from);
            return false;
          },
          spec.space_wait, spec.progress);
    }
    copy_in_begins(p);
    Host& h = from.host;
    if (spec.pack > 0) co_await private_copies(from, p, spec.pack);
    const Ps event = h.time(spec.event);
    if (spec.lock) co_await from.until([this] { return pool_lock().take(from.thread); }, locking(), false);
    if (in_caches()) {
      co_await this->work(from, copied_number::send_cpu);
      co_await from.thread.run(lines(true) * h.line(h.kinship(from.core, to.core)), Stage::Line);
      co_await from.copy(copy_cost(p, p.bytes, true), to.core);
    } else {
      co_await this->work(from, copied_number::send_cpu);
      co_await from.thread.run(copy_cost(p, p.bytes, true).times(spec.copies_in));
      co_await from.thread.run(event, Stage::Event);
    }
    if (spec.lock) pool_lock().give();
    ++common.count.packets;
    queue_.push_back({p, buffer, world.loop.now});
    copy_in_ends(p);
    to.arrive({this, 0, 0}, spec.by_event);
    if (spec.until_taken) {  // the single buffer is held until the receiver has emptied it
      const int64_t mine = ++filled_;
      co_await from.until([this, mine] { return emptied_ >= mine; }, spec.space_wait, spec.progress);
    }
  }

  Task pull(Token) override {
    Entry e = queue_.front();
    queue_.pop_front();
    if (stays_in_pool(e.p)) {
      e.p.m->in_pool.push_back({this, e.buffer, e.p.transit, e.p.bytes});
      e.p.held = true;
      co_await this->work(to, copied_number::recv_cpu);
    } else {
      co_await copy_out(e.p, e.buffer);
    }
    if (!to.take(e.p)) co_await to.handle(e.p);
  }

  [[nodiscard]] std::optional<Resource> resource() const override {
    Resource r;
    if constexpr (!kRing) {
      r.name = "the shared memory pool of host " + from.host.name;
      r.total = memory_->total();
      memory_->fill(r.used);
    } else {
      r.name = "the packet slots " + std::string(spec.slots_of_sender ? "of " + from.thread.name() : "towards " + to.thread.name());
      r.total = memory_->slots();
      r.unit = "slots";
      for (const Chan* c : memory_->users) static_cast<const SharedChan*>(c)->queued(r.used);
    }
    return r;
  }
  [[nodiscard]] bool out_of_space() const override {
    return std::find(memory_->waiting.begin(), memory_->waiting.end(), &from) != memory_->waiting.end();
  }
  void state(State& s) override {
    this->put_queue(s);
    const auto& [memory_, filled_, emptied_, queue_] = static_cast<const Parts&>(*this);
    if (!queue_.empty()) s.refuse();
    s.put(filled_ - emptied_);
    memory_->state(s);
  }
  void queued(std::vector<Occupant>& out) const {
    for (const Entry& e : queue_) out.push_back({e.p.m, 1, e.at});
  }

  Task fetch(Message& m, Message::PoolPacket held) override {
    Packet p{.m = &m, .bytes = held.bytes, .transit = held.transit};
    co_await copy_out(p, held.buffer);
  }

 private:
  /// Lines of the other core that queueing a packet or taking it out touches.
  [[nodiscard]] int lines(bool in) const {
    if constexpr (kRing) return in ? spec.lines_in : spec.lines_out;
    return 0;
  }
  bool stays_in_pool(const Packet& p) {
    if constexpr (!kRing) return spec.hold_unexpected && to.leave_in_pool(p);
    return false;
  }
  [[nodiscard]] Lock& pool_lock() { return common.pool_locks[from.host_index]; }
  [[nodiscard]] WaitPolicy locking() const {
    WaitPolicy p = spec.space_wait;
    p.what = WaitFor::Lock;
    return p;
  }
  bool acquire(const Packet& p, int64_t size, int32_t& buffer) {
    if constexpr (!kRing) {
      if (!memory_->possible(size))
        throw Abort{"the shared memory pool of " + std::to_string(memory_->total()) + " B on host " + from.host.name +
                        " can never hold a packet of " + std::to_string(size) + " B (process " + from.thread.name() + ")",
                    this};
      buffer = memory_->take(size, p.m, world.loop.now);
      return buffer >= 0;
    } else {
      (void)size, (void)buffer;
      if (spec.one_message && p.first && !memory_->empty()) return false;
      return memory_->take();
    }
  }
  void refuse(const Packet& p, int64_t size) const {
    if constexpr (!kRing)
      if (spec.exhausted_aborts && !(p.kind == Packet::Data && p.m->rendezvous))
        throw Abort{"the shared memory pool of " + std::to_string(memory_->total()) + " B on host " + from.host.name +
                        " is exhausted: no buffer for a packet of " + std::to_string(size) + " B from rank " + std::to_string(p.from) + " to rank " +
                        std::to_string(p.to),
                    this};
  }
  Task copy_out(Packet p, int32_t buffer) {
    Host& h = to.host;
    copy_out_begins(p);
    co_await to.thread.run(h.time(spec.take_call), Stage::Syscall);
    if (spec.lock) co_await to.until([this] { return pool_lock().take(to.thread); }, locking(), false);
    if (in_caches()) {
      co_await to.thread.run(lines(false) * h.line(h.kinship(from.core, to.core)), Stage::Line);
      co_await this->work(to, copied_number::recv_cpu);
      co_await to.copy(copy_cost(p, p.bytes, false), from.core);
    } else {
      co_await this->work(to, copied_number::recv_cpu);
      co_await to.thread.run(copy_cost(p, p.bytes, false).times(spec.copies_out));
    }
    if (spec.lock) pool_lock().give();
    if constexpr (!kRing)
      memory_->give(buffer);
    else
      memory_->give();
    if (spec.until_taken) {
      ++emptied_;
      from.thread.signal();
    }
    if (spec.unpack > 0) co_await private_copies(to, p, spec.unpack);
    copy_out_ends(p);
  }
  Task private_copies(Proc& who, Packet p, double copies) {
    if (copies > 0 && p.bytes > 0) co_await who.thread.run(copy_cost(p, p.bytes, true).times(copies));
  }
};

}  // namespace

std::unique_ptr<Chan> make_chan(World& w, SharedParts& shared, const PoolSpec& s, Proc& a, Proc& b) {
  auto& slot = shared.pools[a.host_index];
  if (!slot) slot = std::make_shared<SharedPool>(s.pool, s.prefix, s.classes);
  return std::make_unique<SharedChan<PoolSpec, SharedPool>>(w, s, a, b, slot);
}

std::unique_ptr<Chan> make_chan(World& w, SharedParts& shared, const RingSpec& s, Proc& a, Proc& b) {
  // A message that must be alone is alone in the ring of its pair. A proxy's region is separate from that of the ranks.
  auto& slot =
      shared.rings[{s.one_message || s.slots_of_sender ? &s : nullptr, s.slots_of_sender ? &a : &b, s.one_message ? &a : nullptr, s.between.from}];
  if (!slot) slot = std::make_shared<SlotRing>(s.slots);
  return std::make_unique<SharedChan<RingSpec, SlotRing>>(w, s, a, b, slot);
}

}  // namespace retrompi
