// A channel that is its sampled curve: overheads at both ends, a transit time, and ports whose occupation is the only
// contention. No packets, no wire, no operating system: three events a message.
#include <cmath>

#include "rank.hpp"

namespace retrompi {

namespace {

struct Port {
  Ps out = 0, in = 0, any = 0;  // until when the one-way stream out of it, into it, and the sum of both keep it busy
};

class CurveChan final : public Chan {
 public:
  CurveChan(World& w, const HopSpec& s, Proc& a, Proc& b, const CurveTable& t, std::shared_ptr<Port> pa, std::shared_ptr<Port> pb,
            std::shared_ptr<Port> wire)
      : Chan(w, s, a, b), table_(t), pa_(std::move(pa)), pb_(std::move(pb)), wire_(std::move(wire)) {}

  CurveChan* reverse = nullptr;

  Task push(Packet p) override {
    if (p.kind == Packet::Cts) {  // part of its message's sampled time
      hand_over(p, {});
      co_return;
    }
    if (p.kind == Packet::Rts) {
      fly(p, std::max(world.loop.now, last_), {});
      co_return;
    }
    if (!open_) {
      open_ = true;
      if (reverse) reverse->open_ = true;
      co_await from.thread.run(spec.connect, Stage::Syscall);
    }
    if (p.bytes >= table_.limit)
      throw Abort{"a message of " + std::to_string(p.bytes) + " B from rank " + std::to_string(p.from) + ": the mechanism did not carry one of " +
                  std::to_string(table_.limit) + " B: " + table_.reason};
    const CurvePoint at = point(p.bytes);
    co_await from.thread.run(at.send, Stage::Library);
    const Ps now = world.loop.now;
    // What a message does not occupy it neither waits for nor keeps from others: it may itself begin late, for want of a port.
    Ps start = std::max(now, free_);
    if (at.port > 0) start = std::max({start, pa_->out, pb_->in});
    if (at.both > 0) start = std::max({start, pa_->any, pb_->any});
    if (at.wire > 0) start = std::max(start, wire_->any);
    free_ = start + at.gap;
    if (at.port > 0) pa_->out = pb_->in = start + at.port;
    if (at.both > 0) pa_->any = pb_->any = start + at.both;
    if (at.wire > 0) wire_->any = start + at.wire;
    ++world.count.packets;
    const Ps end = std::max(start + at.transit, last_);  // messages of a pair do not overtake
    Cause by = world.anatomy.current;
    if (world.anatomy.on) by = world.anatomy.of(world.anatomy.record("curve", Stage::Wire, now, start, end));
    fly(p, end, by);
  }

  Task pull(Token) override {
    const Packet p = arrived_.front();
    arrived_.pop_front();
    if (p.kind == Packet::Data || p.kind == Packet::SyncAck) co_await to.thread.run(point(p.bytes).recv, Stage::Library);
    co_await to.handle(p);
  }

 private:
  struct Flight {
    Packet p;
    Cause by;
  };
  void fly(const Packet& p, Ps end, Cause by) {
    last_ = end;
    if (end == world.loop.now && flying_.empty()) return hand_over(p, by);
    flying_.push_back({p, by});
    world.loop.at(end, &CurveChan::on_arrival, this);
  }
  /// Messages of a pair tend to be of one size.
  const CurvePoint& point(int64_t size) {
    if (size != known_.size) {
      known_ = table_.at(size);
      known_.size = size;
    }
    return known_;
  }
  static void on_arrival(void* c, uint64_t) {
    auto& s = *static_cast<CurveChan*>(c);
    const Flight f = s.flying_.front();
    s.flying_.pop_front();
    s.hand_over(f.p, f.by);
  }
  void hand_over(const Packet& p, Cause by) {
    arrived_.push_back(p);
    if (by.kind != Cause::None) world.anatomy.current = by;
    to.arrive({this, 0, 0}, true);
  }

  const CurveTable& table_;
  std::shared_ptr<Port> pa_, pb_, wire_;
  std::deque<Flight> flying_;
  std::deque<Packet> arrived_;
  CurvePoint known_{.size = -1};
  Ps free_ = 0, last_ = 0;
  bool open_ = false;
};

}  // namespace

CurvePoint CurveTable::at(int64_t size) const {
  auto hi = std::lower_bound(points.begin(), points.end(), size, [](const CurvePoint& p, int64_t s) { return p.size < s; });
  if (hi != points.end() && hi->size == size) return *hi;
  if (hi == points.begin()) return *hi;
  if (hi == points.end()) {
    if (points.size() == 1) return points.back();
    --hi;  // beyond the last point its rate goes on
  }
  const CurvePoint &a = *(hi - 1), &b = *hi;
  const double x = static_cast<double>(size - a.size) / static_cast<double>(b.size - a.size);
  auto mix = [x](Ps u, Ps v) { return std::max<Ps>(0, u + static_cast<Ps>(std::floor(x * static_cast<double>(v - u) + 0.5))); };
  return {size,
          mix(a.send, b.send),
          mix(a.transit, b.transit),
          mix(a.recv, b.recv),
          mix(a.gap, b.gap),
          mix(a.port, b.port),
          mix(a.both, b.both),
          mix(a.wire, b.wire)};
}

std::unique_ptr<Chan> make_curve_chan(World& w, const HopSpec& s, Proc& a, Proc& b,
                                      std::map<std::pair<const HopSpec*, int64_t>, std::shared_ptr<void>>& ports) {
  const CurveSet& set = *s.curve;
  const auto &x = dynamic_cast<Rank&>(a), &y = dynamic_cast<Rank&>(b);
  auto port = [&](int64_t key) {
    auto& slot = ports[{&s, key}];
    if (!slot) slot = std::make_shared<Port>();
    return std::static_pointer_cast<Port>(slot);
  };
  auto of = [&](const Rank& r) { return port(set.rank_ports ? r.id : static_cast<int64_t>(r.host_index)); };
  const int32_t table = set.of.at(set.classes.at(static_cast<size_t>(x.id))).at(set.classes.at(static_cast<size_t>(y.id)));
  if (table < 0) throw ConfigError("no curve was sampled between rank " + std::to_string(x.id) + " and rank " + std::to_string(y.id));
  return std::make_unique<CurveChan>(w, s, a, b, set.tables.at(static_cast<size_t>(table)), of(x), of(y), port(-1));
}

void join_curves(Chan& a, Chan& b) {
  auto& x = dynamic_cast<CurveChan&>(a);
  x.reverse = &dynamic_cast<CurveChan&>(b);
}

}  // namespace retrompi
