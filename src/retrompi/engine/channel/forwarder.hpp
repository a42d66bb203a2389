// Processes that only pass packets on: proxies and daemons.
#pragma once
#include <deque>

#include "channel/channel_map.hpp"
#include "channel/proc.hpp"

namespace retrompi {

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

}  // namespace retrompi
