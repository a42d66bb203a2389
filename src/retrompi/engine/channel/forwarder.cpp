#include "channel/forwarder.hpp"

#include "channel/chan.hpp"

namespace retrompi {

namespace {
constexpr DeclaredNumber kForwardCost{&ForwarderParts::cost, "forward_cost"};
}

Task Forwarder::main() {
  Packet p;
  int64_t left = 0;
  bool first = false, routes = false;
  const SiteOf here([&](State& s) {
    s.put(routes);
    if (!routes) return;
    put_packet(s, p);
    s.put(left);
    s.put(first);
  });
  co_await Task::At{here};
  while (true) {
    if (!pending.empty()) {
      routes = true;
      p = pending.front();
      pending.pop_front();
      co_await thread.run(host.work_of(static_cast<const ForwarderParts&>(*this), kForwardCost), Stage::Library);
      Chan& c = *next[static_cast<size_t>(p.to)];
      // A packet too long for the next hop is split again; at least one piece, even if it has only headers.
      left = p.bytes;
      first = p.first;
      do {
        Packet q = p;
        q.bytes = p.kind == Packet::Data ? std::min(left, c.spec.packet) : p.bytes;
        left -= q.bytes;
        q.first = first;
        q.last = p.last && left <= 0;
        first = false;
        co_await post(c, q);
      } while (left > 0);
      routes = false;
      if (p.last && p.m->number >= 0 && p.kind == Packet::Data) common.timeline->hop_out(p.m->number, thread.log(), world.loop.now);
    } else if (!inbox.empty()) {
      co_await absorb();
    } else {
      co_await thread.wait(idle);
    }
  }
}

void Forwarder::state(State& s) const {
  put_inbox(s);
  const auto& [next, cost, pending] = static_cast<const ForwarderParts&>(*this);
  s.put(pending.size());
  for (const Packet& p : pending) put_packet(s, p);
  thread.sites(s);
}

}  // namespace retrompi
