// Channels: one way from a process to another, over one medium.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "channel/proc.hpp"
#include "generated/specs.hpp"

namespace retrompi {

/// An occupant of a limited resource.
struct Occupant {
  const Message* m;
  int64_t bytes;  // of the resource
  Ps since;
};
/// A resource that can be full, and what occupies it.
struct Resource {
  std::string name;   // "the shared memory pool of server"
  int64_t total = 0;  // in `unit`
  const char* unit = "B";
  std::vector<Occupant> used;
};

/// One direction of a connection, which the side opens that sends first.
class Opening {
 public:
  [[nodiscard]] bool is_open() const { return open_; }
  /// This side opens both directions.
  void open(Opening* reverse, const World& w) {
    open_ = true;
    if (reverse) reverse->open_ = true, reverse->by_other_ = w.loop.cause;
  }
  /// This side sends, and need not open it: earlier than the other it would have had to.
  void used(World& w) {
    if (by_other_ != 0) [[unlikely]]
      w.anatomy.critical.follows(std::exchange(by_other_, 0), w.loop.cause);
  }

 private:
  bool open_ = false;
  CriticalPath::Point by_other_ = 0;  // when the other side opened it, until this side has used it
};

/// A one-way channel between two processes.
class Chan {
 public:
  Chan(World& w, const MediumSpec& s, Medium medium, Proc& a, Proc& b)
      : world(w), common(a.common), spec(s), medium(medium), from(a), to(b), number(w.channels++) {}
  virtual ~Chan() = default;
  Chan(const Chan&) = delete;
  Chan& operator=(const Chan&) = delete;
  virtual Task push(Packet p) = 0;
  /// Handles one token in the receiving process (or, for acknowledgements and timers, in the sending one).
  virtual Task pull(Token t) = 0;
  /// Copies out and frees a packet that was left in the pool.
  virtual Task fetch(Message&, Message::PoolPacket) { co_return; }
  /// Whether it reports when a message has left the sender; otherwise the message has left when `push` returns.
  [[nodiscard]] virtual bool tells_sent() const { return false; }
  /// What a sender may have to wait for, if anything.
  [[nodiscard]] virtual std::optional<Resource> resource() const { return std::nullopt; }
  /// Whether the sender is waiting for space on this channel.
  [[nodiscard]] bool full() const { return busy && from.thread.waits_for(WaitFor::Space) && out_of_space(); }
  [[nodiscard]] virtual bool out_of_space() const { return false; }
  [[nodiscard]] std::string process_name() const { return from.thread.name() + " > " + to.thread.name(); }
  /// Its future, in words.
  virtual void state(State& s) { s.refuse(); }
  /// What the channel holds of a message of so many bytes at one end.
  [[nodiscard]] virtual double holds(int64_t, bool) const { return 0; }
  /// Largest payload of a packet of a message.
  [[nodiscard]] virtual int64_t packet_of(const Message&) const { return spec.packet; }
  /// Payload of a message's first packet, where its packets carry up to `packet`.
  [[nodiscard]] virtual int64_t first_of(const Message&, int64_t packet) const { return packet; }

  /// Attributes the following work to this item, which travels between the hosts of both ends; `back`: against the channel's direction.
  void attribute(NetworkPacket::Kind kind, int64_t bytes, bool back = false, int32_t transit = -1) {
    const auto a = static_cast<int32_t>(from.host_index), b = static_cast<int32_t>(to.host_index);
    world.anatomy.attribute({kind, number, back ? b : a, back ? a : b, bytes, transit});
  }

  World& world;
  Common& common;
  const MediumSpec& spec;  // fields common to all media; ChanOf has those of one medium
  const Medium medium;
  Proc& from;
  Proc& to;
  const int32_t number;  // among all channels
  bool busy = false;     // a packet is half written
  Fifo<Packet> deferred;

