// Frames queue: a link is a FIFO with a rate and a latency, a hub one medium with an access rule (hub_wire.cpp).
//
// When a frame is sent, its whole way is planned: on each link it takes the place behind those whose first byte comes before its own, and one
// item of the agenda tells of its arrival. Most frames come to every link after all that are planned there, and nothing more is done. A frame that
// comes to a link before some that are planned takes its place before them, and these are revoked from there on, with all that were planned
// behind them on the links that follow; each of them goes on when its first byte comes to the link at which it was revoked. By then nothing
// can come before it, so a frame is revoked at most once on each link, and its work is of the order of the links of its way.
#include <cmath>
#include <limits>

#include "host/charge.hpp"
#include "network/native_wire.hpp"

namespace retrompi {

namespace {

/// On the critical path to a frame: when its first and its last byte come to a link.
struct Points {
  CriticalPath::Point head = 0, tail = 0;
};
/// A frame's place on a link: its first and its last byte come at `head` and `tail`; it has the link from `start` to `end`.
struct Place {
  Ps head, tail, start, end;
  uint64_t order;
  uint32_t slot, hop;
  Points points;
  CriticalPath::Point point;  // at `end`
  [[nodiscard]] bool comes_after(Ps t, uint64_t o) const { return head != t ? head > t : order > o; }
};
/// A link's queue. `line` from `first` on: those that have not begun (where something may fail: that have not passed).
struct Port {
  double ps_per_byte = 0;
  Ps latency = 0;
  Ps free = 0;                    // when the last that has left the line has passed
  CriticalPath::Point point = 0;  // then
  CriticalPath::Point head = 0;   // when the first byte of the last came
  std::vector<Place> line;
  size_t first = 0;
  [[nodiscard]] Ps taken(double bytes) const { return std::max<Ps>(1, static_cast<Ps>(bytes * ps_per_byte + 0.5)); }
};
struct Way {
  std::vector<uint32_t> links;
  std::vector<uint32_t> ports;  // the same, behind that of the card where others cross the first link too
  double top = 0;               // rate of the slowest, bytes per picosecond
  double slowest = 0;           // its picoseconds per byte
  double latency = 0;           // the sum, in picoseconds
  Ps latencies = 0;             // the sum of the whole picoseconds of each
};
struct Passage {
  Ps head = 0, tail = 0;  // at the link `planned`, or at the receiver
  Ps alone = 0;           // when its last byte would come if every link were free, in sums of whole picoseconds
  Ps rounding = 0;        // from that sum to the rounded sum, which is what arrives
  uint32_t planned = 0;   // links of its way on which it has a place
  Points points;          // at `head` and `tail`; at the receiver, when it arrives
};

struct QueueParts {
  const double buffer_;
  std::vector<Port> ports_{};  // of the links; from `first_card_` on, of the cards
  size_t first_card_ = SIZE_MAX;
  std::vector<Way> ways_{};
  std::vector<Passage> passages_{};  // by slot
  std::vector<std::pair<uint32_t, size_t>> cuts_{};
  std::vector<uint32_t> revoked_{};
  int64_t dropped_ = 0;
};

class QueueWire final : public RoutedWire, QueueParts {
 public:
  QueueWire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link)
      : RoutedWire(loop, anatomy, positions, link), QueueParts{.buffer_ = link.buffer > 0 ? link.buffer : std::numeric_limits<double>::infinity()} {
    // A card's own frames come to its first link one after another, also where those of others do.
    const bool crossed = routes_.crossed();
    ports_.resize(routes_.links() + (crossed ? routes_.cards() : 0));
    first_card_ = crossed ? routes_.links() : SIZE_MAX;
    for (uint32_t l = 0; l < routes_.links(); ++l) {
      ports_[l].ps_per_byte = kPsPerSecond / routes_.bandwidth(l);
      ports_[l].latency = whole(routes_.latency_ps({l}));
    }
  }
  [[nodiscard]] bool overtakes() const override { return false; }
  [[nodiscard]] int64_t dropped() const override { return dropped_; }
  void ends(CriticalPath::Point at) override {
    for (uint32_t slot = 0; slot < flows_.size(); ++slot)
      if (!flows_[slot].gone) anatomy_.critical.follows(at, passages_[slot].points.tail);
  }
  void state(State& s) override {
    if (std::isfinite(buffer_)) return s.refuse();
    put_under_way(s);
    auto& [buffer_, ports_, first_card_, ways_, passages_, cuts_, revoked_, dropped_] = static_cast<QueueParts&>(*this);
    for (Port& each : ports_) {
      prune(each);
      const auto& [ps_per_byte, latency, free, point, last_head, line, first] = each;
      s.put_busy_until(free);
      s.put(line.size() - first);
      for (size_t i = first; i < line.size(); ++i) {
        const auto& [head, tail, start, end, order, slot, hop, points, passed] = line[i];
        for (const Ps t : {head, tail, start, end}) s.put_time(t);
        s.put(hop);
        put_flow(s, slot);
      }
    }
    std::vector<uint32_t> sent;  // in this order: which slots they have does not matter
    for (uint32_t slot = 0; slot < flows_.size(); ++slot)
      if (!flows_[slot].gone) sent.push_back(slot);
    std::sort(sent.begin(), sent.end(), [this](uint32_t a, uint32_t b) { return flows_[a].order < flows_[b].order; });
    for (const uint32_t slot : sent) {
      const auto& [head, tail, alone, rounding, planned, points] = passages_[slot];
      for (const Ps t : {head, tail, alone}) s.put_time(t);
      s.put(rounding);
      s.put(planned);
      s.put(flows_[slot].route);
    }
  }

