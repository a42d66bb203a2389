// Used by every part of the engine: time, the event loop, coroutines, random numbers, and how a simulation ends early.
#pragma once
#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>

#include "event/loop.hpp"
#include "event/task.hpp"
#include "event/time.hpp"

namespace retrompi {

/// The model, the platform or the trace requires something that cannot be simulated.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// SplitMix64 (Steele, Lea, Flood 2014): tiny, seedable, identical on every machine; std distributions are not.
class Rng {
 public:
  explicit Rng(uint64_t seed) : s_(seed) {}
  uint64_t next() {
    uint64_t z = (s_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  [[nodiscard]] uint64_t state() const { return s_; }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t s_;
};

}  // namespace retrompi
