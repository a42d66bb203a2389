#include "channel/proc.hpp"

namespace retrompi {

Task Proc::absorb() {
  const Token t = inbox.front();
  inbox.pop_front();
  if (world.anatomy.critical.on) [[unlikely]] {
    world.loop.cause = world.anatomy.critical.join(world.loop.cause, t.point);
    host.acted();
  }
  return t.chan->pull(t);
}

Task Proc::post(Chan& c, Packet p) {
  if (c.busy) {  // requested while a packet is half written: goes out right after it
    c.deferred.push_back(p);
    return {};
  }
  return write(c, p);
}

/// A packet is queued for a channel; where message paths are recorded, it is numbered here.
int32_t Proc::begin_transit(const Chan& c, const Packet& p) {
  MessagePath& j = world.anatomy.path;
  if (!j.on) return -1;
  const Message& m = *p.m;
  return j.add(
      PacketTransit{c.number, c.from.thread.log(), c.to.thread.log(), p.from, p.to, p.kind, p.first, p.last, m.at, m.bytes, p.bytes, world.loop.now});
}

void Proc::pushed(Chan& c, const Packet& p) {
  if (c.tells_sent()) return;
  world.anatomy.path.copy_in_ends(p.transit, world.loop.now);
  if (p.last && p.kind == Packet::Data) sent(*p.m);
}

Task Proc::write(Chan& c, Packet p) {
  c.busy = true;
  p.transit = begin_transit(c, p);
  Task push = c.push(p);
  if (!push.await_ready()) return write_rest(c, p, std::move(push));
  pushed(c, p);
  c.busy = false;  // nothing has been deferred: nobody else has run
  return {};
}

Task Proc::write_rest(Chan& c, Packet p, Task push) {
  const SiteOf here([&](State& s) {
    s.put(static_cast<const void*>(&c));
    put_packet(s, p);
  });
  co_await Task::At{here};
  co_await push;
  pushed(c, p);
  while (!c.deferred.empty()) {
    p = c.deferred.front();
    c.deferred.pop_front();
    p.transit = begin_transit(c, p);
    co_await c.push(p);
    pushed(c, p);
  }
  c.busy = false;
}

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
