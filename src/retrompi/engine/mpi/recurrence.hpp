// Repetitions of a job that take the same course are simulated once.
//
// Where nothing interferes, a program that repeats the same calls comes back to the same state: what every process, host, socket and link does
// next, and when, is the same as some calls before. What follows is then known until the calls change, and is left out: the time, the counters
// and the actions of whole periods are added. Nothing has to be undone, since nobody else takes part.
//
// Equal means equal in every word (event/state.hpp): times are relative to now. The phase of a host's clock is not among the words, as it
// changes with every repetition; the loop counts where it mattered (Loop::tick_uses), and then a period is only repeated if it is a multiple
// of the tick. What may be recorded (anatomy, timeline, profile) is not left out: such runs are simulated in full.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "mpi/job.hpp"

namespace retrompi {

class Recurrence {
 public:
  Recurrence(World& w, Job& job, std::span<Proc* const> processes, std::function<void(State&)> channels)
      : w_(w), job_(job), processes_(processes), channels_(std::move(channels)) {}
  /// A rank begins an action. Returns whether actions of it are left out.
  bool at(Rank& rank) { return w_.loop.executed() >= next_look_ && (!anchor_ || anchor_ == &rank) && look(rank); }

 private:
  /// What adds up while the job runs.
  struct Sums {
    Counters count;
    uint64_t contended = 0;
    struct OfRank {
      size_t place;
      Ps mpi, compute;
      int64_t sends, receives, bytes_sent, bytes_received;
    };
    std::vector<OfRank> ranks;
    std::vector<Ps> used;  // by process
  };
  struct Instant {
    const Rank* rank = nullptr;
    Ps now;
    uint64_t tick_uses = 0;
    std::vector<int64_t> words;
    Sums sums;
  };
  bool look(Rank& rank);
  [[nodiscard]] bool told(Rank& rank, State& s);
  void fail();
  [[nodiscard]] bool quiet(const Rank& rank) const;
  [[nodiscard]] Instant instant(const Rank& rank, std::vector<int64_t> words) const;
  [[nodiscard]] bool at_ticks(Ps period) const;
  [[nodiscard]] int64_t repetitions(const Instant& a, const Instant& b) const;
  [[nodiscard]] int64_t repeated(const Rank& rank, size_t from, size_t period) const;
  void leave_out(int64_t n, const Instant& a, const Instant& b);

  static constexpr size_t kInstants = 12;
  static constexpr uint64_t kSoon = 24;  // looks in short succession
  static constexpr int kFailures = 32;   // looks at a rank's calls at which others were at work
  World& w_;
  Job& job_;
  std::span<Proc* const> processes_;
  std::function<void(State&)> channels_;  // puts their state
  std::vector<Instant> instants_;         // the last ones, in a ring
  size_t next_ = 0;
  const Rank* anchor_ = nullptr;  // at whose calls it looks; null: at everybody's
  int failures_ = 0;              // one after another
  Ps last_look_ = -1;
  uint64_t looks_ = 0;      // in vain since the last repetition
  uint64_t next_look_ = 0;  // not before so many events
};

}  // namespace retrompi
