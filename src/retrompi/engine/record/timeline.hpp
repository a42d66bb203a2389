// The timeline of a run: the states of each process over time, the MPI calls of the ranks, and the messages with the processes they passed.
//
// Memory is bounded. Beyond the limit it samples deterministically: states shorter than a resolution are merged, and every k-th call of a
// rank and every k-th message is kept. Resolution and k double as needed. In a merged stretch each state is kept once, with the time that it
// had there in all: what is given up is their order, never a share.
#pragma once
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "event/core.hpp"
#include "record/anatomy.hpp"

namespace retrompi {

struct Action;

/// The activity of a process: a Stage, with waiting divided by what is waited for.
constexpr size_t kStates = static_cast<size_t>(Stage::Wait) + static_cast<size_t>(WaitFor::Count);
inline uint8_t state_of(Stage s, WaitFor w) {
  return s == Stage::Wait ? static_cast<uint8_t>(static_cast<size_t>(Stage::Wait) + static_cast<size_t>(w)) : static_cast<uint8_t>(s);
}
std::string state_name(size_t state);

struct TimelineSpec {
  int64_t limit = 0;            // of states, of calls and of messages; 0: no timeline
  Ps from = 0, until = kNever;  // nothing is recorded outside; sums count everything
};

class Timeline {
 public:
  struct State {
    Ps begin;
    uint8_t state;
    bool merged;  // in a stretch of states shorter than the resolution: exact in length, not in place
  };
  struct Call {
    int32_t rank;
    uint32_t line;
    uint8_t op;
    int32_t comm, peer, tag;
    int64_t bytes;
    Ps begin, end;
    uint64_t nth;  // of the rank's calls
    bool open;     // it had not returned when the run ended
  };
  struct Hop {
    int32_t process;
    Ps in, out;  // first packet in, last packet handed on; -1: not yet
  };
  struct Message {
    int32_t src, dst, tag, ctx;
    int64_t bytes;
    uint32_t line;
    Ps sent, received;  // received: -1 when the run ended first
    bool rendezvous;
    std::vector<Hop> hops;
    uint32_t receive_line = 0;  // of the call that posted the receive
  };
  struct Process {
    std::string name, kind, host;
    std::vector<State> states;  // each ends where the next begins, the last one at `end`
    Ps end = 0;
    std::array<Ps, kStates> totals{};
    bool any = false;  // has it been in a state inside the window?

   private:
    friend class Timeline;
    std::array<Ps, kStates> small_{};  // states shorter than the resolution, not yet merged
    Ps small_begin_ = 0;
    bool small_open_ = false, small_merged_ = false;
  };

  /// All traffic of a run between two ranks, whatever the limit.
  struct Traffic {
    int64_t messages = 0, bytes = 0;                   // of the program
    int64_t in_collectives = 0, collective_bytes = 0;  // sent by the library for a collective
    int64_t transfers = 0, transferred = 0;            // one-sided
  };

  Timeline(const TimelineSpec& spec, size_t processes, size_t ranks) : spec_(spec), processes(processes), open_(ranks), nth_(ranks) {}

  void segment(int thread, Ps begin, Ps end, uint8_t state);
  void begin_call(int32_t rank, Ps now) { open_[static_cast<size_t>(rank)] = now; }
  void end_call(int32_t rank, const Action& a, Ps now, bool open = false);
  /// Returns the message's number; -1: outside the window.
  int64_t sent(Message&& m);
  /// A one-sided transfer: counted, not drawn.
  void moved(int32_t origin, int32_t target, int64_t bytes);
  void hop_in(int64_t message, int process, Ps now);
  void hop_out(int64_t message, int process, Ps now);
  void received(int64_t message, Ps now, bool rendezvous, uint32_t line);
  /// Closes the timeline: the run is over.
  void finish();

  /// Minimum duration of separately recorded states, ps; 0: all are recorded.
  [[nodiscard]] Ps resolution() const { return resolution_; }
  [[nodiscard]] int64_t every_call() const { return every_call_; }
  [[nodiscard]] int64_t every_message() const { return every_message_; }
  [[nodiscard]] int64_t calls_seen() const { return calls_seen_; }
  [[nodiscard]] int64_t messages_seen() const { return messages_seen_; }
  [[nodiscard]] int64_t states_seen() const { return states_seen_; }

 private:
  void put(Process& p, Ps begin, Ps end, uint8_t state, bool merged);
  void flush(Process& p);
  void coarsen();
  /// Whether a further doubling of the resolution could not be counted.
  [[nodiscard]] bool coarsest() const { return resolution_ > kNever / 4; }
  Message* find(int64_t number) { return number % every_message_ == 0 ? &messages[static_cast<size_t>(number / every_message_)] : nullptr; }
  TimelineSpec spec_;
  Ps resolution_ = 0;
  int64_t every_call_ = 1, every_message_ = 1;
  int64_t calls_seen_ = 0, messages_seen_ = 0, states_seen_ = 0, kept_ = 0;
  int64_t later_calls_ = 0;  // of `calls`: those that are not their rank's first

 public:
  std::vector<Process> processes;  // by the number of their thread's log
  std::vector<Call> calls;
  std::vector<Message> messages;  // number / every_message() -> message
  std::map<std::pair<int32_t, int32_t>, Traffic> traffic;

 private:
  std::vector<Ps> open_;       // rank -> when its current call began
  std::vector<uint64_t> nth_;  // rank -> calls so far
};

}  // namespace retrompi
