// Which links lie between two cards, for every kind of link; used by both wires (native and reference) and by failures.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "generated/specs.hpp"
#include "network/platform_file.hpp"

namespace retrompi {

/// A component of the platform that is down for a time. A place is a host's number on the platform.
struct Failure {
  enum What : uint8_t {
    Host,    // the link from place `a` to the network, on every rail
    Pair,    // the link between places `a` and `b`: a cable, neighbours in a torus
    Whole,   // the hub or switch
    Switch,  // fat-tree: number `b` of level `a`, from 1 on
    Site,    // wan: the switch of site `a`
    Wan,     // wan: the line between sites `a` and `b`
    Rail     // plane `a`
  } what = Host;
  size_t a = 0, b = 0;
  Ps from = 0, until = kNever;
  std::string name;  // as given by the user
};

/// Cards are numbered host by host, and on each host by rail.
class Routes {
 public:
  /// `positions`: the place of each card's host. Throws ConfigError for a link that cannot join them.
  Routes(const std::vector<size_t>& positions, const LinkSpec& link);

  [[nodiscard]] size_t links() const { return links_; }
  [[nodiscard]] size_t cards() const { return positions_.size(); }
  [[nodiscard]] double bandwidth(uint32_t l) const { return file_ ? file_->bandwidth[l] : l < first_line_ ? spec_.bandwidth : spec_.wan_bandwidth; }
  [[nodiscard]] double latency_ps(const std::vector<uint32_t>& way) const {
    if (file_) {
      double sum = 0;
      for (const uint32_t l : way) sum += file_->latency[l];
      return sum * kPsPerSecond;
    }
    const auto lines = static_cast<double>(std::count_if(way.begin(), way.end(), [this](uint32_t l) { return l >= first_line_; }));
    return spec_.latency * kPsPerSecond * (static_cast<double>(way.size()) - lines) + spec_.wan_latency * kPsPerSecond * lines;
  }
  [[nodiscard]] size_t rail(size_t card) const { return spec_.rails == 1 ? 0 : card % spec_.rails; }

  /// Cards whose flows take the same links are equivalent: one class for the sender, one for the receiver.
  [[nodiscard]] size_t senders() const { return layout_ == LinkLayout::Medium ? spec_.rails : positions_.size(); }
  [[nodiscard]] size_t sender(size_t card) const { return layout_ == LinkLayout::Medium ? rail(card) : card; }
  [[nodiscard]] size_t receiver(size_t card) const { return layout_ == LinkLayout::Medium || layout_ == LinkLayout::Line ? 0 : card; }

  /// The links from one card to another of the same rail, in the order in which they are crossed.
  [[nodiscard]] std::vector<uint32_t> way(size_t from, size_t to) const;
  /// All routes have the same latency, so it can be added after the bytes, which saves an event.
  [[nodiscard]] bool even() const { return layout_ <= LinkLayout::Ports; }
  /// SimGrid's CM02 shares a link in inverse proportion to the latencies of the flows' routes, as TCP does.
  [[nodiscard]] bool by_latency() const { return crossed() || file_; }
  /// On the first link of a way there are also frames of other cards.
  [[nodiscard]] bool crossed() const { return layout_ == LinkLayout::Torus; }

  /// All links have the declared rate and latency: none is a line between sites or out of a platform file.
  [[nodiscard]] bool only_the_link() const { return layout_ < LinkLayout::Sites; }

  struct Cut {
    std::vector<uint32_t> links;
    std::vector<size_t> cards;  // all frames from and to them are lost
  };
  /// Throws ConfigError for something that does not exist.
  [[nodiscard]] Cut cut(const Failure& f) const;

 private:
  template <class F>
  [[nodiscard]] Cut cards_where(F wanted) const;
  [[nodiscard]] Cut all_links() const;
  [[nodiscard]] Cut cut_pair(const Failure& f) const;
  [[nodiscard]] Cut cut_switch(const Failure& f) const;
  void walk_torus(size_t from, size_t to, size_t base, std::vector<uint32_t>& out) const;
  void walk_tree(size_t from, size_t to, size_t base, std::vector<uint32_t>& out) const;
  [[nodiscard]] size_t node(size_t level, const std::vector<size_t>& label) const;
  [[nodiscard]] uint32_t tree_link(size_t base, size_t level, const std::vector<size_t>& child, size_t port, bool down) const;
  [[nodiscard]] uint32_t line(size_t a, size_t b) const { return static_cast<uint32_t>(first_line_ + a * sites_ + b); }
  [[nodiscard]] size_t planes() const { return spec_.rails; }

  std::vector<size_t> positions_;
  LinkSpec spec_;
  LinkLayout layout_;
  std::shared_ptr<const FileRoutes> file_;          // of a platform file
  size_t levels_ = 0;                               // of a tree
  std::vector<size_t> children_, parents_, ports_;  // by level
  std::vector<size_t> below_;                       // links under the switches of each level and before, both directions counted
  size_t sites_ = 0;
  size_t plane_ = 0;  // links of one plane of a torus or tree
  size_t links_ = 0;
  size_t first_line_ = SIZE_MAX;
};

/// Throws ConfigError for a link that cannot join hosts at `positions`.
void check_link(const std::vector<size_t>& positions, const LinkSpec& link);

}  // namespace retrompi
