// Costs of a library as they are declared: in time on the reference host. A host turns them into its own time (HostSpec::time), by their
// kind, so that none is charged as it stands.
#pragma once
#include "event/time.hpp"

namespace retrompi {

template <class Kind>
struct ReferenceCost {
  Ps ps = 0;
  friend ReferenceCost operator+(ReferenceCost a, ReferenceCost b) { return {a.ps + b.ps}; }
  bool operator==(const ReferenceCost&) const = default;
  friend ReferenceCost operator*(int64_t n, ReferenceCost a) { return {n * a.ps}; }
  [[nodiscard]] bool some() const { return ps > 0; }
};
using Work = ReferenceCost<struct OfProcessor>;  // of a processor
using Service = ReferenceCost<struct OfSystem>;  // of the operating system

/// What a call costs: its own instructions and the system's services.
struct CallCost {
  Work work;
  Service system;
  [[nodiscard]] bool some() const { return work.some() || system.some(); }
};

}  // namespace retrompi
