// A channel that follows a sampled curve: overheads at both ends, a transit time, and ports whose occupation is the only
// contention. No packets, no wire, no operating system: three events a message.
#include "channel/chan.hpp"
#include "channel/curve_set.hpp"
#include "channel/shared_parts.hpp"

namespace retrompi {

namespace {

class CurveChan final : public ChanOf<CurveSpec> {
 public:
  CurveChan(World& w, const CurveSpec& s, Proc& a, Proc& b, CurveLane lane) : ChanOf(w, s, a, b), lane_(std::move(lane)) {}

  CurveChan* reverse = nullptr;

  // A coroutine only where the processor's time takes an event.
  Task push(Packet p) override {
    if (p.kind == Packet::Cts) {  // part of its message's sampled time
      hand_over(p, {});
      return {};
    }
    if (p.kind == Packet::Rts) {
      const CriticalPath::Point here = world.loop.cause;
      const Ps end = lane_.arrival(world.loop.now);
      if (world.anatomy.critical.on) world.loop.cause = behind_the_last(here, end);
      fly(p, end, {});
      world.loop.cause = here;
      return {};
    }
    if (!opening_.is_open()) return open_and_push(p);
    opening_.used(world);
    return push_data(p);
  }

  Task pull(Token) override {
    const Packet p = arrived_.front();
    arrived_.pop_front();
    copy_out_begins(p);
    if (p.kind == Packet::Data || p.kind == Packet::SyncAck) {
      const Thread::Await work = to.thread.run(charge(curve_point_number::recv, p.bytes), Stage::Library);
      if (!work.ready) return pulled(p, work);
    }
    copy_out_ends(p);
    return to.handle(p);
  }

  /// Step by step: itself; what flies and whom it reaches; the message, host and thread; what that process waits for.
  void fetch(int step) const {
    switch (step) {
      case 0:
        return fetch_lines(this, 8);
      case 1:
        fetch_lines(flying_.begin(), 2);
        fetch_lines(arrived_.begin(), 1);
        return fetch_lines(&to, 12);
      case 2:
        fetch_lines(flying_.empty() ? nullptr : flying_.front().p.m, 5);
        fetch_lines(&to.host, 7);
        fetch_lines(to.inbox.begin(), 1);
        return to.thread.fetch(0);
      default:
        to.fetch();
        to.thread.fetch(1);
    }
  }

