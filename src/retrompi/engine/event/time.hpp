// Simulated time.
#pragma once
#include <cstdint>

namespace retrompi {

/// Simulated time in picoseconds. An integer, so that the stages of a message sum to its total exactly
/// (a double loses picoseconds after a quarter of an hour) and the same inputs give the same bytes.
using Ps = int64_t;
constexpr Ps kNever = INT64_MAX;
constexpr double kPsPerSecond = 1e12;

/// Saturates at half of the range, so that two times can be added.
inline Ps to_ps(double seconds) {
  constexpr Ps kMost = kNever / 2;
  const double ps = seconds * kPsPerSecond + 0.5;
  return ps < static_cast<double>(kMost) ? static_cast<Ps>(ps) : kMost;
}
inline double to_s(Ps ps) { return static_cast<double>(ps) / kPsPerSecond; }

}  // namespace retrompi