 private:
  void add_route(size_t from, const std::vector<uint32_t>& links) override {
    Way& w = ways_.emplace_back();
    w.links = w.ports = links;
    if (first_card_ != SIZE_MAX) {
      w.ports.insert(w.ports.begin(), static_cast<uint32_t>(first_card_ + from));
      ports_[first_card_ + from].ps_per_byte = ports_[links.front()].ps_per_byte;
    }
    w.top = routes_.bandwidth(links.front()) / kPsPerSecond;
    for (const uint32_t l : links) {
      w.top = std::min(w.top, routes_.bandwidth(l) / kPsPerSecond);
      w.slowest = std::max(w.slowest, ports_[l].ps_per_byte);
      w.latencies += ports_[l].latency;
    }
    w.latency = routes_.latency_ps(links);
  }
  [[nodiscard]] const std::vector<uint32_t>& links_of(uint32_t route) const override { return ways_[route].links; }

  void enter(uint32_t slot, int from, int to) override {
    if (passages_.size() <= slot) passages_.resize(flows_.size());
    Flow& f = flows_[slot];
    f.route = route(static_cast<size_t>(from), static_cast<size_t>(to));
    const Way& w = ways_[f.route];
    Passage& p = passages_[slot];
    const double ps = f.bytes / w.top;
    p.planned = 0;
    p.head = p.tail = f.asked;
    p.points = {f.point, f.point};
    p.alone = f.asked + w.latencies + std::max<Ps>(1, static_cast<Ps>(f.bytes * w.slowest + 0.5));
    p.rounding = f.asked + (routes_.even() ? whole(ps + w.latency) : whole(w.latency) + whole(ps)) - p.alone;
    go_on(slot);
  }
  /// Plans the rest of a frame's way.
  void go_on(uint32_t slot) {
    const Flow& f = flows_[slot];
    const Way& w = ways_[f.route];
    Passage& p = passages_[slot];
    for (uint32_t hop = p.planned; hop < w.ports.size(); ++hop) {
      const uint32_t l = w.ports[hop];
      Port& port = ports_[l];
      prune(port);
      size_t at = port.line.size();
      while (at > port.first && port.line[at - 1].comes_after(p.head, f.order)) --at;
      // What waits when something fails is planned anew, and begins now at the earliest.
      const Ps start = std::max({p.head, at > port.first ? port.line[at - 1].end : port.free, loop_.now});
      if (start > p.head && hop > 0 && f.bytes + waiting(port, at, p.head) > buffer_) {
        if (p.head > loop_.now) return await(slot);  // by then there may be space
        ++dropped_;
        return lose(slot);
      }
      if (at < port.line.size()) revoke(l, at);
      const Ps end = std::max(start + port.taken(f.bytes), p.tail);
      port.line.push_back({p.head, p.tail, start, end, f.order, slot, hop, p.points, 0});
      if (anatomy_.critical.on) extend(slot, hop, port);
      p.head = start + port.latency;
      p.tail = end + port.latency;
      p.planned = hop + 1;
    }
    tell(slot, p.tail + p.rounding);
  }
  /// The critical path over a link, of the last in its line.
  void extend(uint32_t slot, uint32_t hop, Port& port) {
    Place& e = port.line.back();
    const bool behind = port.line.size() - 1 > port.first;
    const Place* front = behind ? &port.line[port.line.size() - 2] : nullptr;
    const CriticalPath::Point before = front ? front->point : port.point;
    CriticalPath::Point came_before = front ? front->points.head : port.head;
    const Flow& f = flows_[slot];
    const Way& w = ways_[f.route];
    Passage& p = passages_[slot];
    CriticalPath& path = anatomy_.critical;
    const CriticalPath::Who who = path.place("wire");
    const Charge passing = passing_of(port, f.bytes), latency = latency_of(w.ports[hop]);
    path.order(came_before, p.points.head);
    const bool queued = e.start > e.head && path.time(before) == e.start;
    CriticalPath::Point begin = queued ? path.join(before, p.points.head) : path.join(p.points.head, before);
    begin = path.extend(begin, e.start, Stage::Queueing, who);
    const bool own = e.start + passing.ps >= e.tail;
    const CriticalPath::Point passed = path.extend(begin, std::min(e.end, e.start + passing.ps), Stage::Wire, who, passing.bill);
    e.point = own ? path.join(passed, p.points.tail) : path.join(p.points.tail, passed);
    p.points.head = path.extend(begin, e.start + latency.ps, Stage::Latency, who, latency.bill);
    // Latencies are rounded together: what is too much or too little is the last one's.
    const Ps arrival = e.end + latency.ps + (hop + 1 == w.ports.size() ? p.rounding : Ps(0));
    if (arrival >= e.end)
      p.points.tail = path.extend(e.point, arrival, Stage::Latency, who, latency.bill);
    else
      p.points.tail = path.extend(begin, arrival, Stage::Wire, who, passing.bill);
  }
  /// How long a link is taken by so many bytes. Itemised where all links have the declared rate.
  [[nodiscard]] Charge passing_of(const Port& port, double bytes) const {
    if (!anatomy_.critical.on || !routes_.only_the_link()) return port.taken(bytes);
    const double rate = kPsPerSecond / port.ps_per_byte;
    return {port.taken(bytes), anatomy_.critical.bill({{this, link_number::bandwidth.name, -bytes / (rate * rate)}})};
  }
  /// From the end of a link to the next; behind a card there is none.
  [[nodiscard]] Charge latency_of(uint32_t link) const {
    if (!anatomy_.critical.on || !routes_.only_the_link() || link >= routes_.links()) return ports_[link].latency;
    return {ports_[link].latency, anatomy_.critical.bill({{this, link_number::latency.name, 1}})};
  }
  void await(uint32_t slot) { agenda_.push({passages_[slot].head, flows_[slot].order, slot, flows_[slot].gen}); }
  void change(const Agenda::Item& i) override {
    if (i.gen != flows_[i.what].gen) return;
    loop_.now = i.t;
    go_on(i.what);
  }
  [[nodiscard]] CriticalPath::Point arrived(uint32_t slot, Ps /*t*/) override { return passages_[slot].points.tail; }
  void leave(uint32_t slot) override { contended_ += passages_[slot].tail > passages_[slot].alone; }

