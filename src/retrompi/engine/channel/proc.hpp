// Processes (ranks, proxies, daemons), the packets they pass and the channels between them.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "channel/channel_map.hpp"
#include "channel/curve_law.hpp"
#include "generated/specs.hpp"
#include "host/host.hpp"
#include "mpi/matching.hpp"
#include "network/net.hpp"
#include "network/wire.hpp"
#include "record/profile.hpp"
#include "record/timeline.hpp"
#include "trace/trace.hpp"

namespace retrompi {

class Chan;
class Proc;
struct Request;

/// One MPI message in flight.
struct Message {
  int32_t src = 0, dst = 0, tag = 0, ctx = 0;
  int64_t bytes = 0;
  bool rendezvous = false, sync = false;
  bool packed = false, unpacked = false;  // it passes through another buffer of its length at the sender, at the receiver
  bool direct = false;                    // the receiver copies out of the sender's buffer
  bool envelope_known = false;            // the receiver knows the envelope
  Request* sreq = nullptr;                // the sender's request, until it is complete
  Request* rreq = nullptr;                // the receive that matched
  int64_t asked = 0;                      // payload that its request carries (rendezvous)
  int64_t arrived = 0;                    // payload that has reached the receiving process
  int64_t unexpected_bytes = 0;           // of these, bytes in the library's memory waiting for a receive
  bool ack_sent = false, acked = false;   // a synchronous send's match: acknowledged by the receiver, seen by the sender
  bool send_complete = false;             // the sender has nothing more to do with it
  bool sent_all = false, delivered = false;
  bool lost = false;        // a part of it is lost and is not retransmitted
  uint32_t line = 0;        // trace line of the call that sent it
  Ps at = 0;                // time of that call
  Ps unexpected_since = 0;  // since when the library has buffered it for a receive
  int64_t number = -1;      // in the timeline
  struct PoolPacket {
    Chan* chan;
    int32_t buffer;
    int32_t transit;  // in the message path
    int64_t bytes;
  };
  std::vector<PoolPacket> in_pool;  // packets left in the shared pool because no receive is posted
  Queued<Message> queued;           // while no receive has matched it
  [[nodiscard]] int32_t envelope_source() const { return src; }
};

struct Packet {
  enum Kind : uint8_t { Data, Rts, Cts, SyncAck, Done };
  Message* m = nullptr;
  int64_t bytes = 0;         // payload
  int32_t from = 0, to = 0;  // ranks
  Kind kind = Data;
  bool first = false, last = false;
  bool held = false;     // left in the pool: its bytes have not arrived yet
  int32_t transit = -1;  // through the channel that it is in, in the message path
};

/// The curves between the ranks of one job: the classes of the two ranks determine which one a pair follows.
struct CurveSet {
  std::vector<size_t> classes;           // rank -> class
  std::vector<std::vector<int32_t>> of;  // class of the sender, class of the receiver -> table, -1: none
  std::vector<CurveTable> tables;
  bool rank_ports = false;  // a port for every rank (LogGP's processors); else one for every host
};

/// One-sided operations between two ranks, as the model states them.
struct RmaSpec : OneSidedSpec {
  bool there = false;  // whether the runtime has them
};

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

void put_message(State& s, const Message* m);
void put_request(State& s, const Request* r);
void put_packet(State& s, const Packet& p);

struct Token {
  Chan* chan = nullptr;
  uint8_t kind = 0;
  uint32_t seq = 0;
  CriticalPath::Point point = 0;  // when it came
};

/// Counters of a job: those declared in spec/result.py, and its actions.
struct Counters : CounterFields {
  std::array<int64_t, OP_COUNT> done{};  // actions of the trace carried out, by Op
  /// What was counted from `a` to `b` happens `n` times more.
  void repeat(const Counters& a, const Counters& b, int64_t n) {
    each([&](const char*, auto field) { this->*field += n * (b.*field - a.*field); });
    for (size_t op = 0; op < done.size(); ++op) done[op] += n * (b.done[op] - a.done[op]);
  }
};

/// State shared by all parts of one simulation.
struct World {
  Loop loop;
  Anatomy anatomy;
  std::deque<std::unique_ptr<Host>> hosts;
  std::unique_ptr<Wire> wire;
  std::unique_ptr<Net> net;
  std::deque<std::unique_ptr<Proc>> procs;  // of all jobs
  int32_t channels = 0;                     // created so far
};

/// What the processes of one job have in common, ranks and others.
struct Common {
  uint32_t number = 1;  // of the job, as the loop's owner
  Counters count;
  Rng rng{1};
  Timeline* timeline = nullptr;
  CallProfile* profile = nullptr;
  int64_t unexpected_limit = 0;  // bytes of library memory for unexpected messages; 0: only the machine's
  double compute_scale = 1;      // of every amount of computation in the trace
  double memory_share = 0;       // share of a computation spent on the host's shared memory bus
  std::vector<Lock> pool_locks;  // host -> of the shared memory that runtimes guard by one lock
  void put_common(State& s) const {
    // What is counted and recorded has no effect; the rest does not change.
    const auto& [number, count, rng, timeline, profile, unexpected_limit, compute_scale, memory_share, pool_locks] = *this;
    s.put(rng.state());
    for (const Lock& lock : pool_locks)
      if (lock.held) s.refuse();
  }
};

class Proc {
 public:
  Proc(World& w, Common& job, Host& h, const std::string& name, size_t host_index)
      : world(w), common(job), host(h), thread(h.add_thread(name, job.number)), host_index(host_index) {}
  virtual ~Proc() = default;
  Proc(const Proc&) = delete;
  Proc& operator=(const Proc&) = delete;

