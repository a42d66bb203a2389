// Flows between hosts, and the clock that drives the simulation: latency, then a fair share of the links on the route.
//
// Two implementations of one law (SimGrid's CM02 flows, without its corrections for TCP, which we simulate ourselves): `native` on
// the engine's own queue, whose cost does not grow with the number of routes, and `simgrid`, the reference it is tested against.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "event/core.hpp"
#include "network/routes.hpp"
#include "record/anatomy.hpp"

namespace retrompi {

class Wire : public Outside {
 public:
  /// Carries `bytes` from one card to another of the same rail and reports them delivered or lost.
  virtual void send(int from, int to, int64_t bytes, const Delivery& d) = 0;
  /// The same for cross traffic: its frames in flight do not keep a run alive.
  virtual void send_background(int from, int to, int64_t bytes, const Delivery& d) = 0;
  /// The same from `t` on, which is not before now. False: this wire does not plan ahead; the caller sends at `t`.
  virtual bool send_at(Ps /*t*/, int /*from*/, int /*to*/, int64_t /*bytes*/, const Delivery&) { return false; }
  /// `Loop::run`, or the same by a clock of its own.
  virtual bool run(Loop& loop, const std::function<bool()>& could_act) { return loop.run(*this, could_act); }
  /// For the critical path: what is under way when the run ends at this point has not arrived before.
  virtual void ends(CriticalPath::Point /*at*/) {}
  /// Its future, in words.
  virtual void state(State& s) { s.refuse(); }

  /// Called once, before anything is sent. A flow that starts over a failed component, or is crossing it when it fails, is lost.
  virtual void fail(const std::vector<Failure>&) { throw ConfigError("failures need the wire native"); }
  /// Whether frames of one path may overtake each other here; their receiver then puts them in order.
  [[nodiscard]] virtual bool overtakes() const { return true; }
  /// How many of what was sent met others on its way.
  [[nodiscard]] virtual uint64_t contended() const { return 0; }
  /// So many more, which were not simulated.
  virtual void add_contended(uint64_t) {}
  /// Frames lost to full buffers of switches and to repeated collisions.
  [[nodiscard]] virtual int64_t dropped() const { return 0; }
  /// The failures so far and the frames each has taken: "link server down from 1 s on (3 frames lost)"; empty when none has begun.
  [[nodiscard]] virtual std::string failed() const { return {}; }
};

/// A wire between cards whose hosts are at `positions`, on which frames queue; no positions: nothing is ever sent. `seed`: of the delays after
/// collisions. Throws ConfigError for a link that cannot join the hosts.
std::unique_ptr<Wire> native_wire(Loop&, Anatomy&, const std::vector<size_t>& positions, const LinkSpec&, uint64_t seed);
/// One whose links divide their bandwidth among all that cross them.
std::unique_ptr<Wire> fluid_wire(Loop&, Anatomy&, const std::vector<size_t>& positions, const LinkSpec&);
/// The same by SimGrid; one in the life of a process. `model`: one of its network models, with its own parameters; empty: plain flows.
std::unique_ptr<Wire> simgrid_wire(Loop&, Anatomy&, const std::vector<size_t>& positions, const LinkSpec&, const std::string& model = {});
std::string simgrid_version();
/// SimGrid's own network models that this version has.
std::vector<std::string> simgrid_network_models();

}  // namespace retrompi
