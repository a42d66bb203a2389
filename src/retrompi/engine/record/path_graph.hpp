// What a recorded critical path says beyond the path itself: how much later everything beside it could be, and how the run's time depends on the
// declared numbers, as long as everything happens in the same order.
//
// The points of the record and what they waited for are an activity network: a point comes a delay after the last of those that it waited for.
// Delays are linear in the declared numbers (costs) or in their reciprocals (rates), so the network gives the time for other numbers without
// simulating, and the recorded order of actions says where it no longer is the network of the run.
#pragma once
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "record/critical_path.hpp"

namespace retrompi {

struct PathGraph {
  using Point = CriticalPath::Point;
  /// A declared number: owner (host, link, same, remote, job, ...), index of it, field, size of the message (of a sampled curve).
  using Number = std::tuple<std::string, int64_t, std::string, int64_t>;

  // Columns by point; the first is the start, and what a point depends on is before it.
  std::vector<int64_t> t;
  std::vector<uint32_t> from, who, bill;
  std::vector<uint8_t> stage;  // | kFixed
  static constexpr uint8_t kFixed = 0x80;
  std::vector<uint32_t> joins;    // (point, other) ...
  std::vector<uint32_t> resumed;  // (point, begun, ended) ...
  std::vector<uint32_t> orders;   // (before, after) ...
  // Terms: those of a bill are from `bill_begin` of it to that of the next.
  std::vector<uint32_t> bill_begin, term_number;
  std::vector<double> term_times;
  std::vector<std::string> names;  // of `who`
  std::vector<Number> numbers;
  std::vector<std::pair<std::string, int64_t>> unfollowed;
  uint32_t end = 0;

  static PathGraph of(const CriticalPath& path, Point end, const std::function<std::string(CriticalPath::Who)>& name,
                      const std::function<Number(const CriticalPath::Term&)>& number);
  /// Columns of different lengths, or that refer to what does not exist: std::invalid_argument.
  void check() const;

  /// A stage of somebody: picoseconds on the path and beside it, and how much later (ps) the parts beside it could be at least without making the run
  /// longer; -1: nothing of the run waits for any of them.
  struct Slack {
    uint8_t stage;
    uint32_t who;
    int64_t on_path = 0, beside = 0, least = -1;
    int64_t parts = 0;  // beside the path
  };
  [[nodiscard]] std::vector<Slack> slacks() const;
  /// How much later each point could be, ps; -1: nothing of the run waits for it.
  [[nodiscard]] std::vector<int64_t> slack_by_point() const;

  /// The change of the run's time (ps) to first order if the numbers change so: the sum over the path.
  [[nodiscard]] double slope(const std::vector<double>& changes) const;
  struct Changed {
    double ps;      // change of the run's time
    bool in_order;  // everything happens in the recorded order
  };
  [[nodiscard]] Changed changed(const std::vector<double>& changes) const;
  /// The largest part (0 to 1) of these changes up to which the time changes in proportion to them, to a relative `agree` and to `rounding` ps.
  [[nodiscard]] double reach(const std::vector<double>& changes, double agree, double rounding) const;

 private:
  [[nodiscard]] std::vector<double> delays(const std::vector<double>& changes) const;  // by bill, ps
  [[nodiscard]] Changed shifted(const std::vector<double>& by_bill, double part, std::vector<double>& shift) const;
};

}  // namespace retrompi
