#include "network/routes.hpp"

namespace retrompi {

namespace {
size_t product(const std::vector<unsigned long>& v, size_t from, size_t to) {
  size_t n = 1;
  for (size_t i = from; i < to; ++i) n *= v[i];
  return n;
}
}  // namespace

void check_link(const std::vector<size_t>& positions, const LinkSpec& link) {
  const size_t last = *std::max_element(positions.begin(), positions.end());
  switch (kind_of(link).layout) {
    case LinkLayout::Medium:
    case LinkLayout::Ports:
      break;
    case LinkLayout::Line:
      if (positions.size() != 2 * link.rails) throw ConfigError("a cable joins two hosts, not " + std::to_string(positions.size() / link.rails));
      break;
    case LinkLayout::Torus: {
      const size_t places = product(link.shape, 0, link.shape.size());
      if (link.shape.empty() || places <= last)
        throw ConfigError("a torus of " + std::to_string(places) + " places has no room for host " + std::to_string(last));
      break;
    }
    case LinkLayout::Tree: {
      const size_t levels = link.shape.size() / 3;
      if (levels == 0 || link.shape.size() % 3 != 0 || std::count(link.shape.begin(), link.shape.end(), 0UL) > 0)
        throw ConfigError("a fat tree needs children, parents and parallel links for each of its levels");
      const size_t places = product(link.shape, 0, levels);
      if (places <= last) throw ConfigError("a fat tree of " + std::to_string(places) + " places has no room for host " + std::to_string(last));
      break;
    }
    case LinkLayout::Sites:
      if (link.shape.size() <= last) throw ConfigError("host " + std::to_string(last) + " is at no site");
      if (!(link.wan_bandwidth > 0)) throw ConfigError("link: wan_bandwidth must be more than nothing");
      break;
    case LinkLayout::File:
      if (link.file.size() <= last + 1) throw ConfigError("the platform file has no host " + std::to_string(last));
      if (link.rails != 1) throw ConfigError("a platform file has no rails");
  }
}

Routes::Routes(const std::vector<size_t>& positions, const LinkSpec& link) : positions_(positions), spec_(link), layout_(kind_of(link).layout) {
  check_link(positions, link);
  const size_t cards = positions.size();
  if (layout_ == LinkLayout::Medium) {
    links_ = planes();
  } else if (layout_ == LinkLayout::File) {
    file_ = std::make_shared<FileRoutes>(platform_file_routes(link, positions));
    links_ = file_->bandwidth.size();
  } else if (layout_ == LinkLayout::Torus) {
    plane_ = 2 * link.shape.size() * product(link.shape, 0, link.shape.size());
    links_ = planes() * plane_;
  } else if (layout_ == LinkLayout::Tree) {
    levels_ = link.shape.size() / 3;
    const auto part = [&](size_t i) { return link.shape.begin() + static_cast<std::ptrdiff_t>(i * levels_); };
    children_.assign(part(0), part(1));
    parents_.assign(part(1), part(2));
    ports_.assign(part(2), part(3));
    for (size_t level = 0; level < levels_; ++level) {
      below_.push_back(plane_);
      size_t nodes = 1;
      for (size_t j = 0; j < levels_; ++j) nodes *= j < level ? parents_[j] : children_[j];
      plane_ += 2 * nodes * parents_[level] * ports_[level];
    }
    links_ = planes() * plane_;
  } else {
    links_ = 2 * cards;
    if (layout_ == LinkLayout::Sites) {
      sites_ = *std::max_element(link.shape.begin(), link.shape.end()) + 1;
      first_line_ = links_;
      links_ += sites_ * sites_;
    }
  }
}

std::vector<uint32_t> Routes::way(size_t from, size_t to) const {
  std::vector<uint32_t> out;
  const size_t a = positions_[from], b = positions_[to];
  if (file_) {
    out = file_->ways.at({a, b});
  } else if (layout_ == LinkLayout::Medium) {
    out = {static_cast<uint32_t>(rail(from))};
  } else if (layout_ == LinkLayout::Line) {
    out = {static_cast<uint32_t>(from)};
  } else if (layout_ == LinkLayout::Torus) {
    walk_torus(a, b, rail(from) * plane_, out);
  } else if (layout_ == LinkLayout::Tree) {
    walk_tree(a, b, rail(from) * plane_, out);
  } else {
    const auto up = static_cast<uint32_t>(from), down = static_cast<uint32_t>(positions_.size() + to);
    out = {up, down};
    if (layout_ == LinkLayout::Sites && spec_.shape[a] != spec_.shape[b]) out = {up, line(spec_.shape[a], spec_.shape[b]), down};
  }
  return out;
}

/// Dimension order, the shorter way round, as SimGrid's torus (including its choice among routes of equal length).
void Routes::walk_torus(size_t from, size_t to, size_t base, std::vector<uint32_t>& out) const {
  const auto& shape = spec_.shape;
  size_t at = from, before = 1;
  for (size_t j = 0; j < shape.size(); ++j) {
    const size_t n = shape[j], mine = (from / before) % n, target = (to / before) % n;
    const bool right = (target > mine && target <= mine + n / 2) || (mine > n / 2 && (mine + n / 2) % n >= target);
    for (size_t x = mine; x != target;) {
      const size_t next = right ? (x + 1) % n : (x + n - 1) % n;
      const size_t neighbour = at - x * before + next * before;
      // A place owns the pair of links to its right neighbour in each dimension.
      const size_t owner = right ? at : neighbour;
      out.push_back(static_cast<uint32_t>(base + 2 * (owner * shape.size() + j) + (right ? 0 : 1)));
      at = neighbour;
      x = next;
    }
    before *= n;
  }
}

/// A node's number among those of its level: below it, labels count children, above it parents (Zahavi's PGFT).
size_t Routes::node(size_t level, const std::vector<size_t>& label) const {
  size_t n = 0;
  for (size_t j = levels_; j-- > 0;) n = n * (j < level ? parents_[j] : children_[j]) + label[j];
  return n;
}

uint32_t Routes::tree_link(size_t base, size_t level, const std::vector<size_t>& child, size_t port, bool down) const {
  const size_t ports = parents_[level] * ports_[level];
  return static_cast<uint32_t>(base + below_[level] + 2 * (node(level, child) * ports + port) + (down ? 1 : 0));
}

/// Up by destination modulo the number of uplinks (Zahavi 2010), until the destination is below; then down. Of parallel links down, the one
/// that SimGrid takes: by the source, searched from the position at which the level above was left.
void Routes::walk_tree(size_t from, size_t to, size_t base, std::vector<uint32_t>& out) const {
  std::vector<size_t> label(levels_), target(levels_);
  for (size_t j = 0, a = from, b = to; j < levels_; ++j) {
    label[j] = a % children_[j], a /= children_[j];
    target[j] = b % children_[j], b /= children_[j];
  }
  size_t level = 0;
  const auto above = [&] {
    return level > 0 &&
           std::equal(label.begin() + static_cast<std::ptrdiff_t>(level), label.end(), target.begin() + static_cast<std::ptrdiff_t>(level));
  };
  for (size_t spread = to; !above(); ++level) {
    const size_t port = spread % (parents_[level] * ports_[level]);
    out.push_back(tree_link(base, level, label, port, false));
    label[level] = port % parents_[level];
    spread /= parents_[level];
  }
  while (level > 0) {
    for (size_t i = from % ports_[level - 1] * children_[level - 1]; level > 0 && i < children_[level - 1] * ports_[level - 1]; ++i) {
      if (i % children_[level - 1] != target[level - 1]) continue;
      --level;
      const size_t port = label[level] + i / children_[level] * parents_[level];
      label[level] = target[level];
      out.push_back(tree_link(base, level, label, port, true));
    }
  }
}

namespace {
ConfigError impossible(const Failure& f, const std::string& why) { return ConfigError("failure '" + f.name + "': " + why); }
}  // namespace

template <class F>
Routes::Cut Routes::cards_where(F wanted) const {
  Cut c;
  for (size_t card = 0; card < positions_.size(); ++card)
    if (wanted(card)) c.cards.push_back(card);
  return c;
}

Routes::Cut Routes::all_links() const {
  Cut c;
  for (uint32_t l = 0; l < links_; ++l) c.links.push_back(l);
  return c;
}

Routes::Cut Routes::cut(const Failure& f) const {
  switch (f.what) {
    case Failure::Host:
      return cards_where([&](size_t card) { return positions_[card] == f.a; });
    case Failure::Rail:
      if (f.a >= planes()) throw impossible(f, "there are " + std::to_string(planes()) + " rails, counted from 0");
      return cards_where([&](size_t card) { return rail(card) == f.a; });
    case Failure::Whole:
      if (layout_ != LinkLayout::Medium && layout_ != LinkLayout::Ports) throw impossible(f, "a " + spec_.kind + " is not one hub or switch");
      return all_links();
    case Failure::Pair:
      return cut_pair(f);
    case Failure::Switch:
      return cut_switch(f);
    case Failure::Site:
      if (f.a >= sites_) throw impossible(f, "there is no such site");
      return cards_where([&](size_t card) { return spec_.shape[positions_[card]] == f.a; });
    case Failure::Wan:
      if (f.a >= sites_ || f.b >= sites_ || f.a == f.b) throw impossible(f, "there is no such line");
      return {.links = {line(f.a, f.b), line(f.b, f.a)}, .cards = {}};
  }
  return {};
}

/// A cable, or both directions between two neighbours of a torus.
Routes::Cut Routes::cut_pair(const Failure& f) const {
  if (layout_ == LinkLayout::Line) return all_links();
  if (layout_ != LinkLayout::Torus) throw impossible(f, "only a cable and neighbours in a torus have a link of their own");
  Cut c;
  for (size_t plane = 0; plane < planes(); ++plane)
    for (const auto& [a, b] : {std::pair{f.a, f.b}, {f.b, f.a}}) {
      const size_t before = c.links.size();
      walk_torus(a, b, plane * plane_, c.links);
      if (c.links.size() != before + 1) throw impossible(f, "the two are no neighbours");
    }
  return c;
}

/// The links of a switch of a fat tree to its children and to its parents.
Routes::Cut Routes::cut_switch(const Failure& f) const {
  if (layout_ != LinkLayout::Tree) throw impossible(f, "only a fat tree has switches by level and number");
  if (f.a < 1 || f.a > levels_) throw impossible(f, "there are levels 1 to " + std::to_string(levels_));
  size_t nodes = 1;
  for (size_t j = 0; j < levels_; ++j) nodes *= j < f.a ? parents_[j] : children_[j];
  if (f.b >= nodes) throw impossible(f, "level " + std::to_string(f.a) + " has " + std::to_string(nodes) + " switches, counted from 0");
  std::vector<size_t> label(levels_);
  for (size_t j = 0, n = f.b; j < levels_; ++j) {
    const size_t radix = j < f.a ? parents_[j] : children_[j];
    label[j] = n % radix, n /= radix;
  }
  Cut c;
  for (size_t plane = 0; plane < planes(); ++plane)
    for (const bool down : {false, true}) {
      std::vector<size_t> child = label;
      for (child[f.a - 1] = 0; child[f.a - 1] < children_[f.a - 1]; ++child[f.a - 1])
        for (size_t k = 0; k < ports_[f.a - 1]; ++k)
          c.links.push_back(tree_link(plane * plane_, f.a - 1, child, label[f.a - 1] + k * parents_[f.a - 1], down));
      if (f.a < levels_)
        for (size_t port = 0; port < parents_[f.a] * ports_[f.a]; ++port) c.links.push_back(tree_link(plane * plane_, f.a, label, port, down));
    }
  return c;
}

}  // namespace retrompi
