// Fluid sharing: every flow waits for the latency of its route and then gets a max-min fair share of its links.
//
// Where every route has the same latency, a flow gets its share as soon as it is sent and its end is reported that latency later: the
// same times with one event less. A flow that is alone on its links, as nearly all are because cards send one frame at a time, is one
// event; nothing is done when its bytes have passed, since later flows check whether it is gone.
#include "network/fluid_bundle.hpp"
#include "network/native_wire.hpp"

namespace retrompi {

namespace {

/// Flows over links of one bandwidth. Those that take the same route always have equal shares, so they finish in the order of the
/// bytes that each had to send on arrival plus the bytes that each flow of the bundle had received until then: this number fixes their
/// order, and only the first is on the agenda. When bundles meet on a link, the shares of the whole connected set are solved again, once
/// for all changes at one time.
class FluidWire final : public RoutedWire {
 public:
  FluidWire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link)
      : RoutedWire(loop, anatomy, positions, link), by_latency_(routes_.by_latency()) {
    links_.resize(routes_.links());
    for (uint32_t l = 0; l < links_.size(); ++l) links_[l].rate = routes_.bandwidth(l) / kPsPerSecond;
  }

 private:
  /// Of one instant: ends, by the bundles' numbers; entries, in the order of sending; then shares.
  enum : uint64_t { kFinish = 0, kEnter = 1ULL << 32, kShare = Agenda::kTells - 1 };

  void enter(uint32_t slot, int from, int to) override {
    const uint32_t id = route(static_cast<size_t>(from), static_cast<size_t>(to));
    flows_[slot].route = id;
    Bundle& b = bundles_[id];
    const Ps start = flows_[slot].asked + whole(b.entry_latency);
    if (start > loop_.now)
      reserve(slot, id, start);
    else
      begin(slot, id);
  }
  void later(uint32_t slot, Ps start) {
    ++bundles_[flows_[slot].route].coming;
    flows_[slot].coming = true;
    agenda_.push({start, kEnter + flows_[slot].order, slot, flows_[slot].gen});
  }

  /// A flow that, as far as is known now, has its links to itself is scheduled at once; a flow that interferes later revokes this.
  void reserve(uint32_t slot, uint32_t id, Ps start) {
    Bundle& b = bundles_[id];
    prune(b);
    if (b.coming > 0 || !b.parts.empty() || (!b.line.empty() && b.line.back().end > start)) return later(slot, start);
    tidy_beside(id);
    list(id);
    if (!alone(b)) {
      drop(id);
      return later(slot, start);
    }
    tell_alone(b, slot, start, flows_[slot].bytes / b.top, true);
  }
  void tell_alone(Bundle& b, uint32_t slot, Ps start, double ps, bool reserved = false) {
    const Ps end = start + whole(ps);
    b.told = true;
    b.line.push_back({start, end, ps - static_cast<double>(end - start), slot, reserved});
    tell(slot, start + whole(ps + b.delivery_latency));
  }
  /// Drops scheduled flows whose bytes have passed.
  void prune(Bundle& b) const {
    size_t n = 0;
    while (n < b.line.size() && b.line[n].end <= loop_.now) ++n;
    if (n > 0) b.line.erase(b.line.begin(), b.line.begin() + static_cast<std::ptrdiff_t>(n));
  }
  /// The other active bundles on the links of one.
  void tidy_beside(uint32_t id) {
    for (const uint32_t l : bundles_[id].links)
      for (size_t i = links_[l].bundles.size(); i-- > 0;) {
        const uint32_t other = links_[l].bundles[i];
        if (other == id || !bundles_[other].told) continue;
        prune(bundles_[other]);
        if (bundles_[other].line.empty()) drop(other);
      }
  }
  /// Revokes the schedule: a flow in flight continues as any other, one that has not started yet starts at its time. Of those that start now,
  /// the ones sent after `order` have not started.
  void untell(uint32_t id, uint64_t order) {
    Bundle& b = bundles_[id];
    if (!b.told) return;
    prune(b);
    b.told = false;
    b.last = loop_.now;
    b.got = b.frac = 0;
    b.rate = b.top;
    for (const Told& t : b.line) {
      ++flows_[t.slot].gen;
      if (t.start > loop_.now || (t.start == loop_.now && t.reserved && flows_[t.slot].order > order))
        later(t.slot, t.start);
      else
        b.parts.push_back({(static_cast<double>(t.end - loop_.now) + t.frac) * b.top, flows_[t.slot].order, t.slot});
    }
    b.line.clear();
    if (b.parts.empty())
      drop(id);
    else
      touch(b);
  }

