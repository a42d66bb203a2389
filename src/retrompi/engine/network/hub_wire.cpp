// A hub: one half-duplex medium for all stations (one on each rail), with the rule by which they get it. It carries one frame at a time; each
// station offers the first of its frames, and the others wait behind it.
//
// First come, first served: the next frame is chosen when the one before arrives, which is a latency after the medium has become free. By then all
// that could have come before it is known, so a frame is one event, waiting or not. A frame that is planned for a later time goes back
// when an earlier one comes. Where something may fail, the next frame is chosen when the one before has passed: what has begun when it is cut
// off has had the medium.
//
// CSMA/CD (IEEE 802.3, 1-persistent): stations that begin before they can hear each other collide; what happens is decided a latency after the
// first has begun, when the others have heard it.
#include <deque>

#include "host/charge.hpp"
#include "network/native_wire.hpp"

namespace retrompi {

namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr int kAttempts = 16;             // collisions of one frame; then it is given up
constexpr int kBackoff = 10;              // doublings of the range of delays
constexpr double kSlotBytes = 512.0 / 8;  // a slot is 512 bit times

/// A station's frame that wants the medium from `head` on.
struct Offer {
  Ps head;
  uint64_t order;
  uint32_t slot;
  bool operator<(const Offer& o) const { return head != o.head ? head > o.head : order > o.order; }  // a heap: the first in front
};
struct Station {
  std::deque<uint32_t> line;  // its frames by the time from which they can be sent
  bool offered = false;       // the first is
  Ps free = 0;                // when its last one had passed
  CriticalPath::Point point = 0;
};
struct MediumState {
  std::vector<Offer> offers;  // a heap
  Offer current{0, 0, kNone};
  Ps start = 0, end = 0;          // of the current one
  Ps free = 0;                    // when the last one had passed
  CriticalPath::Point point = 0;  // at `free`, if a frame had passed then
  CriticalPath::Point head = 0;   // when the last that has passed came
  uint32_t gen = 0;               // of the decision that is due
  uint32_t passing = 0;           // of the end of `current` that is due
  Ps decision = kNever;
};

struct HubParts {
  HubParts(const std::vector<size_t>& positions, const LinkSpec& link, const Routes& routes, Ps slot_time, uint64_t seed)
      : collides_(link.access == Access::CsmaCd),
        rate_(link.bandwidth / kPsPerSecond),
        latency_(routes.latency_ps({0})),
        slot_time_(slot_time),
        rng_(seed ^ 0x636f6c6c696465ULL),
        stations_(positions.size()),
        media_(routes.links()) {}
  const bool collides_;
  const double rate_, latency_;  // bytes per picosecond; picoseconds
  const Ps slot_time_;
  Rng rng_;
  std::vector<Station> stations_;  // by card
  std::vector<MediumState> media_;
  std::vector<std::vector<uint32_t>> ways_;
  std::vector<int> collisions_;             // of each frame, by slot
  std::vector<std::pair<Ps, Ps>> carried_;  // of each frame: from when to when it has the medium
  int64_t dropped_ = 0;
};

class HubWire final : public RoutedWire, HubParts {
 public:
  HubWire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link, uint64_t seed)
      : RoutedWire(loop, anatomy, positions, link), HubParts(positions, link, routes_, whole(kSlotBytes / (link.bandwidth / kPsPerSecond)), seed) {}
  [[nodiscard]] bool overtakes() const override { return false; }
  [[nodiscard]] int64_t dropped() const override { return dropped_; }
  void state(State& s) override {
    // Without collisions nothing is drawn and no decision is due.
    const auto& [collides_, rate_, latency_, slot_time_, rng_, stations_, media_, ways_, collisions_, carried_, dropped_] =
        static_cast<const HubParts&>(*this);
    if (collides_) return s.refuse();
    put_under_way(s);
    for (const MediumState& m : media_) {
      const auto& [offers, current, start, end, free, point, head, gen, passing, decision] = m;
      s.put_busy_until(free);
      s.put(current.slot != kNone);
      if (current.slot != kNone) {
        for (const Ps t : {current.head, start, end}) s.put_time(t);
        put_flow(s, current.slot);
      }
      std::vector<Offer> in_order = offers;
      std::sort(in_order.begin(), in_order.end());
      s.put(in_order.size());
      for (const Offer& o : in_order) {
        s.put_time(o.head);
        put_flow(s, o.slot);
      }
    }
    for (const Station& each : stations_) {
      const auto& [line, offered, free, point] = each;
      s.put_busy_until(free);
      s.put(offered);
      s.put(line.size());
      for (const uint32_t slot : line) put_flow(s, slot);
    }
  }

