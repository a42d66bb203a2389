#include "law.hpp"

namespace retrompi::online {

Ps Channel::opened() {
  if (open) return 0;
  open = back->open = true;
  return connect;
}

Channel& Law::channel(int from, int to) {
  auto make = [this](int a, int b) -> std::unique_ptr<Channel>& {
    auto& slot = channels_[static_cast<uint64_t>(a) << 32 | static_cast<uint32_t>(b)];
    if (slot) return slot;
    const bool same = e_.together(a, b);
    const PairKind& kind = e_.pair(a, b);
    auto port = [&](int key) -> CurvePort& { return ports_[{same, key}]; };
    auto place = [this](int r) -> const Environment::Place& { return e_.ranks[static_cast<size_t>(r)]; };
    const auto which = kind.of.find({place(a).kind, place(b).kind});
    if (which == kind.of.end()) refuse("no curve was sampled between rank " + std::to_string(a) + " and rank " + std::to_string(b));
    slot = std::make_unique<Channel>(kind.curves.at(static_cast<size_t>(which->second)), port(e_.rank_ports ? a : place(a).host),
                                     port(e_.rank_ports ? b : place(b).host), port(-1));
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
