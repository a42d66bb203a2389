// What is charged to a processor, a kernel or a card: a time, and the declared numbers that it is the sum of. One expression gives both,
//
//     host.charge(host_number::interrupt, host_number::tcp_segment, bytes * host_number::tcp_byte)
//
// so that the reason that a critical path states cannot differ from the time that is simulated. The terms are only made while a path is recorded.
#pragma once
#include <concepts>

#include "host/cost.hpp"
#include "record/critical_path.hpp"

namespace retrompi {

/// A plain time is a charge without terms: the numbers behind it are not itemised (studies/define/declared_numbers.py has those that are).
struct Charge {
  Ps ps = 0;
  CriticalPath::Bill bill = 0;
  constexpr Charge() = default;
  constexpr Charge(Ps time, CriticalPath::Bill terms = 0) : ps(time), bill(terms) {}  // NOLINT: a time is a charge
  template <std::integral N>
  constexpr Charge(N time) : ps(time) {}  // NOLINT
};

namespace detail {
// The time of a part in that of its owner, and the derivative of the part by its number, `scale` times.
template <class Owner>
constexpr Ps time_of(const Owner& owner, const DeclaredNumber<Owner, Ps>& n) {
  return owner.*n.member;
}
template <class Owner>
constexpr Ps time_of(const Owner& owner, const Multiple<Owner, Ps>& m) {
  return m.times * (owner.*m.of.member);
}
template <class Owner>
constexpr Ps time_of(const Owner& owner, const Multiple<Owner, double>& m) {  // picoseconds for each
  return static_cast<Ps>(owner.*m.of.member * static_cast<double>(m.times));
}
template <class Owner>
constexpr Ps time_of(const Owner& owner, const AtRate<Owner>& a) {
  return to_ps(a.seconds(owner));
}
template <class Owner, class Kind>
constexpr ReferenceCost<Kind> reference_cost_of(const Owner& owner, const DeclaredNumber<Owner, ReferenceCost<Kind>>& n) {
  return owner.*n.member;
}
template <class Owner, class Kind>
constexpr ReferenceCost<Kind> reference_cost_of(const Owner& owner, const Multiple<Owner, ReferenceCost<Kind>>& m) {
  return m.times * (owner.*m.of.member);
}
template <class Owner>
constexpr Work reference_cost_of(const Owner& owner, const DeclaredNumber<Owner, CallCost>& n) {  // the system's part is charged by itself
  return (owner.*n.member).work;
}
template <class Owner, class T>
CriticalPath::Term term_of(const Owner& owner, const DeclaredNumber<Owner, T>& n, double scale = 1) {
  return {&owner, n.name, scale};
}
template <class Owner, class T>
CriticalPath::Term term_of(const Owner& owner, const Multiple<Owner, T>& m, double scale = 1) {
  return {&owner, m.of.name, static_cast<double>(m.times) * scale};
}
template <class Owner>
CriticalPath::Term term_of(const Owner& owner, const AtRate<Owner>& a) {
  return {&owner, a.rate.name, -a.seconds(owner) / owner.*a.rate.member};
}
/// `spec`, as the declaration (of it or of a base) that the part belongs to.
template <class Part, class Spec>
constexpr const typename Part::Of& owner(const Spec& spec) {
  return spec;
}
}  // namespace detail

/// The sum of parts, each of which is a time as it stands in `spec`.
template <class Spec, class... Part>
[[nodiscard]] Charge charge_of(CriticalPath& path, const Spec& spec, const Part&... parts) {
  Charge c((detail::time_of(detail::owner<Part>(spec), parts) + ...));
  if (path.on) [[unlikely]]
    c.bill = path.bill({detail::term_of(detail::owner<Part>(spec), parts)...});
  return c;
}

}  // namespace retrompi
