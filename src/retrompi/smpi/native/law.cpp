#include "law.hpp"

namespace retrompi::online {

Ps Channel::depart(Ps now, const Point& p) {
  Ps start = std::max(now, free);
  if (p.port > 0) start = std::max({start, from->out, to->in});
  if (p.both > 0) start = std::max({start, from->any, to->any});
  if (p.wire > 0) start = std::max(start, wire->any);
  free = start + p.gap;
  if (p.port > 0) from->out = to->in = start + p.port;
  if (p.both > 0) from->any = to->any = start + p.both;
  if (p.wire > 0) wire->any = start + p.wire;
  last = std::max(start + p.transit, last);  // messages of a pair do not overtake
  return last;
}

Ps Channel::opened() {
  if (open) return 0;
  open = back->open = true;
  return connect;
}

Channel& Law::channel(int from, int to) {
  auto make = [this](int a, int b) -> std::unique_ptr<Channel>& {
    auto& slot = channels_[static_cast<uint64_t>(a) << 32 | static_cast<uint32_t>(b)];
    if (slot) return slot;
    slot = std::make_unique<Channel>();
    const bool same = e_.together(a, b);
    const PairKind& kind = e_.pair(a, b);
    auto port = [&](int key) {
      auto& p = ports_[{same, key}];
      if (!p) p = std::make_unique<Port>();
      return p.get();
    };
    auto place = [this](int r) -> const Environment::Place& { return e_.ranks[static_cast<size_t>(r)]; };
    const auto which = kind.of.find({place(a).kind, place(b).kind});
    if (which == kind.of.end()) refuse("no curve was sampled between rank " + std::to_string(a) + " and rank " + std::to_string(b));
    slot->curve = &kind.curves.at(static_cast<size_t>(which->second));
    slot->from = port(e_.rank_ports ? a : place(a).host);
    slot->to = port(e_.rank_ports ? b : place(b).host);
    slot->wire = port(-1);
    slot->connect = kind.connect;
    return slot;
  };
  Channel& there = *make(from, to);
  if (!there.back) {
    there.back = make(to, from).get();
    there.back->back = &there;
  }
  return there;
}

Law& law() {
  static Law one(environment());
  return one;
}

}  // namespace retrompi::online
