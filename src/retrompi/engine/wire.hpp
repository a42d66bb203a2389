// What crosses a wire between hosts, and the clock that drives everything: latency, then a fair share of the links on the way.
//
// Two implementations of one law (SimGrid's CM02 flows, without its corrections for TCP, which we simulate ourselves): `native` on
// the engine's own queue, whose cost does not grow with the number of routes, and `simgrid`, the reference it is tested against.
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
  virtual ~Wire() = default;
  /// Carries `bytes` from one host to another and then calls `done`.
  virtual void send(int from, int to, int64_t bytes, Loop::Fn done, void* obj, uint64_t arg) = 0;
  /// The same from `t` on, which is not before now. False: this wire does not plan ahead, send it then.
  virtual bool send_at(Ps /*t*/, int /*from*/, int /*to*/, int64_t /*bytes*/, Loop::Fn /*done*/, void* /*obj*/, uint64_t /*arg*/) { return false; }
  /// Runs until the loop is over or until nothing can happen any more. Returns true if nothing could happen (a deadlock).
  /// `could_act` is asked when only passive events are left: whether a process has anything to do.
  virtual bool run(const std::function<bool()>& could_act) = 0;
};

/// A wire between hosts at `positions`; none: nothing is ever sent. Throws ConfigError for a link that cannot join them.
std::unique_ptr<Wire> native_wire(Loop&, Anatomy&, const std::vector<size_t>& positions, const LinkSpec&);
/// The same by SimGrid; one in the life of a process.
std::unique_ptr<Wire> simgrid_wire(Loop&, Anatomy&, const std::vector<size_t>& positions, const LinkSpec&);
std::string simgrid_version();

/// Refuses a link that cannot join hosts at `positions`.
void check_link(const std::vector<size_t>& positions, const LinkSpec&);

}  // namespace retrompi
