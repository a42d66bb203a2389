// Repetitions of a job that take the same course are simulated once.
//
// Where nothing interferes, a program that repeats the same calls comes back to the same state: what every process, host, socket and link does
// next, and when, is the same as some calls before. What follows is then known until the calls change, and is left out: the time, the counters
// and the actions of whole periods are added. Nothing has to be undone, since nobody else takes part.
//
// Equal means equal in every word (event/state.hpp): times are relative to now. The phase of a host's clock is not among the words, as it
// changes with every repetition; the loop counts where it mattered (Loop::tick_uses), and then a period is only repeated if it is a multiple
// of the tick. What may be recorded (anatomy, timeline, profile) is not left out: such runs are simulated in full.
//
// The period after those that were left out has to end in that state as well, on time, with everything grown as it did in the period before. If
// not, a clock's tick came into it or something that matters is missing among the words: the run ends there and is simulated again in full by
// sim/repetitions.py, which also runs programs both ways and compares them.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "mpi/job.hpp"

namespace retrompi {

class Recurrence {
 public:
  Recurrence(World& w, Job& job, std::span<Proc* const> processes, std::function<void(State&)> channels)
      : w_(w), job_(job), processes_(processes), channels_(std::move(channels)) {}
  /// A rank begins an action, or waits next, in a `coroutine`: where all do the same at the same time, the last of them finds all others waiting.
  /// Returns whether actions of it are left out.
  bool at(Rank& rank, const void* coroutine = nullptr) {
    if (distrusted_) return false;
    if (repeated_) {
      confirm(rank, coroutine);
      return false;
    }
    if (!coroutine && --until_next_call_ <= 0) look_at_call(rank);
    const uint64_t events = w_.loop.executed();
    if (!repeated_ && events >= next_look_ && (anchor_.rank == &rank || events >= anchor_.until)) look_at_anchor(rank, coroutine);
    return repeated_.has_value();
  }
  /// Events of the periods that were left out.
  [[nodiscard]] uint64_t events_left_out() const { return events_left_out_; }
  /// Whether the same state took two courses: it is not told completely.
  [[nodiscard]] bool distrusted() const { return distrusted_; }
  /// Whether it is not known that what was left out was rightly so: the run is worth nothing.
  [[nodiscard]] bool unconfirmed() const { return repeated_.has_value(); }

 private:
  /// What adds up while the job runs.
  struct Sums {
    Counters count;
    uint64_t contended = 0;
    struct OfRank {
      RankCounters count;
      size_t place;
      Ps age;  // of the call at this place
    };
    std::vector<OfRank> ranks;
    std::vector<Ps> used;  // by process
    uint64_t events = 0;   // executed
  };
  struct Instant {
    const Rank* rank = nullptr;
    Ps now;
    uint64_t tick_uses = 0;
    std::vector<int64_t> words;
    Sums sums;
  };
  /// Instants that a state is compared with: the last ones, in a ring.
  struct Series {
    std::vector<Instant> instants;
    size_t next = 0;
    int64_t looks = 0;  // in vain since the last repetition
  };
  /// Two instants of the same state.
  struct Period {
    Instant begin, end;
  };
  void look_at_call(Rank& rank);
  void look_at_anchor(Rank& rank, const void* coroutine);
  bool look(Rank& rank, const void* coroutine, Series& series);
  void confirm(Rank& rank, const void* coroutine);
  [[nodiscard]] bool put_state(Rank& rank, const void* coroutine, State& s);
  [[nodiscard]] bool anchored(const Rank& rank, const void* coroutine) const;
  [[nodiscard]] bool quiet(const Rank& rank) const;
  [[nodiscard]] Instant instant(const Rank& rank, const void* coroutine, std::vector<int64_t> words) const;
  [[nodiscard]] bool like(const Instant& a, const Instant& b) const;
  [[nodiscard]] static size_t moved(const Period& p, const Rank& rank);
  [[nodiscard]] static bool alike(const Period& one, const Period& other);
  [[nodiscard]] bool at_ticks(Ps period) const;
  [[nodiscard]] int64_t repetitions(const Period& of) const;
  [[nodiscard]] int64_t repeated(const Rank& rank, size_t from, size_t period, int64_t most) const;
  void leave_out(int64_t n, const Period& period);

  static constexpr size_t kInstants = 16;
  static constexpr int64_t kSoon = 24, kRarest = 512;
  World& w_;
  Job& job_;
  std::span<Proc* const> processes_;
  std::function<void(State&)> channels_;  // puts their state
  // Every call at first, then ever fewer: a program of few messages has soon been seen twice at the same place.
  Series at_calls_;
  int64_t until_next_call_ = 1;
  // A large one goes on for long between two such looks: they are spaced by events, at one place of the program.
  Series at_anchor_;
  std::optional<Period> repeated_;  // what was left out last were repetitions of it; the next one ends at `due_`
  Instant from_;                    // and begins here
  Ps due_ = 0;
  bool distrusted_ = false;  // the same state took two courses
  uint64_t events_left_out_ = 0;
  uint64_t next_look_ = 0;  // not before so many events
  size_t size_ = 0;         // of the last state, in words
  struct {                  // where it looks, so that two looks are soon a period apart; anywhere once so many events are over
    const Rank* rank = nullptr;
    Action action;
    bool waits = false;
    uint64_t until = 0;
  } anchor_;
};

}  // namespace retrompi
