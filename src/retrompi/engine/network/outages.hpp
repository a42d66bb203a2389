// Which links and cards are down, by which failures, and how many frames each failure has taken.
#pragma once
#include "network/routes.hpp"

namespace retrompi {

class Outages {
 public:
  /// Throws ConfigError for a failure of something that does not exist.
  Outages(const Routes& routes, const std::vector<Failure>& failures);

  /// Failure `i` begins or ends.
  void begin(size_t i) { mark(outages_[i], 1); }
  void end(size_t i) { mark(outages_[i], -1); }
  /// Whether something between two cards is down; the frame is counted for the first failure that explains it.
  bool blocks(size_t from, size_t to, const std::vector<uint32_t>& links);
  /// "link server down from 1 s on (3 frames lost)", of every failure that has begun.
  [[nodiscard]] std::string told(Ps now) const;

 private:
  struct Outage {
    Failure failure;
    Routes::Cut cut;
    bool now = false;
    int64_t frames = 0;
  };
  void mark(Outage& o, int by);
  std::vector<Outage> outages_;
  std::vector<int> links_, cards_;  // how many failures affect each
};

}  // namespace retrompi
