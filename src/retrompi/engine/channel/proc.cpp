#include "channel/proc.hpp"

namespace retrompi {

Task Proc::absorb() {
  const Token t = inbox.front();
  inbox.pop_front();
  return t.chan->pull(t);
}

Task Proc::post(Chan& c, Packet p) {
  if (c.busy) {  // asked for while half a packet is written: goes out right after it
    c.deferred.push_back(p);
    return {};
  }
  return write(c, p);
}

/// A packet sets out on a channel; with a journey it has a number there from now on.
int32_t Proc::asks(const Chan& c, const Packet& p) {
  Journey& j = world.anatomy.journey;
  if (!j.on) return -1;
  const Message& m = *p.m;
  return j.ask({c.number, c.from.thread.log(), c.to.thread.log(), p.from, p.to, p.kind, p.first, p.last, m.at, m.bytes, p.bytes, world.loop.now});
}

Task Proc::write(Chan& c, Packet p) {
  c.busy = true;
  p.passage = asks(c, p);
  co_await c.push(p);
  if (!c.tells_sent()) world.anatomy.journey.laid(p.passage, world.loop.now);
  if (p.last && p.kind == Packet::Data && !c.tells_sent()) sent(*p.m);
  while (!c.deferred.empty()) {
    Packet q = c.deferred.front();
    c.deferred.pop_front();
    q.passage = asks(c, q);
    co_await c.push(q);
    if (!c.tells_sent()) world.anatomy.journey.laid(q.passage, world.loop.now);
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
      if (p.last && p.m->number >= 0 && p.kind == Packet::Data) common.timeline->hop_out(p.m->number, thread.log(), world.loop.now);
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

Net::Net(World& w, int64_t overhead, int64_t mtu, Rails rails)
    : w_(w),
      overhead_(overhead),
      mtu_(mtu),
      rails_(std::move(rails)),
      tx_(w.hosts.size() * rails_.n),
      rx_(w.hosts.size() * rails_.n),
      bus_(w.hosts.size()) {
  w.wire->lost = &Net::on_lost;
}

Net::Flight& Net::flight(Common& job) {
  ++job.count.frames;
  w_.loop.hold(job.number);
  if (free_.empty()) {
    all_.push_back(std::make_unique<Flight>());
    return *all_.back();
  }
  Flight* f = free_.back();
  free_.pop_back();
  return *f;
}

Ps Net::background(bool out, size_t host, size_t rail, int64_t bytes) {
  const HostSpec& h = w_.hosts[host]->spec;
  Bus& bus = (out ? tx_ : rx_)[card(host, rail)];
  bus.free_at = std::max(w_.loop.now, bus.free_at) + to_ps(static_cast<double>(bytes) / h.nic_rate);
  return bus.free_at + h.nic_latency;
}

void Net::frame(Common& job, size_t from, size_t to, int64_t payload, Loop::Fn done, void* obj, uint64_t arg, Loop::Fn lost) {
  Flight& f = flight(job);
  f = {this, from, to, payload + overhead_, done, obj, arg, w_.anatomy.current, &job, lost, rail_of(from, to)};
  if (rails_.stripe) {
    f.number = orders_[{from, to}].out++;
    f.rail = static_cast<uint32_t>(static_cast<size_t>(f.number) % rails_.n);
  }
  const Ps out = cross(tx_[card(from, f.rail)], from, f.bytes, f);
  const Cause before = w_.anatomy.current;
  w_.anatomy.current = f.by;
  const int a = static_cast<int>(card(from, f.rail)), b = static_cast<int>(card(to, f.rail));
  if (!w_.wire->send_at(out, a, b, f.bytes, &Net::on_carried, &f, 0)) w_.loop.at(out, &Net::on_sent, &f);
  w_.anatomy.current = before;
}

Ps Net::burst(Common& job, size_t from, size_t to, int64_t bytes, double rate, int64_t piece, Loop::Fn done, void* obj, uint64_t arg, Loop::Fn lost) {
  Flight& f = flight(job);
  f = {this, from, to, bytes, done, obj, arg, w_.anatomy.current, &job, lost, rail_of(from, to)};
  if (!rails_.stripe || bytes <= mtu_) return leave(f, rate, piece);
  // What the sender's memory gives, if less than its cards, is divided among them.
  f.parts = static_cast<uint32_t>(rails_.n);
  --job.count.frames;  // the parts count
  Ps left = 0;
  for (size_t rail = 0; rail < rails_.n; ++rail) {
    Flight& part = flight(job);
    const auto n = static_cast<int64_t>(rails_.n);
    part = f;
    part.whole = &f;
    part.rail = static_cast<uint32_t>(rail);
    part.bytes = bytes / n + (static_cast<int64_t>(rail) < bytes % n ? 1 : 0);
    left = std::max(left, leave(part, rate / static_cast<double>(n), piece));
  }
  return left;
}

/// A burst, or a part of one, leaves its host's memory.
Ps Net::leave(Flight& f, double rate, int64_t piece) {
  const HostSpec& h = w_.hosts[f.from]->spec;
  f.piece = std::min(piece, f.bytes);
  if (!(rate > 0)) rate = h.nic_rate;
  Bus &tx = tx_[card(f.from, f.rail)], &bus = bus_[f.from];
  const Ps now = w_.loop.now, start = std::max({now, tx.free_at, bus.free_at});
  bus.free_at = start + to_ps(static_cast<double>(f.bytes) / h.bus_rate);
  f.left = std::max(start + to_ps(static_cast<double>(f.bytes) / rate), bus.free_at);
  tx.free_at = f.left;
  const Ps begin = start + to_ps(static_cast<double>(f.piece) / rate) + h.nic_latency;
  if (w_.anatomy.on) f.by = w_.anatomy.of(w_.anatomy.record(h.name.c_str(), Stage::Nic, now, start, begin));
  w_.loop.at(begin, &Net::on_burst, &f);
  return f.left;
}

void Net::put_on_wire(Flight& f, int64_t bytes, Loop::Fn done) {
  w_.anatomy.current = f.by;
  w_.wire->send(static_cast<int>(card(f.from, f.rail)), static_cast<int>(card(f.to, f.rail)), bytes, done, &f, 0);
}

void Net::on_burst(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  const int64_t packets = std::max<int64_t>(1, (f.bytes + f.net->mtu_ - 1) / f.net->mtu_);
  f.net->put_on_wire(f, f.bytes + packets * f.net->overhead_, &Net::on_burst_carried);
}

void Net::on_burst_carried(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  Net& n = *f.net;
  f.by = n.w_.anatomy.current;
  n.w_.loop.owner = f.job->number;
  const HostSpec& h = n.w_.hosts[f.to]->spec;
  const double bytes = static_cast<double>(f.bytes), piece = static_cast<double>(f.piece);
  const Ps now = n.w_.loop.now, through = to_ps(bytes / h.nic_rate);
  // The pieces before the last one have gone into memory while the later ones were on the wire, unless the bus was taken.
  Bus &rx = n.rx_[n.card(f.to, f.rail)], &bus = n.bus_[f.to];
  rx.free_at = std::max(now, std::max(rx.free_at, now - through) + through);
  const Ps share = to_ps(bytes / h.bus_rate);
  bus.free_at = std::max(bus.free_at, now - share) + share;
  const Ps end = std::max({rx.free_at, bus.free_at, f.left}) + to_ps(piece / h.nic_rate) + h.nic_latency;
  if (n.w_.anatomy.on) f.by = n.w_.anatomy.of(n.w_.anatomy.record(h.name.c_str(), Stage::Nic, now, now, end));
  n.w_.loop.at(end, &Net::on_in, p);
}

void Net::on_sent(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  f.net->put_on_wire(f, f.bytes, &Net::on_carried);
}

void Net::on_carried(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  f.by = f.net->w_.anatomy.current;
  f.net->w_.loop.owner = f.job->number;
  f.net->w_.loop.at(f.net->cross(f.net->rx_[f.net->card(f.to, f.rail)], f.to, f.bytes, f), &Net::on_in, p);
}

void Net::on_in(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  f.net->w_.anatomy.current = f.by;
  if (f.number >= 0)
    f.net->in_order(f, false);
  else
    f.net->hand_over(f);
}

void Net::on_lost(void* p, uint64_t) {
  Flight& f = *static_cast<Flight*>(p);
  ++f.job->count.lost;
  f.gone = true;
  if (f.number >= 0)
    f.net->in_order(f, true);
  else
    f.net->hand_over(f);
}

/// The flight is over, well or not: of a burst in parts, when the last of them is.
void Net::hand_over(Flight& f) {
  free_.push_back(&f);
  w_.loop.owner = f.job->number;
  w_.loop.release(f.job->number);
  if (Flight* whole = f.whole) {
    whole->gone |= f.gone;
    if (--whole->parts == 0) hand_over(*whole);
  } else if (const Loop::Fn told = f.gone ? f.lost : f.done) {
    told(f.obj, f.arg);
  }
}

void Net::in_order(Flight& f, bool lost) {
  Order& o = orders_[{f.from, f.to}];
  o.early.emplace(f.number, lost ? nullptr : &f);
  if (lost) hand_over(f);
  for (auto it = o.early.begin(); it != o.early.end() && it->first == o.in; it = o.early.begin()) {
    Flight* next = it->second;
    o.early.erase(it);
    ++o.in;
    if (next) hand_over(*next);
  }
}

}  // namespace retrompi