 private:
  struct Flight {
    Packet p;
    Cause by;
  };
  Task open_and_push(Packet p) {
    opening_.open(reverse ? &reverse->opening_ : nullptr, world);
    co_await from.thread.run(spec.connect, Stage::Syscall);
    co_await push_data(p);
  }
  Task push_data(const Packet& p) {
    if (std::string why = lane_.table.refusal(p.bytes, p.from); !why.empty()) throw Abort{std::move(why)};
    const Thread::Await work = from.thread.run(charge(curve_point_number::send, p.bytes), Stage::Library);
    if (!work.ready) return depart_after(p, work);
    depart(p, lane_.point(p.bytes));
    return {};
  }
  Task depart_after(Packet p, Thread::Await work) {
    co_await work;
    depart(p, lane_.point(p.bytes));
  }
  Task pulled(Packet p, Thread::Await work) {
    co_await work;
    copy_out_ends(p);
    co_await to.handle(p);
  }
  void depart(const Packet& p, const CurvePoint& at) {
    const Ps now = world.loop.now;
    std::vector<CurveLane::Held> held;
    if (world.anatomy.critical.on) held = lane_.held(at);
    const auto [start, end] = lane_.depart(now, at);
    ++common.count.packets;
    attribute(NetworkPacket::Curve, p.bytes, false, p.transit);
    const CriticalPath::Point here = world.loop.cause;
    if (world.anatomy.critical.on) world.loop.cause = travel(held, start, end, p.bytes);
    Cause by = world.anatomy.current;
    if (world.anatomy.on) by = world.anatomy.of(world.anatomy.record("curve", Stage::Wire, now, start, end));
    fly(p, end, by);
    world.loop.cause = here;
  }
  /// A number of the curve, for a message of this size.
  [[nodiscard]] Charge charge(const CurveNumber& number, int64_t size) const {
    Charge c = lane_.point(size).*number.member;
    if (world.anatomy.critical.on) [[unlikely]]
      c.bill = world.anatomy.critical.bill({{&lane_.table, number.name, 1, size}});
    return c;
  }
  /// The critical path of a message: it begins with the last of what it waits for, and occupies that itself.
  CriticalPath::Point travel(const std::vector<CurveLane::Held>& held, Ps start, Ps end, int64_t size) {
    CriticalPath& path = world.anatomy.critical;
    const CriticalPath::Who who = path.place("wire");
    const CriticalPath::Point here = world.loop.cause;
    CriticalPath::Point begin = here;
    for (const CurveLane::Held& h : held) {
      path.order(h.record->came, here);
      if (path.time(begin) < start && path.time(h.record->free) == start) begin = h.record->free;
    }
    begin = path.join(path.extend(begin, start, Stage::Queueing, who), here);
    for (const CurveLane::Held& h : held) begin = path.join(begin, h.record->free);
    for (const CurveLane::Held& h : held) {
      const Charge occupied = charge(h.length, size);
      h.record->free = path.extend(begin, start + occupied.ps, Stage::Queueing, who, occupied.bill);
    }
    const Charge transit = charge(curve_point_number::transit, size);
    return behind_the_last(path.extend(begin, start + transit.ps, Stage::Wire, who, transit.bill), end);
  }
  /// The same to its arrival, which is not before that of the message in front.
  CriticalPath::Point behind_the_last(CriticalPath::Point mine, Ps end) {
    CriticalPath& path = world.anatomy.critical;
    CriticalPath::Point& last = lane_.last_point;
    const bool waits = path.time(mine) < end && path.time(last) == end;
    last = waits ? path.join(last, mine) : path.extend(path.join(mine, last), end, Stage::Queueing, path.place("wire"));
    return last;
  }
  void fly(const Packet& p, Ps end, Cause by) {
    if (end == world.loop.now && flying_.empty()) return hand_over(p, by);
    flying_.push_back({p, by});
    world.loop.schedule(end, callback<&CurveChan::on_arrival>(*this));
  }
  void on_arrival() {
    const Flight f = flying_.front();
    flying_.pop_front();
    hand_over(f.p, f.by);
  }
  void hand_over(const Packet& p, Cause by) {
    arrived_.push_back(p);
    if (by.kind != Cause::None) world.anatomy.current = by;
    to.arrive({this, 0, 0}, true);
  }

  CurveLane lane_;
  Fifo<Flight> flying_;
  Fifo<Packet> arrived_;
  Opening opening_;
};

}  // namespace

std::unique_ptr<Chan> make_chan(World& w, SharedParts& shared, const CurveSpec& s, Proc& a, Proc& b) {
  const CurveSet& set = *s.curve;
  std::deque<CurvePort>& ports = shared.ports[&s];
  auto port = [&ports](int64_t key) -> CurvePort& {  // -1: the wire
    const auto i = static_cast<size_t>(key + 1);
    while (ports.size() <= i) ports.emplace_back();
    return ports[i];
  };
  auto of = [&](const Proc& p) -> CurvePort& { return port(set.rank_ports ? p.rank() : static_cast<int64_t>(p.host_index)); };
  const int32_t from = a.rank(), to = b.rank();
  const int32_t table = set.of.at(set.classes.at(static_cast<size_t>(from))).at(set.classes.at(static_cast<size_t>(to)));
  if (table < 0) throw ConfigError("no curve was sampled between rank " + std::to_string(from) + " and rank " + std::to_string(to));
  return std::make_unique<CurveChan>(w, s, a, b, CurveLane(set.tables.at(static_cast<size_t>(table)), of(a), of(b), port(-1)));
}

void join_curves(Chan& a, Chan& b) {
  auto& x = dynamic_cast<CurveChan&>(a);
  x.reverse = &dynamic_cast<CurveChan&>(b);
}

}  // namespace retrompi