 private:
  void add_route(size_t /*from*/, const std::vector<uint32_t>& links) override { ways_.push_back(links); }
  [[nodiscard]] const std::vector<uint32_t>& links_of(uint32_t route) const override { return ways_[route]; }
  [[nodiscard]] uint32_t medium_of(uint32_t slot) const { return static_cast<uint32_t>(routes_.rail(static_cast<size_t>(flows_[slot].from))); }

  void enter(uint32_t slot, int from, int /*to*/) override {
    if (collisions_.size() <= slot) {
      collisions_.resize(flows_.size());
      carried_.resize(flows_.size());
    }
    collisions_[slot] = 0;
    Station& s = stations_[static_cast<size_t>(from)];
    auto at = s.line.end();
    while (at != s.line.begin() && flows_[*(at - 1)].asked > flows_[slot].asked) --at;
    if (s.offered && at == s.line.begin()) retract(s.line.front());
    s.line.insert(at, slot);
    offer(s);
    arbitrate(medium_of(slot));
  }
  /// A station's first frame wants the medium.
  void offer(Station& s) {
    if (s.offered || s.line.empty()) return;
    s.offered = true;
    const uint32_t slot = s.line.front();
    want(slot, std::max(flows_[slot].asked, s.free));
  }
  void want(uint32_t slot, Ps head) {
    MediumState& m = media_[medium_of(slot)];
    m.offers.push_back({head, flows_[slot].order, slot});
    std::push_heap(m.offers.begin(), m.offers.end());
  }
  /// Takes back what a station has offered.
  void retract(uint32_t slot) {
    MediumState& m = media_[medium_of(slot)];
    stations_[static_cast<size_t>(flows_[slot].from)].offered = false;
    if (m.current.slot == slot) {
      ++flows_[slot].gen;
      ++m.passing;
      m.current.slot = kNone;
      if (m.start < loop_.now) m.free = loop_.now;
      return;
    }
    std::erase_if(m.offers, [slot](const Offer& o) { return o.slot == slot; });
    std::make_heap(m.offers.begin(), m.offers.end());
  }
  Offer first_offer(MediumState& m) {
    const Offer o = m.offers.front();
    std::pop_heap(m.offers.begin(), m.offers.end());
    m.offers.pop_back();
    return o;
  }
  void arbitrate(uint32_t medium) {
    MediumState& m = media_[medium];
    if (m.offers.empty()) return;
    if (collides_) return decide_later(m, medium);
    if (m.current.slot != kNone) {
      if (!(m.current < m.offers.front())) return;  // `<`: after
      ++flows_[m.current.slot].gen;
      ++m.passing;
      m.offers.push_back(m.current);
      std::push_heap(m.offers.begin(), m.offers.end());
    }
    const Offer next = first_offer(m);
    transmit(m, next, std::max(next.head, m.free));
  }
  void transmit(MediumState& m, const Offer& o, Ps start) {
    const Flow& f = flows_[o.slot];
    m.current = o;
    m.start = start;
    m.end = start + passing_of(f.bytes).ps;
    carried_[o.slot] = {m.start, m.end};
    const uint32_t medium = medium_of(o.slot);
    if (passes_by_itself()) agenda_.push({std::max(m.end, loop_.now), f.order, medium + static_cast<uint32_t>(media_.size()), ++m.passing});
    tell(o.slot, start + whole(f.bytes / rate_ + latency_));
    fetch(f);
  }
  /// A frame may have waited in its line for long: what its arrival needs comes into the cache before.
  void fetch(const Flow& f) const {
    f.delivery.fetch();
    const auto& line = stations_[static_cast<size_t>(f.from)].line;
    if (line.size() > 1) fetch_lines(&flows_[line[1]], 2);
  }
  /// Whether the end of a frame is an event of its own, before its arrival.
  [[nodiscard]] bool passes_by_itself() const { return failing_; }
  /// How long so many bytes take the medium.
  [[nodiscard]] Charge passing_of(double bytes) const {
    Charge c = std::max<Ps>(1, whole(bytes / rate_));
    if (anatomy_.critical.on) [[unlikely]]
      c.bill = anatomy_.critical.bill({{this, link_number::bandwidth.name, -bytes / (rate_ * rate_ * kPsPerSecond * kPsPerSecond)}});
    return c;
  }
  [[nodiscard]] CriticalPath::Point arrived(uint32_t slot, Ps t) override {
    MediumState& m = media_[medium_of(slot)];
    const Flow& f = flows_[slot];
    CriticalPath& path = anatomy_.critical;
    const CriticalPath::Who who = path.place("wire");
    Station& station = stations_[static_cast<size_t>(f.from)];
    path.order(m.head, path.time(station.point) > path.time(f.point) ? station.point : f.point);
    const auto [start, end] = carried_[slot];
    const bool queued = start > f.asked && path.time(m.point) == start;
    const CriticalPath::Point mine = queued ? path.join(m.point, f.point) : path.join(f.point, m.point);
    const Charge passing = passing_of(f.bytes);
    m.point = station.point = path.extend(path.extend(mine, start, Stage::Queueing, who), start + passing.ps, Stage::Wire, who, passing.bill);
    // The latency is rounded together with the bytes.
    return path.extend(m.point, std::max(t, end), Stage::Latency, who, path.bill({{this, link_number::latency.name, 1}}));
  }
  void leave(uint32_t slot) override {
    contended_ += carried_[slot].first > flows_[slot].asked;
    if (!passes_by_itself()) pass(medium_of(slot));
  }
  /// The current frame has passed.
  void pass(uint32_t medium) {
    MediumState& m = media_[medium];
    const uint32_t slot = m.current.slot;
    m.current.slot = kNone;
    m.free = m.end;
    passed(slot, m.end);
    arbitrate(medium);
  }
  /// A station's first frame is gone; its next one is offered.
  void passed(uint32_t slot, Ps end) {
    Station& s = stations_[static_cast<size_t>(flows_[slot].from)];
    s.free = end;
    s.offered = false;
    s.line.pop_front();
    offer(s);
  }

