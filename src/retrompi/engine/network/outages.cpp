#include "network/outages.hpp"

#include <cassert>
#include <cstdio>

namespace retrompi {

Outages::Outages(const Routes& routes, const std::vector<Failure>& failures) : links_(routes.links()), cards_(routes.cards()) {
  for (const Failure& f : failures) outages_.push_back({f, routes.cut(f)});
}

void Outages::mark(Outage& o, int by) {
  o.now = by > 0;
  for (const uint32_t l : o.cut.links) {
    links_[l] += by;
    assert(links_[l] >= 0);
  }
  for (const size_t c : o.cut.cards) {
    cards_[c] += by;
    assert(cards_[c] >= 0);
  }
}

bool Outages::blocks(size_t from, size_t to, const std::vector<uint32_t>& links) {
  const bool open = std::all_of(links.begin(), links.end(), [this](uint32_t l) { return links_[l] == 0; });
  if (open && cards_[from] == 0 && cards_[to] == 0) return false;
  const auto between = [&](size_t card) { return card == from || card == to; };
  const auto crossed = [&](uint32_t l) { return std::find(links.begin(), links.end(), l) != links.end(); };
  for (Outage& o : outages_)
    if (o.now && (std::any_of(o.cut.cards.begin(), o.cut.cards.end(), between) || std::any_of(o.cut.links.begin(), o.cut.links.end(), crossed))) {
      ++o.frames;
      break;
    }
  return true;
}

std::string Outages::told(Ps now) const {
  std::string s;
  const auto seconds = [](Ps t) {
    char text[32];
    std::snprintf(text, sizeof text, "%g s", to_s(t));
    return std::string(text);
  };
  for (const Outage& o : outages_) {
    if (o.failure.from > now) continue;
    s += (s.empty() ? "" : ", ") + o.failure.name + " down from " + seconds(o.failure.from) +
         (o.failure.until < kNever ? " to " + seconds(o.failure.until) : " on") + " (" + std::to_string(o.frames) +
         (o.frames == 1 ? " frame lost)" : " frames lost)");
  }
  return s;
}

}  // namespace retrompi
