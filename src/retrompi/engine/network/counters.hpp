// What is counted of a job's run.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "generated/specs.hpp"
#include "trace/op.hpp"

namespace retrompi {

/// Counters of a job: those declared in spec/declare/result.py, and its actions.
struct Counters : CounterFields {
  std::array<int64_t, OP_COUNT> done{};  // actions of the trace carried out, by Op
  /// What was counted from `a` to `b` happens `n` times more.
  void repeat(const Counters& a, const Counters& b, int64_t n) {
    each([&](const char*, auto field) { this->*field += n * (b.*field - a.*field); });
    for (size_t op = 0; op < done.size(); ++op) done[op] += n * (b.done[op] - a.done[op]);
  }
};

}  // namespace retrompi
