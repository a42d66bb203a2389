#include "proc.hpp"

namespace retrompi {

Task Proc::absorb() {
  const Token t = inbox.front();
  inbox.pop_front();
  co_await t.chan->pull(t);
}

Task Proc::post(Chan& c, Packet p) {
  if (c.busy) {  // asked for while half a packet is written: goes out right after it
    c.deferred.push_back(p);
    co_return;
  }
  c.busy = true;
  co_await c.push(p);
  if (p.last && p.kind == Packet::Data && !c.tells_sent()) sent(*p.m);
  while (!c.deferred.empty()) {
    const Packet q = c.deferred.front();
    c.deferred.pop_front();
    co_await c.push(q);
    if (q.last && q.kind == Packet::Data && !c.tells_sent()) sent(*q.m);
  }
  c.busy = false;
}

Task Forwarder::main() {
  while (true) {
    if (!pending_.empty()) {
      Packet p = pending_.front();
      pending_.pop_front();
      co_await thread.run(host.scaled(cost), Stage::Library);
      Chan& c = *next[static_cast<size_t>(p.to)];
      // A packet that is too long for the next hop is split again; one piece at least, for headers alone.
      int64_t left = p.bytes;
      bool first = p.first;
      do {
        Packet q = p;
        q.bytes = p.kind == Packet::Data ? std::min(left, c.spec.packet) : p.bytes;
        left -= q.bytes;
        q.first = first;
        q.last = p.last && left <= 0;
        first = false;
        co_await post(c, q);
      } while (left > 0);
    } else if (!inbox.empty()) {
      co_await absorb();
    } else {
      co_await thread.wait(idle);
    }
  }
}

// ---------------------------------------------------------------- Net

Ps Net::cross(Bus& bus, size_t host, int64_t bytes, Flight& f) {
  const HostSpec& h = w_.hosts[host]->spec;
  const Ps now = w_.loop.now;
  const Ps start = std::max(now, bus.free_at);
  bus.free_at = start + to_ps(static_cast<double>(bytes) / h.nic_rate);
  const Ps end = bus.free_at + h.nic_latency;
  if (w_.anatomy.on) {
    w_.anatomy.current = f.by;
    f.by = w_.anatomy.of(w_.anatomy.record(h.name.c_str(), Stage::Nic, now, start, end));
  }
  return end;
}

void Net::frame(size_t from, size_t to, int64_t payload, Loop::Fn done, void* obj, uint64_t arg) {
  Flight* f = nullptr;
  if (free_.empty()) {
    all_.push_back(std::make_unique<Flight>());
    f = all_.back().get();
  } else {
    f = free_.back();
    free_.pop_back();
  }
  *f = {this, from, to, payload + overhead_, done, obj, arg, w_.anatomy.current};
  ++w_.count.frames;
  w_.loop.at(cross(tx_[from], from, f->bytes, *f), &Net::on_sent, f);
}

void Net::on_sent(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  f.net->w_.anatomy.current = f.by;
  f.net->w_.wire->send(static_cast<int>(f.from), static_cast<int>(f.to), f.bytes, &Net::on_carried, p, 0);
}

void Net::on_carried(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  f.by = f.net->w_.anatomy.current;
  f.net->w_.loop.at(f.net->cross(f.net->rx_[f.to], f.to, f.bytes, f), &Net::on_in, p);
}

void Net::on_in(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  Net& n = *f.net;
  n.w_.anatomy.current = f.by;
  n.free_.push_back(&f);
  const Flight g = f;
  g.done(g.obj, g.arg);
}

}  // namespace retrompi