 protected:
  void put_queue(State& s) const {
    const auto& [world, common, spec, medium, from, to, number, busy, deferred] = *this;
    s.put(busy);
    s.put(deferred.size());
    for (const Packet& p : deferred) put_packet(s, p);
  }
  // The transit of a packet. A channel reports when it begins to copy one in or out, if that is not immediately.
  void copy_in_begins(const Packet& p) { world.anatomy.path.copy_in_begins(p.transit, world.loop.now); }
  void copy_in_ends(const Packet& p) { world.anatomy.path.copy_in_ends(p.transit, world.loop.now); }
  void copy_out_begins(const Packet& p) { world.anatomy.path.copy_out_begins(p.transit, world.loop.now); }
  void copy_out_ends(const Packet& p) { world.anatomy.path.copy_out_ends(p.transit, world.loop.now); }
};

/// The memory (bytes) of a channel that a message of `all` bytes passes through in packets of `packet`, at the end where they go `in` or out.
inline double channel_memory(const PoolSpec& s, const Host&, double all, double, bool) { return std::min(all, static_cast<double>(s.pool)); }
inline double channel_memory(const RingSpec& s, const Host&, double, double packet, bool) {
  return (s.ws_packet > 0 ? s.ws_packet : s.slots) * packet;
}
inline double channel_memory(const StreamSpec& s, const Host& h, double all, double, bool in) {
  const int64_t own = in ? s.sndbuf : s.rcvbuf;
  return std::min(all, static_cast<double>(own > 0 ? own : in ? h.spec.sndbuf : h.spec.window));
}
inline double channel_memory(const DmaSpec& s, const Host&, double, double packet, bool in) {
  return in ? packet : std::max(packet, static_cast<double>(s.recv_buffers));
}
inline double channel_memory(const MediumSpec&, const Host&, double, double packet, bool) { return packet; }

/// A channel with the declared parameters of its medium (spec/media.py).
template <class Spec>
class ChanOf : public Chan {
 public:
  ChanOf(World& w, const Spec& s, Proc& a, Proc& b) : Chan(w, s, Spec::kMedium, a, b), spec(s) {}
  const Spec& spec;
  [[nodiscard]] double holds(int64_t bytes, bool in) const override {
    const auto all = static_cast<double>(bytes);
    return channel_memory(spec, (in ? from : to).host, all, std::min(all, static_cast<double>(spec.packet)), in);
  }

 protected:
  /// Work of the library at one end: the sum of so many times costs of its specification.
  template <class... Part>
  Thread::Await work(Proc& at, const Part&... parts) const {
    return at.thread.run(at.host.work_of(spec, parts...), Stage::Library);
  }
  /// Copying `bytes` of a packet between the buffer at one end and the channel's memory; `in`: towards the channel.
  [[nodiscard]] CopyCost copy_cost(const Packet& p, int64_t bytes, bool in) const {
    const Proc& end = in ? from : to;
    const bool local = &from.host == &to.host;
    const Kinship kin = local ? from.host.kinship(from.core, to.core) : Kinship::Same;
    const bool data = p.m && (p.kind == Packet::Data || p.bytes > 0), whole = data && end.holds_messages();
    const auto packet = static_cast<double>(p.bytes), all = data ? static_cast<double>(p.m->bytes) : packet, n = whole ? all : packet;
    const double memory = channel_memory(spec, end.host, all, packet, in);
    double buffers = 1;  // of the message in this end's cache: source and destination, or each has a cache of its own
    if (whole && local && from.holds_messages() && to.holds_messages()) buffers = kin == Kinship::Bus ? both_buffers() / 2 : both_buffers();
    if (whole && (in ? p.m->packed : p.m->unpacked)) ++buffers;  // the user's and the one that it is packed in
    CopySide user, channel;
    if (by_itself(kin)) {
      user.near = user.set = buffers * n + memory;
      channel.near = channel.set = memory;
    } else {
      // Between two uses of a line: everything that passes this cache, and of the longer one only as much as the other lets pass.
      const double passing = std::min(memory, n);
      user.set = buffers * n + passing;
      channel.set = memory + buffers * passing;
      user.near = kin == Kinship::Same && !in_caches() ? user.set : n + passing + static_cast<double>(in_caches() ? Chan::spec.header : 0);
      channel.near = kin == Kinship::Same && !in_caches() ? channel.set : memory;
      if constexpr (kShared) channel.held = CopySide::Dirty;
    }
    return in ? end.host.copy_cost(bytes, user, channel, kin) : end.host.copy_cost(bytes, channel, user, kin);
  }
  /// Its memory lies in the caches of the cores that use it.
  [[nodiscard]] bool in_caches() const {
    if constexpr (std::is_same_v<Spec, RingSpec>) return spec.cores;
    return false;
  }

 private:
  static constexpr bool kShared = std::is_same_v<Spec, RingSpec> || std::is_same_v<Spec, PoolSpec>;
  [[nodiscard]] double both_buffers() const {
    if constexpr (kShared) return spec.ws_message;
    return 2;
  }
  /// One processor fills a ring and empties it in turns, so that its slots stay in the cache.
  [[nodiscard]] bool by_itself(Kinship kin) const { return std::is_same_v<Spec, RingSpec> && kin == Kinship::Same && !in_caches(); }
};

State::Call describe_datagram(const Callback& c, State& s);

}  // namespace retrompi