  void prune(Port& port) const {
    auto& line = port.line;
    while (port.first < line.size() && (failing_ ? line[port.first].end <= loop_.now : line[port.first].start < loop_.now))
      port.point = line[port.first].point, port.head = line[port.first].points.head, port.free = line[port.first++].end;
    if (port.first == line.size()) {
      line.clear();
      port.first = 0;
    } else if (port.first >= 64 && 2 * port.first >= line.size()) {
      line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(port.first));
      port.first = 0;
    }
  }
  /// Bytes of those before the place `at` that are waiting at `t`.
  [[nodiscard]] double waiting(const Port& port, size_t at, Ps t) const {
    double bytes = 0;
    for (; at > port.first && port.line[at - 1].start > t; --at) bytes += flows_[port.line[at - 1].slot].bytes;
    return bytes;
  }

  /// Those from a place of a link on lose it, and what was planned for them and behind them on the links that follow.
  void revoke(uint32_t link, size_t place) {
    withdraw(link, place);
    for (const uint32_t slot : revoked_) await(slot);
    revoked_.clear();
  }
  void withdraw(uint32_t link, size_t place) {
    cuts_.assign(1, {link, place});
    for (size_t i = 0; i < cuts_.size(); ++i) {
      auto& line = ports_[cuts_[i].first].line;
      while (line.size() > cuts_[i].second) {
        const Place e = line.back();
        line.pop_back();
        const uint32_t planned = passages_[e.slot].planned;
        if (planned <= e.hop) continue;  // revoked on a link before
        take_back(e);
        const auto& ports = ways_[flows_[e.slot].route].ports;
        for (uint32_t hop = e.hop + 1; hop < planned; ++hop) {
          const auto& beyond = ports_[ports[hop]].line;
          size_t at = beyond.size();
          while (at > 0 && beyond[at - 1].order != e.order) --at;
          if (at > 0) cuts_.emplace_back(ports[hop], at - 1);
        }
      }
    }
  }
  void take_back(const Place& e) {
    Passage& p = passages_[e.slot];
    if (std::find(revoked_.begin(), revoked_.end(), e.slot) == revoked_.end()) revoked_.push_back(e.slot);
    p.planned = e.hop;
    p.head = e.head;
    p.tail = e.tail;
    p.points = e.points;
    ++flows_[e.slot].gen;
  }

