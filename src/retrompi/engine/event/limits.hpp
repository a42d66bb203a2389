// Bounds on the work of a simulation: events, wall time, memory. A run that reaches one ends with what it has computed so far.
#pragma once
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>

namespace retrompi {

/// A bound is reached: an outcome, not a defect.
struct Limit {
  std::string reason;
};

/// 0: unbounded.
struct LimitSpec {
  uint64_t events = 0;
  double wall_s = 0;
  int64_t memory = 0;  // bytes in addition to those that the process has at the start
};

/// Counts events and looks at the clock now and then. A process that was stopped meanwhile (Ctrl-Z, another job's turn in the studio) is
/// not charged for it: an interval between two looks, which takes about a millisecond, counts as a second at most.
class EffortWatch {
 public:
  void start(const LimitSpec& s) {
    spec_ = s;
    spent_s_ = 0;
    looked_ = std::chrono::steady_clock::now();
    next_ = s.wall_s > 0 ? 0 : s.events > 0 ? s.events : UINT64_MAX;
  }
  /// Whether there is something to `look` at before the event that so many came before. The number of events is exact, the clock is read
  /// every `kEvery` events.
  [[nodiscard]] bool due(uint64_t executed) const { return executed >= next_; }
  /// Throws Limit if no more events may run.
  void look(uint64_t executed) {
    if (spec_.events > 0 && executed >= spec_.events) throw Limit{"the bound of " + std::to_string(spec_.events) + " events is reached"};
    if (spec_.wall_s > 0) {
      const auto now = std::chrono::steady_clock::now();
      spent_s_ += std::min(std::chrono::duration<double>(now - looked_).count(), 1.0);
      looked_ = now;
      if (spent_s_ >= spec_.wall_s) {
        char text[64];
        std::snprintf(text, sizeof text, "the bound of %g s of wall time is reached", spec_.wall_s);
        throw Limit{text};
      }
    }
    next_ = UINT64_MAX;
    if (spec_.wall_s > 0) next_ = executed + kEvery;
    if (spec_.events > 0 && spec_.events < next_) next_ = spec_.events;
    if (each_) next_ = 0;
  }
  /// From now on, every event is looked at.
  void look_at_each() {
    each_ = true;
    next_ = 0;
  }

 private:
  static constexpr uint64_t kEvery = 1024;
  LimitSpec spec_;
  std::chrono::steady_clock::time_point looked_;
  double spent_s_ = 0;
  uint64_t next_ = UINT64_MAX;
  bool each_ = false;
};

/// While it lives, the process gets no more than so much memory (RLIMIT_DATA): an allocation beyond throws std::bad_alloc. The system
/// keeps the count, so no allocation escapes it, and what a run reserves at once is refused before it is there.
class MemoryBound {
 public:
  explicit MemoryBound(int64_t bytes) {
    if (bytes <= 0 || getrlimit(RLIMIT_DATA, &before_) != 0) return;
    // What earlier runs have freed is given back, or counts: a run may not have it besides.
    malloc_trim(0);
    const auto held = static_cast<int64_t>(mallinfo2().fordblks);
    const auto all = static_cast<rlim_t>(std::max<int64_t>(in_use() - held, 0) + bytes);
    if (before_.rlim_cur != RLIM_INFINITY && before_.rlim_cur <= all) return;
    rlimit now = before_;
    now.rlim_cur = before_.rlim_max == RLIM_INFINITY || all < before_.rlim_max ? all : before_.rlim_max;
    set_ = setrlimit(RLIMIT_DATA, &now) == 0;
  }
  ~MemoryBound() {
    if (set_) setrlimit(RLIMIT_DATA, &before_);
  }
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;

 private:
  /// What the system counts against RLIMIT_DATA already, in bytes; 0 where it does not say.
  static int64_t in_use() {
    std::FILE* f = std::fopen("/proc/self/status", "re");
    if (!f) return 0;
    char line[256];
    long long kib = 0;
    while (std::fgets(line, sizeof line, f))
      if (std::sscanf(line, "VmData: %lld kB", &kib) == 1) break;
    std::fclose(f);
    return static_cast<int64_t>(kib) * 1024;
  }
  rlimit before_{};
  bool set_ = false;
};

}  // namespace retrompi
