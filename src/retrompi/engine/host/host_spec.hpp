// A host's parameters and what follows from them alone, for the engine and for the SMPI plug-in.
#pragma once
#include <cmath>

#include "generated/specs.hpp"

namespace retrompi {

/// The declared parameters of a host (spec/host.py), all times already in picoseconds on this host, and what follows from them alone.
struct HostSpec : HostFields {
  Ps tick_phase = 0;  // clocks of two machines are not synchronised; where several share a spec, each has its own

  /// Speed of a processor in library code, relative to the reference host's.
  [[nodiscard]] double speed() const { return clock * work / kReferenceClock; }
  [[nodiscard]] Ps time(Work w) const { return static_cast<Ps>(static_cast<double>(w.ps) / speed() + 0.5); }
  /// Systems differ in their services as they differ in their null call.
  [[nodiscard]] Ps time(Service s) const {
    return static_cast<Ps>(static_cast<double>(s.ps) * (static_cast<double>(syscall) / static_cast<double>(kReferenceCall)) + 0.5);
  }
  /// Rate (B/s) of the network card between memory and itself: out of memory, or into it.
  [[nodiscard]] double card_rate(bool out) const { return this->*card_rate_number(out).member; }
  [[nodiscard]] const DeclaredNumber<HostFields, double>& card_rate_number(bool out) const {
    return out || nic_rate_in == 0 ? host_number::nic_rate : host_number::nic_rate_in;
  }
  /// How long a thread keeps its processor while others wait. Where quanta are counted in ticks (E-NT-04) the shortest is one.
  [[nodiscard]] Ps whole_quantum() const { return quantum_at_tick ? std::max(quantum, tick) : quantum; }
  /// The first tick at or after `t`.
  [[nodiscard]] Ps next_tick(Ps t) const { return next_tick(t, tick_phase); }
  [[nodiscard]] Ps next_tick(Ps t, Ps phase) const { return phase + (t - phase + tick - 1) / tick * tick; }
  /// Share of the lines of a working set that miss the second-level cache.
  [[nodiscard]] double misses(double working_set) const {
    // NT did not colour pages, so a working set's pages fall on the cache's page colours at random: their number on one colour
    // is close to Poisson with mean `load`. A colour holds `l2_ways` pages; one that gets more loses all of them when they are
    // walked in order under LRU. The share of pages on such colours is P(Poisson(load) >= ways).
    const double load = working_set * l2_ways / l2;
    double term = std::exp(-load), below = 0;
    for (int k = 0; k < static_cast<int>(l2_ways); ++k) {
      below += term;
      term *= load / (k + 1);
    }
    return std::clamp(1 - below, 0.0, 1.0);
  }
  /// One side of a copy, in seconds per byte.
  struct PerByte {
    double time = 0, memory = 0;  // of the time: waiting for main memory
  };
  /// Reads (1 transfer) or writes (2) lines, with `near` bytes between two uses by this core and `set` bytes by all who use its cache: a line that is
  /// written in main memory is fetched first and written back later, so writing is two thirds of a copy there (E-LM-01, E-LM-02 and E-LM-09 agree on
  /// this).
  [[nodiscard]] PerByte copy_side(double near, double set, double transfers) const {
    if (near <= l1) return {0.5 / copy_l1, 0};
    const double miss = misses(set), memory = miss * (transfers / 3) / copy_mem;
    return {(1 - miss) * 0.5 / copy_l2 + memory, memory};
  }
  /// Time to copy `bytes` from a place with one working set (bytes) to a place with another.
  [[nodiscard]] Ps copy_time(int64_t bytes, double from_set, double to_set) const {
    if (bytes <= 0) return 0;
    return to_ps(static_cast<double>(bytes) * (copy_side(from_set, from_set, 1).time + copy_side(to_set, to_set, 2).time));
  }
};

}  // namespace retrompi
