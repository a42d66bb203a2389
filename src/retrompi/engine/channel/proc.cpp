#include "channel/proc.hpp"

#include "channel/chan.hpp"

namespace retrompi {

Task Proc::absorb() {
  const Token t = inbox.front();
  inbox.pop_front();
  if (world.anatomy.critical.on) [[unlikely]] {
    host.acted();  // it looks after the packet has come; were that later, it would not find it
    world.loop.cause = world.anatomy.critical.join(world.loop.cause, t.point);
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

}  // namespace retrompi