  void add_route(size_t /*from*/, const std::vector<uint32_t>& links) override {
    Bundle& b = bundles_.emplace_back();
    b.links = links;
    b.top = links_[b.links.front()].rate;
    for (const uint32_t l : b.links) b.top = std::min(b.top, links_[l].rate);
    (routes_.even() ? b.delivery_latency : b.entry_latency) = routes_.latency_ps(b.links);
    // SimGrid's CM02 shares in inverse proportion to the latency, as TCP does.
    if (by_latency_ && b.entry_latency > 0) b.weight = 1 / b.entry_latency;
  }
  [[nodiscard]] const std::vector<uint32_t>& links_of(uint32_t route) const override { return bundles_[route].links; }

  [[nodiscard]] bool alone(const Bundle& b) const {
    for (const uint32_t l : b.links)
      if (links_[l].bundles.size() != 1) return false;
    return true;
  }
  void list(uint32_t id) {
    Bundle& b = bundles_[id];
    if (b.listed) return;
    b.listed = true;
    for (const uint32_t l : b.links) links_[l].bundles.push_back(id);
  }
  void drop(uint32_t id) {
    Bundle& b = bundles_[id];
    b.told = b.listed = false;
    for (const uint32_t l : b.links) std::erase(links_[l].bundles, id);
  }

  void begin(uint32_t slot, uint32_t id) {
    Bundle& b = bundles_[id];
    const Flow& f = flows_[slot];
    untell(id, f.order);
    tidy_beside(id);
    for (const uint32_t l : b.links)
      for (size_t i = links_[l].bundles.size(); i-- > 0;) untell(links_[l].bundles[i], f.order);
    list(id);
    const bool by_itself = alone(b);
    if (!by_itself || !b.parts.empty()) ++contended_;
    if (b.parts.empty()) {
      b.last = loop_.now;
      b.frac = b.got = b.rate = 0;
    } else {
      bring_up(b);
    }
    b.parts.push_back({b.got + f.bytes, f.order, slot});
    if (b.parts.size() > 1) std::push_heap(b.parts.begin(), b.parts.end());
    if (!by_itself) return touch(b);
    b.rate = b.top / static_cast<double>(b.parts.size());
    plan(id, true);
  }
  void bring_up(Bundle& b) const {
    b.got += (static_cast<double>(loop_.now - b.last) - b.frac) * b.rate;
    b.last = loop_.now;
    b.frac = 0;
  }
  /// Picoseconds from `last` until the first of the flows has received its bytes.
  static double first_end(const Bundle& b) { return b.frac + std::max(0.0, b.parts.front().until - b.got) / b.rate; }
  void plan(uint32_t id, bool by_itself) {
    Bundle& b = bundles_[id];
    const double ps = first_end(b);
    if (by_itself && b.parts.size() == 1) {
      forget(b);
      const uint32_t slot = b.parts.front().slot;
      b.parts.clear();
      tell_alone(b, slot, b.last, ps);
    } else {
      b.planned = b.last + whole(ps);
      if (b.item <= b.planned) return;  // examined then, and postponed
      b.item = b.planned;
      agenda_.push({b.item, kFinish + id, id, ++b.gen});
    }
  }
  static void forget(Bundle& b) {
    b.planned = kNever;
    if (b.item == kNever) return;
    b.item = kNever;
    ++b.gen;
  }

  void change(const Agenda::Item& i) override {
    if (i.order == kShare) return share_all();
    if (i.order >= kEnter) {
      loop_.now = i.t;
      Flow& f = flows_[i.what];
      --bundles_[f.route].coming;
      f.coming = false;
      return f.gone ? give_back(i.what) : begin(i.what, f.route);
    }
    Bundle& b = bundles_[i.what];
    if (i.gen != b.gen) return;
    if (b.planned > i.t) {
      b.item = b.planned;
      if (b.item != kNever) agenda_.push({b.item, kFinish + i.what, i.what, b.gen});
      return;
    }
    b.item = b.planned = kNever;
    loop_.now = i.t;
    const double ps = first_end(b);
    b.got = std::max(b.got, b.parts.front().until);
    b.frac = ps - static_cast<double>(loop_.now - b.last);
    b.last = loop_.now;
    do {  // flows that finish together leave together
      std::pop_heap(b.parts.begin(), b.parts.end());
      tell(b.parts.back().slot, b.last + whole(b.frac + b.delivery_latency));
      b.parts.pop_back();
    } while (!b.parts.empty() && b.last + whole(first_end(b)) <= loop_.now);
    if (b.parts.empty()) {
      drop(i.what);
      touch(b);
    } else if (alone(b)) {
      b.rate = b.top / static_cast<double>(b.parts.size());
      plan(i.what, true);
    } else {
      touch(b);
    }
  }
  void leave(uint32_t slot) override {
    auto& line = bundles_[flows_[slot].route].line;
    if (!line.empty() && line.front().slot == slot) line.erase(line.begin());  // not checked since its bytes passed
  }

