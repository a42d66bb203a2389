// Processes (ranks, proxies, daemons), which exchange packets over channels.
#pragma once
#include <string>

#include "channel/abort.hpp"
#include "channel/message.hpp"
#include "network/world.hpp"

namespace retrompi {

class Chan;

/// Tells a process that a channel has something for it.
struct Token {
  Chan* chan = nullptr;
  uint8_t kind = 0;
  uint32_t seq = 0;
  CriticalPath::Point point = 0;  // when it came
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

  /// Something has come for it and will be handled soon: what it will use comes into the cache.
  virtual void fetch() const {}
  /// The number of a rank; -1: it is another process.
  [[nodiscard]] virtual int32_t rank() const { return -1; }
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

}  // namespace retrompi
