// A host's figures and what follows from them alone, for the engine and for the SMPI plug-in.
#pragma once
#include <cmath>

#include "event/core.hpp"

namespace retrompi {

/// Published or assumed figures of one host; all times already in picoseconds on this host.
struct HostSpec {
  std::string name;
  double speed = 1;
  int cores = 1;
  Ps quantum = 0, tick = 0, dispatch = 0, syscall = 0;
  int boost = 0;                 // priority added to a thread that a kernel object wakes
  bool quantum_carry = false;    // the rest of a quantum outlives a wait
  Ps wait_charge = 0;            // taken off the quantum for each wait
  bool quantum_at_tick = false;  // a quantum ends at a clock tick
  double l1 = 0, l2 = 0;         // bytes
  double l2_ways = 4;
  double copy_l1 = 0, copy_l2 = 0, copy_mem = 0;  // bytes per second, each byte counted once
  Ps tcp_segment = 0, interrupt = 0, loopback_segment = 0;
  double tcp_byte = 0;  // picoseconds per byte
  int64_t loopback_mss = 0, window = 0, mss = 0, sndbuf = 0;
  Ps delayed_ack = 0;
  Ps rto_first = 0, rto_min = 0, rto_max = 0;  // TCP's retransmission timer before a round trip is timed; its bounds
  int tcp_retries = 1, dup_acks = 1;
  double nic_rate = 0;  // bytes per second over the card's bus
  Ps nic_latency = 0;
  double bus_rate = 1;  // bytes per second between memory and card, both directions together
  Ps tick_phase = 0;    // clocks of two machines are not synchronised
  double flops = 1;
  bool big_endian = false;
  // Several cores: which of them share caches and buses, and what a line costs that another core holds.
  int l2_shared_by = 1, package_cores = 1;
  Ps line_shared = 0, line_bus = 0;
  double lines_in_flight = 1;  // such lines that a copy fetches at a time
  double fsb_rate = 1;         // bytes per second over a package's front-side bus

  /// A cost stated for the reference host, on this host.
  [[nodiscard]] Ps scaled(Ps reference) const { return static_cast<Ps>(static_cast<double>(reference) / speed + 0.5); }
  /// The first tick that is not before `t`.
  [[nodiscard]] Ps next_tick(Ps t) const { return tick_phase + (t - tick_phase + tick - 1) / tick * tick; }
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
  /// Time to copy `bytes` from a place with one working set (bytes) to a place with another.
  [[nodiscard]] Ps copy_time(int64_t bytes, double from_set, double to_set) const {
    if (bytes <= 0) return 0;
    // A line is read once and written once; a line that is written in main memory is fetched first and written back later, so
    // writing is two thirds of a copy there (E-LM-01, E-LM-02 and E-LM-09 agree on this).
    auto side = [this](double ws, double mem_share) {
      if (ws <= l1) return 0.5 / copy_l1;
      const double miss = misses(ws);
      return (1 - miss) * 0.5 / copy_l2 + miss * mem_share / copy_mem;
    };
    return to_ps(static_cast<double>(bytes) * (side(from_set, 1.0 / 3) + side(to_set, 2.0 / 3)));
  }
};

}  // namespace retrompi