  /// What has not begun is planned anew without those that are lost, in the order in which it waited; a link that carries one is free.
  void cut_off(const std::vector<uint32_t>& slots) override {
    for (uint32_t l = 0; l < ports_.size(); ++l) {
      prune(ports_[l]);
      const auto& line = ports_[l].line;
      size_t at = ports_[l].first;
      while (at < line.size() && line[at].start <= loop_.now) ++at;
      withdraw(l, at);
    }
    for (const uint32_t slot : slots) lose(slot);
    // A frame that a switch dropped has no slot any more, and still passes the link before.
    const auto lost_now = [&](const Place& e) {
      return flows_[e.slot].order == e.order && std::find(slots.begin(), slots.end(), e.slot) != slots.end();
    };
    for (Port& port : ports_)
      while (port.line.size() > port.first && lost_now(port.line.back())) {
        port.line.pop_back();
        port.free = loop_.now;
      }
    std::sort(revoked_.begin(), revoked_.end(), [this](uint32_t a, uint32_t b) {
      return passages_[a].head != passages_[b].head ? passages_[a].head < passages_[b].head : flows_[a].order < flows_[b].order;
    });
    const std::vector<uint32_t> again = std::move(revoked_);
    revoked_.clear();
    for (const uint32_t slot : again) {
      if (flows_[slot].gone) continue;
      if (passages_[slot].head > loop_.now)
        await(slot);
      else
        go_on(slot);
    }
  }
};

}  // namespace

std::unique_ptr<Wire> queue_wire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link, uint64_t /*seed*/) {
  return std::make_unique<QueueWire>(loop, anatomy, positions, link);
}

std::unique_ptr<Wire> native_wire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link, uint64_t seed) {
  if (positions.empty()) return std::make_unique<NativeWire>(loop, anatomy);
  return kind_of(link).wire(loop, anatomy, positions, link, seed);
}

}  // namespace retrompi