  World& world;
  Common& common;
  Host& host;
  Thread& thread;
  size_t host_index;
  int core = 0;                                       // where it runs, as far as caches are concerned
  WaitPolicy idle;                                    // how it waits for packets
  int64_t pinned_to_send = 0, pinned_to_receive = 0;  // memory that the card knows, where it is remembered
  Fifo<Token> inbox;

  /// Takes one token from the inbox and handles it.
  Task absorb();
  /// Its future, in words, where it waits for something to do.
  virtual void state(State& s) const { s.refuse(); }
  /// Sends a packet over a channel, after those already queued for it.
  Task post(Chan& c, Packet p);
  Task write(Chan& c, Packet p);
  Task write_rest(Chan& c, Packet p, Task push);
  void pushed(Chan& c, const Packet& p);
  [[nodiscard]] int32_t begin_transit(const Chan& c, const Packet& p);
  /// Called with a packet that has reached this process, unless `take` has it.
  virtual Task handle(Packet p) = 0;
  /// A process that only stores the packet does so here and returns true.
  virtual bool take(const Packet&) { return false; }
  /// Called before a packet is copied out of shared memory: true leaves it there.
  virtual bool leave_in_pool(const Packet&) { return false; }
  /// The last byte of a message has left the sending process.
  virtual void sent(Message&) {}
  void arrive(Token t, bool immediate, bool network = false) {
    if (thread.dead()) return;  // a dead process takes nothing
    t.point = world.loop.cause;
    inbox.push_back(t);
    thread.signal(immediate, network);
  }
  /// Whether its copies use the message's own memory; else the buffer of a packet, which it uses again for the next.
  [[nodiscard]] virtual bool holds_messages() const { return true; }
  /// What has reached it and is not taken in.
  void put_inbox(State& s) const {
    // The thread is put by its host; where and how it waits does not change.
    const auto& [world, common, host, thread, host_index, core, idle, pinned_to_send, pinned_to_receive, inbox] = *this;
    s.put(inbox.size());
    for (const Token& t : inbox) {
      const auto& [chan, kind, seq, point] = t;
      s.put(static_cast<const void*>(chan));
      s.put(kind);
      if (seq != 0) s.refuse();
    }
    s.put(pinned_to_send);
    s.put(pinned_to_receive);
  }
  /// Uses the processor for a copy, and waits for the bus where others use it too.
  Task copy(CopyCost c, int other_core) {
    const Ps passed = host.claim_bus(core, other_core, c);
    co_await thread.run(c);
    if (world.anatomy.critical.on && passed > world.loop.now) world.anatomy.critical.unfollowed("copies that wait for the bus");
    co_await thread.run(passed - world.loop.now, Stage::Queueing);
  }

  /// Waits until `cond` holds; takes in packets meanwhile if `progress`.
  template <class F>
  Task until(F cond, WaitPolicy policy, bool progress) {
    const SiteOf here([&](State& s) {
      s.put(policy.what);
      s.put(progress);
    });
    co_await Task::At{here};
    host.acted();
    while (!cond()) {
      if (progress && !inbox.empty())
        co_await absorb();
      else
        co_await thread.wait(policy);
    }
  }
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
  [[nodiscard]] bool full() const { return busy && from.thread.waits_for(WaitFor::Room) && no_room(); }
  [[nodiscard]] virtual bool no_room() const { return false; }
  /// Its future, in words.
  virtual void state(State& s) { s.refuse(); }
  /// What the channel holds of a message of so many bytes at one end.
  [[nodiscard]] virtual double holds(int64_t, bool) const { return 0; }
  /// Largest payload of a packet of a message.
  [[nodiscard]] virtual int64_t packet_of(const Message&) const { return spec.packet; }
  /// Payload of a message's first packet, where its packets carry up to `packet`.
  [[nodiscard]] virtual int64_t first_of(const Message&, int64_t packet) const { return packet; }

  /// Work of the library at one end: a field of the specification.
  Thread::Await charged(Proc& at, Work cost, const char* field) const {
    const Ps ps = at.host.time(cost);
    if (world.anatomy.critical.on) [[unlikely]]
      world.anatomy.critical.owe({{&spec, field, 1 / at.host.spec.speed()}});
    return at.thread.run(ps, Stage::Library);
  }
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

struct ForwarderParts {
  ChannelMap next;  // by destination rank
  Work cost;        // routing a packet
  std::deque<Packet> pending;
};

/// A proxy or daemon: passes packets on to the next hop.
class Forwarder : public Proc, public ForwarderParts {
 public:
  using Proc::Proc;
  Task main();
  Task handle(Packet p) override {
    take(p);
    co_return;
  }
  [[nodiscard]] bool holds_messages() const override { return false; }
  bool take(const Packet& p) override {
    pending.push_back(p);
    if (p.first && p.m->number >= 0 && p.kind == Packet::Data) common.timeline->hop_in(p.m->number, thread.log(), world.loop.now);
    return true;
  }
  void state(State& s) const override;
};

class SharedPool;
class SlotRing;
/// The owner of a ring's slots (a hop, a process, a pair of processes), and the role that uses them.
using RingKey = std::tuple<const MediumSpec*, const Proc*, const Proc*, std::string>;
/// What the channels of one job share: the pool of a host, the slots of a ring, the ports of a curve.
struct SharedParts {
  std::map<size_t, std::shared_ptr<SharedPool>> pools;
  std::map<RingKey, std::shared_ptr<SlotRing>> rings;
  std::map<const MediumSpec*, std::deque<CurvePort>> ports;  // the wire's, then by host or rank
};
State::Call describe_datagram(const Callback& c, State& s);
void join_streams(Chan& a, Chan& b);  // the two directions of one connection
void join_curves(Chan& a, Chan& b);

}  // namespace retrompi
