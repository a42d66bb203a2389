// Costs as they are declared: numbers of a host in its own time, costs of a library in time on the reference host. A host turns the latter into
// its own time (HostSpec::time), by their kind, so that none is charged as it stands.
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
  CallCost() = default;
  CallCost(Work own, Service of_system = {}) : work(own), system(of_system) {}  // NOLINT: a call may need no service
  [[nodiscard]] bool some() const { return work.some() || system.some(); }
};

/// A declared number that delays are computed from: the member that has it, and its name in the declaration. Those of hosts, link and media are
/// generated (spec/compiled/cpp.py): `host_number::interrupt`.
template <class Owner, class T>
struct DeclaredNumber {
  using Of = Owner;
  T Owner::*member;
  const char* name;
};
template <class Owner, class T>
DeclaredNumber(T Owner::*, const char*) -> DeclaredNumber<Owner, T>;

/// A part of a delay: so many times a declared number.
template <class Owner, class T>
struct Multiple {
  using Of = Owner;
  DeclaredNumber<Owner, T> of;
  int64_t times;
};
template <class Owner, class T>
constexpr Multiple<Owner, T> operator*(int64_t times, const DeclaredNumber<Owner, T>& of) {
  return {of, times};
}

/// A part of a delay: an amount at a declared rate (in units of the amount per second).
template <class Owner>
struct AtRate {
  using Of = Owner;
  DeclaredNumber<Owner, double> rate;
  double amount;
  [[nodiscard]] constexpr double seconds(const Owner& owner) const { return amount / owner.*rate.member; }
};
template <class Owner>
constexpr AtRate<Owner> operator/(double amount, const DeclaredNumber<Owner, double>& rate) {
  return {rate, amount};
}

}  // namespace retrompi
