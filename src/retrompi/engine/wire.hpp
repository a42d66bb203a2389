// The only door to SimGrid: hosts, routes, contention and the clock of what crosses a wire.
//
// Events on one host run ahead of SimGrid's clock as long as nothing is on the wire, so a run in shared memory costs no
// SimGrid event at all; while a flow is in the air the two clocks advance together.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "anatomy.hpp"
#include "core.hpp"

namespace retrompi {

struct LinkSpec {
  std::string kind = "cable";        // cable (two hosts, both directions at once), hub (one shared medium), switch, torus
  std::vector<unsigned long> shape;  // of a torus: places in each dimension
  double bandwidth = 0;              // bytes per second
  double latency = 0;                // seconds
};

class Wire {
 public:
  Wire(Loop& loop, Anatomy& anatomy);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Builds the SimGrid platform: a host for each position. Not called for a single host: then no SimGrid object exists.
  void build(const std::vector<size_t>& positions, const LinkSpec& link);
  /// Carries `bytes` from one host to another and then calls `done`.
  void send(int from, int to, int64_t bytes, Loop::Fn done, void* obj, uint64_t arg);
  /// Runs until `finished` or until nothing can happen any more. Returns true if nothing could happen (a deadlock).
  bool run(const std::function<bool()>& finished, const std::function<bool()>& could_act);
  [[nodiscard]] static std::string version();

 private:
  struct Impl;
  bool dead_end(const std::function<bool()>& could_act) const;
  void pump();
  void build_torus(const std::vector<size_t>& positions, const LinkSpec& link);
  Loop& loop_;
  Anatomy& anatomy_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrompi
