// What is counted of a job's run.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/op.hpp"

namespace retrompi {

/// Counters of a run.
struct Counters {
  int64_t messages = 0, bytes = 0, packets = 0, frames = 0, delivered = 0, delivered_bytes = 0, retransmissions = 0, duplicates = 0;
  int64_t lost = 0;                      // frames lost on a failed component
  int64_t own_bytes = 0;                 // bytes of point-to-point messages, without collectives
  std::array<int64_t, OP_COUNT> done{};  // actions of the trace carried out, by Op
  /// Calls `f` with each of them but `done`.
  template <class F>
  static void each(F f) {
    for (const auto field : {&Counters::messages, &Counters::bytes, &Counters::packets, &Counters::frames, &Counters::delivered,
                             &Counters::delivered_bytes, &Counters::retransmissions, &Counters::duplicates, &Counters::lost, &Counters::own_bytes})
      f(field);
  }
  /// What was counted from `a` to `b` happens `n` times more.
  void repeat(const Counters& a, const Counters& b, int64_t n) {
    each([&](auto field) { this->*field += n * (b.*field - a.*field); });
    for (size_t op = 0; op < done.size(); ++op) done[op] += n * (b.done[op] - a.done[op]);
  }
};

}  // namespace retrompi