  // ---- collisions
  void decide_later(MediumState& m, uint32_t medium) {
    if (m.current.slot != kNone) return;
    const Ps at = std::max(m.offers.front().head, m.free) + whole(latency_);
    if (m.decision == at) return;
    m.decision = at;
    agenda_.push({at, medium, medium, ++m.gen});
  }
  void change(const Agenda::Item& i) override {
    if (i.what >= media_.size()) {
      const uint32_t medium = i.what - static_cast<uint32_t>(media_.size());
      if (i.gen != media_[medium].passing) return;
      loop_.now = i.t;
      return pass(medium);
    }
    MediumState& m = media_[i.what];
    if (i.gen != m.gen || m.decision == kNever) return;
    m.decision = kNever;
    loop_.now = i.t;
    if (m.offers.empty() || m.current.slot != kNone) return;
    const Ps start = std::max(m.offers.front().head, m.free);
    const Ps heard = start + whole(latency_);
    if (heard != i.t) return decide_later(m, i.what);
    std::vector<Offer> begun;
    while (!m.offers.empty() && std::max(m.offers.front().head, m.free) <= heard) begun.push_back(first_offer(m));
    if (begun.size() == 1) return transmit(m, begun.front(), start);
    m.free = start + slot_time_;
    for (const Offer& o : begun) collided(o.slot, m.free);
    arbitrate(i.what);
  }
  void collided(uint32_t slot, Ps end) {
    contended_ += collisions_[slot] == 0;
    if (anatomy_.critical.on) anatomy_.critical.unfollowed("collisions");
    if (++collisions_[slot] >= kAttempts) {
      ++dropped_;
      passed(slot, end);
      return lose(slot);
    }
    const uint64_t range = 1ULL << std::min<int>(collisions_[slot], kBackoff);
    want(slot, end + slot_time_ * static_cast<int64_t>(rng_.next() % range));
  }

  void cut_off(const std::vector<uint32_t>& slots) override {
    for (const uint32_t slot : slots) {
      Station& s = stations_[static_cast<size_t>(flows_[slot].from)];
      if (s.offered && s.line.front() == slot) {
        s.free = std::max(s.free, loop_.now);
        retract(slot);
      }
      std::erase(s.line, slot);
      lose(slot);
    }
    for (Station& s : stations_) offer(s);
    for (uint32_t medium = 0; medium < media_.size(); ++medium) arbitrate(medium);
  }
};

}  // namespace

std::unique_ptr<Wire> hub_wire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link, uint64_t seed) {
  return std::make_unique<HubWire>(loop, anatomy, positions, link, seed);
}

}  // namespace retrompi
