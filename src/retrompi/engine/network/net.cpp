#include "network/net.hpp"

#include "network/world.hpp"

namespace retrompi {

namespace {
/// Bytes at the rate of a card between memory and itself.
AtRate<HostFields> through_card(const HostSpec& h, bool out, int64_t bytes) { return static_cast<double>(bytes) / h.card_rate_number(out); }
}  // namespace

Ps Net::cross(bool out, size_t host, Flight& f) {
  const Host& h = *w_.hosts[host];
  Bus& bus = (out ? tx_ : rx_)[card(host, f.rail)];
  const Charge passing = h.charge(through_card(h.spec, out, f.bytes)), latency = h.charge(host_number::nic_latency);
  const Ps now = w_.loop.now;
  const Ps start = std::max(now, bus.free_at);
  bus.free_at = start + passing.ps;
  const Ps end = bus.free_at + latency.ps;
  if (w_.anatomy.on) {
    w_.anatomy.current = f.by;
    f.by = w_.anatomy.of(w_.anatomy.record(h.spec.name.c_str(), Stage::Nic, now, start, end));
  }
  f.point = w_.anatomy.critical.on ? crossing(out, f, start, passing, latency) : 0;
  return end;
}

CriticalPath::Point Net::crossing(bool out, const Flight& f, Ps start, Charge passing, Charge latency) {
  CriticalPath& path = w_.anatomy.critical;
  const size_t host = out ? f.from : f.to;
  Bus& bus = (out ? tx_ : rx_)[card(host, f.rail)];
  const CriticalPath::Who who = w_.hosts[host]->place();
  CriticalPath::Point from = w_.loop.cause;
  path.order(bus.asked, from);
  if (start == w_.loop.now)
    from = path.join(from, bus.point);
  else if (bus.point != 0 && path.time(bus.point) == start)
    from = path.join(bus.point, from);
  else
    from = path.extend(from, start, Stage::Queueing, who);
  bus.point = path.extend(from, start + passing.ps, Stage::Nic, who, passing.bill);
  return path.extend(bus.point, start + passing.ps + latency.ps, Stage::Nic, who, latency.bill);
}

Net::Net(World& w, int64_t overhead, int64_t mtu, Rails rails)
    : w_(w),
      overhead_(overhead),
      mtu_(mtu),
      rails_(std::move(rails)),
      tx_(w.hosts.size() * rails_.n),
      rx_(w.hosts.size() * rails_.n),
      bus_(w.hosts.size()) {}

Net::Flight& Net::flight(Common& job) {
  ++job.count.frames;
  w_.loop.add_pending(job.number);
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
  bus.free_at = std::max(w_.loop.now, bus.free_at) + to_ps(static_cast<double>(bytes) / h.card_rate(out));
  bus.point = 0;
  return bus.free_at + h.nic_latency;
}

void Net::frame(Common& job, size_t from, size_t to, int64_t payload, const Delivery& d, Ps alone) {
  Flight& f = flight(job);
  f = {this, from, to, payload + overhead_, d, w_.anatomy.current, &job, rail_of(from, to)};
  f.alone = alone;
  if (rails_.stripe || w_.wire->overtakes()) f.number = orders_[{from, to}].out++;
  if (rails_.stripe) f.rail = static_cast<uint32_t>(static_cast<size_t>(f.number) % rails_.n);
  const Ps out = cross(true, from, f);
  const Cause before = w_.anatomy.current;
  const CriticalPath::Point here = w_.loop.cause;
  w_.anatomy.current = f.by;
  w_.loop.cause = f.point;
  const int a = static_cast<int>(card(from, f.rail)), b = static_cast<int>(card(to, f.rail));
  if (!w_.wire->send_at(out, a, b, f.bytes, delivery<&Flight::on_carried, &Flight::on_lost>(f))) w_.loop.schedule(out, callback<&Flight::on_sent>(f));
  w_.anatomy.current = before;
  w_.loop.cause = here;
}

Ps Net::burst(Common& job, size_t from, size_t to, int64_t bytes, double rate, int64_t piece, const Delivery& d, int64_t behind, HowSent how) {
  Flight& f = flight(job);
  f = {this, from, to, bytes + behind, d, w_.anatomy.current, &job, rail_of(from, to)};
  f.behind = behind;
  if (!rails_.stripe || f.bytes <= mtu_) return leave(f, rate, piece, how);
  // If the sender's memory is slower than its cards, its rate is divided among them.
  f.parts = static_cast<uint32_t>(rails_.n);
  --job.count.frames;  // the parts are counted instead
  Ps left = 0;
  for (size_t rail = 0; rail < rails_.n; ++rail) {
    Flight& part = flight(job);
    const auto n = static_cast<int64_t>(rails_.n);
    part = f;
    part.whole = &f;
    part.rail = static_cast<uint32_t>(rail);
    part.bytes = f.bytes / n + (static_cast<int64_t>(rail) < f.bytes % n ? 1 : 0);
    part.behind = 0;
    left = std::max(left, leave(part, rate / static_cast<double>(n), piece, how));
  }
  return left;
}

/// A burst, or a part of one, leaves its host's memory.
Ps Net::leave(Flight& f, double rate, int64_t piece, HowSent how) {
  const HostSpec& h = w_.hosts[f.from]->spec;
  f.piece = std::min(piece, f.bytes);
  if (!(rate > 0)) rate = h.card_rate(true);
  Bus &tx = tx_[card(f.from, f.rail)], &bus = bus_[f.from];
  const Ps now = w_.loop.now, through = to_ps(static_cast<double>(f.bytes) / rate), share = to_ps(static_cast<double>(f.bytes) / h.bus_rate);
  const bool between = how.interleaved && f.bytes <= mtu_;
  const Ps start = between ? now : std::max({now, tx.free_at, bus.free_at});
  bus.free_at = std::max(start, bus.free_at) + share;
  tx.free_at = between ? std::max(now, tx.free_at) + through : std::max(start + through, bus.free_at);
  f.left = (between ? start + std::max(through, share) : tx.free_at) + how.fetch;  // the card does something else until it has the first bytes
  const Ps begin = start + how.fetch + to_ps(static_cast<double>(f.piece) / rate) + h.nic_latency;
  if (w_.anatomy.on) f.by = w_.anatomy.of(w_.anatomy.record(h.name.c_str(), Stage::Nic, now, start, begin));
  const CriticalPath::Point here = w_.loop.cause;
  if (w_.anatomy.critical.on) {
    CriticalPath& path = w_.anatomy.critical;
    const CriticalPath::Who who = w_.hosts[f.from]->place();
    path.unfollowed("transfers by a card as one burst");
    w_.loop.cause = path.extend(path.extend(here, start, Stage::Queueing, who), begin, Stage::Nic, who);
  }
  w_.loop.schedule(begin, callback<&Flight::on_burst>(f));
  w_.loop.cause = here;
  return f.left;
}

void Net::put_on_wire(Flight& f, int64_t bytes, const Delivery& d) {
  w_.anatomy.current = f.by;
  w_.wire->send(static_cast<int>(card(f.from, f.rail)), static_cast<int>(card(f.to, f.rail)), bytes, d);
}

std::string Net::Flight::process_name() const { return net->w_.hosts[from]->name + " > " + net->w_.hosts[to]->name; }

void Net::Flight::on_burst() {
  const int64_t packets = std::max<int64_t>(1, (bytes - behind + net->mtu_ - 1) / net->mtu_) + (behind > 0);
  net->put_on_wire(*this, bytes + packets * net->overhead_, retrompi::delivery<&Flight::on_burst_carried, &Flight::on_lost>(*this));
}

void Net::Flight::on_burst_carried() {
  World& w = net->w_;
  by = w.anatomy.current;
  w.loop.owner = job->number;
  const HostSpec& h = w.hosts[to]->spec;
  const double n = static_cast<double>(bytes), rate = h.card_rate(false);
  const Ps now = w.loop.now, through = to_ps(n / rate);
  // The pieces before the last one have gone into memory while the later ones were on the wire, unless the bus was taken.
  Bus &rx = net->rx_[net->card(to, rail)], &bus = net->bus_[to];
  rx.free_at = std::max(now, std::max(rx.free_at, now - through) + through);
  const Ps share = to_ps(n / h.bus_rate);
  bus.free_at = std::max(bus.free_at, now - share) + share;
  const Ps end = std::max({rx.free_at, bus.free_at, left}) + to_ps(static_cast<double>(piece) / rate) + h.nic_latency;
  if (w.anatomy.on) by = w.anatomy.of(w.anatomy.record(h.name.c_str(), Stage::Nic, now, now, end));
  if (w.anatomy.critical.on) w.loop.cause = w.anatomy.critical.extend(w.loop.cause, end, Stage::Nic, w.hosts[to]->place());
  w.loop.schedule(end, callback<&Flight::on_in>(*this));
}

void Net::Flight::on_sent() { net->put_on_wire(*this, bytes, retrompi::delivery<&Flight::on_carried, &Flight::on_lost>(*this)); }

void Net::Flight::on_carried() {
  World& w = net->w_;
  by = w.anatomy.current;
  w.loop.owner = job->number;
  const Ps end = net->cross(false, to, *this);
  if (alone > 0 && number < 0 && w.hosts[to]->leave_out(end, alone, callback<&Flight::on_in>(*this))) return;
  w.loop.cause = point;
  w.loop.schedule(end, callback<&Flight::on_in>(*this));
}

void Net::Flight::on_in() {
  net->w_.anatomy.current = by;
  if (number >= 0)
    net->in_order(*this, false);
  else
    net->hand_over(*this);
}

void Net::Flight::on_lost() {
  ++job->count.lost;
  gone = true;
  if (number >= 0)
    net->in_order(*this, true);
  else
    net->hand_over(*this);
}

/// The flight is over, well or not: of a burst in parts, when the last of them is.
void Net::hand_over(Flight& f) {
  free_.push_back(&f);
  w_.loop.owner = f.job->number;
  w_.loop.remove_pending(f.job->number);
  if (Flight* whole = f.whole) {
    whole->gone |= f.gone;
    assert(whole->parts > 0);
    if (--whole->parts == 0) hand_over(*whole);
  } else if (const Callback told = f.gone ? f.delivery.on_lost() : f.delivery.on_delivered()) {
    told();
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

void Net::state(State& s) const {
  const auto& [w_, overhead_, mtu_, rails_, tx_, rx_, bus_, orders_, all_, free_] = *this;  // flights are put by the calls that carry them
  for (const auto* buses : {&tx_, &rx_, &bus_})
    for (const Bus& b : *buses) {
      const auto& [free_at, point, asked] = b;
      s.put_busy_until(free_at);
    }
  for (const auto& [between, order] : orders_) {
    const auto& [out, in, early] = order;
    s.put(out - in);
    if (rails_.stripe) s.put(out % static_cast<int64_t>(rails_.n));  // the rail of the next
    if (!early.empty()) s.refuse();
  }
}

State::Call Net::describe(const Callback& c, State& s) {
  if (!calls<&Flight::on_carried, Flight>(c) && !calls<&Flight::on_in, Flight>(c) && !calls<&Flight::on_sent, Flight>(c)) return State::Call::Unknown;
  const Flight& f = *static_cast<const Flight*>(c.object);
  // A burst (`piece`, `behind`, `left`) has other calls, which are not known.
  const auto& [net, from, to, bytes, delivery, by, job, rail, parts, gone, piece, behind, left, alone, number, point, whole] = f;
  if (whole || parts > 0 || gone) s.refuse();
  s.put(c.fn);
  s.put(from);
  s.put(to);
  s.put(bytes);
  s.put(rail);
  s.put(number < 0 ? -1 : number - net->orders_[{from, to}].in);
  s.put(delivery.on_delivered());
  return State::Call::Put;
}

}  // namespace retrompi