  /// The flows of a bundle have changed: shares are solved before the clock moves, after all events of this time.
  void touch(Bundle& b) {
    b.fresh = !b.parts.empty();
    if (changed_.empty()) agenda_.push({loop_.now, kShare, 0, 0});
    for (const uint32_t l : b.links) {
      if (links_[l].changed) continue;
      links_[l].changed = true;
      changed_.push_back(l);
    }
  }
  void share_all() {
    ++stamp_;
    for (const uint32_t l : changed_)
      if (links_[l].seen != stamp_ && !links_[l].bundles.empty()) share(l);
    for (const uint32_t l : changed_) links_[l].changed = false;
    changed_.clear();
  }
  void reach(uint32_t l) {
    Link& k = links_[l];
    if (k.seen == stamp_) return;
    k.seen = stamp_;
    k.spare = k.rate;
    k.weight = 0;
    k.stale = false;
    lines_.push_back(l);
    for (const uint32_t o : k.bundles) {
      Bundle& b = bundles_[o];
      k.weight += b.weight * static_cast<double>(b.parts.size());
      if (b.seen == stamp_) continue;
      b.seen = stamp_;
      b.fixed = b.parts.empty();
      group_.push_back(o);
    }
  }
  /// Max-min shares of the bundles connected to a link: the scarcest link is divided first. What a flow could get of a link
  /// only grows as others are divided, so a link waits in the heap with an older level until its turn comes.
  void share(uint32_t from) {
    group_.clear();
    lines_.clear();
    reach(from);
    for (size_t i = 0; i < group_.size(); ++i)
      for (const uint32_t l : bundles_[group_[i]].links) reach(l);
    scarce_.clear();
    for (uint32_t i = 0; i < lines_.size(); ++i)
      if (const Link& k = links_[lines_[i]]; k.weight > 0) scarce_.push_back({k.spare / k.weight, i});
    std::make_heap(scarce_.begin(), scarce_.end());
    while (!scarce_.empty()) {
      Scarce& top = scarce_.front();
      Link& k = links_[lines_[top.line]];
      const bool stale = k.stale;
      if (stale) {
        k.stale = false;
        k.weight = 0;  // recounted: the rounding remainder of a sum is not a flow
        for (const uint32_t o : k.bundles)
          if (const Bundle& b = bundles_[o]; !b.fixed) k.weight += b.weight * static_cast<double>(b.parts.size());
      }
      const Scarce now{k.weight > 0 ? k.spare / k.weight : 0, top.line};
      std::pop_heap(scarce_.begin(), scarce_.end());
      scarce_.pop_back();
      if (!(k.weight > 0)) continue;
      if (stale && !scarce_.empty() && now < scarce_.front()) {
        scarce_.push_back(now);
        std::push_heap(scarce_.begin(), scarce_.end());
        continue;
      }
      for (const uint32_t o : k.bundles) {
        Bundle& b = bundles_[o];
        if (b.fixed) continue;
        b.fixed = true;
        b.share = now.level * b.weight;
        const double taken = static_cast<double>(b.parts.size()) * b.share;
        for (const uint32_t l : b.links) {
          links_[l].spare = std::max(0.0, links_[l].spare - taken);
          links_[l].stale = true;
        }
      }
    }
    for (const uint32_t o : group_) {
      Bundle& b = bundles_[o];
      const bool fresh = b.fresh;
      b.fresh = false;
      if (b.parts.empty()) continue;
      const bool by_itself = alone(b);
      if (!fresh && b.share == b.rate && !(by_itself && b.parts.size() == 1)) continue;
      bring_up(b);
      b.rate = b.share;
      plan(o, by_itself);
    }
  }

  void cut_off(const std::vector<uint32_t>& slots) override {
    for (const uint32_t slot : slots) {
      const uint32_t id = flows_[slot].route;
      Bundle& b = bundles_[id];
      untell(id, UINT64_MAX);
      if (const auto had = std::find_if(b.parts.begin(), b.parts.end(), [slot](const Part& q) { return q.slot == slot; }); had != b.parts.end()) {
        b.parts.erase(had);
        std::make_heap(b.parts.begin(), b.parts.end());
        forget(b);
        if (b.parts.empty()) drop(id);
        touch(b);
      }
      lose(slot);
    }
  }

  bool by_latency_;
  std::vector<Link> links_;
  std::vector<Bundle> bundles_;
  std::vector<uint32_t> changed_, group_, lines_;
  std::vector<Scarce> scarce_;
  uint64_t stamp_ = 0;
};

}  // namespace

std::unique_ptr<Wire> fluid_wire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link) {
  return std::make_unique<FluidWire>(loop, anatomy, positions, link);
}

}  // namespace retrompi
