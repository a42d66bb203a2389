// One MPI job in a world: its ranks, its trace, its communicators and its pools of messages and requests.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "channel/proc.hpp"
#include "coll/coll.hpp"
#include "mpi/request.hpp"
#include "trace/trace.hpp"

namespace retrompi {

class Rank;
class Recurrence;

struct MarkTime {
  int32_t rank, label;
  Ps time;
};

/// The cost of a named piece of computation: ``seconds[host]`` at one vector length.
struct KernelRow {
  std::string name;
  int64_t n;
  std::vector<double> seconds;
};

/// A communicator as the engine uses it: one for all its members; of an intercommunicator one for each side.
struct Group {
  int32_t comm = 0;            // index in Trace::comms
  int32_t n = 0, remote = 0;   // members, those of the other side
  bool low = true;             // of two sides the first
  std::vector<int32_t> world;  // rank -> rank of the world, the other side's after the own; empty: the same
  std::vector<int32_t> host;   // rank -> host index
  [[nodiscard]] int32_t of_world(int32_t rank) const { return rank < 0 || world.empty() ? rank : world[static_cast<size_t>(rank)]; }
};

/// An order in which calls of the ranks begin.
struct CallOrder {
  struct Call {
    int32_t rank = 0;
    uint32_t line = 0;
    bool begun = false;
  };
  std::vector<Call> calls;
  Call now;          // the last that may begin
  bool over = true;  // every call may begin
};

/// What a job has beside what every job's processes know.
class JobParts {
 public:
  World& world;
  std::string suffix;                // of the names of its processes: " of NAME" for a further job
  Callback over;                     // called when its last rank has finished
  Recurrence* recurrence = nullptr;  // where repetitions may be left out
  const Trace& trace;
  RmaSpec rma_same, rma_remote;
  coll::Table collectives;
  bool free_wildcards = false;  // receives from any source match the first arrival, not the recorded message
  /// Calls begin in this order, each when all that went before has come to rest; all others wait until it is over.
  CallOrder order;
  std::vector<Rank*> ranks;
  std::vector<MarkTime> marks;
  int32_t finished = 0;

 private:
  friend class Job;
  JobParts(World& w, const Trace& t, const std::vector<KernelRow>& kernels) : world(w), trace(t), kernels_(kernels) {}
  const std::vector<KernelRow>& kernels_;
  std::vector<std::unique_ptr<Group>> groups_;  // as they are used
  std::deque<Message> messages_;
  std::deque<Request> requests_;
  std::vector<Message*> free_messages_;
  std::vector<Request*> free_requests_;
};

class Job : public Common, public JobParts {
 public:
  Job(World& w, const Trace& t, const std::vector<KernelRow>& kernels) : JobParts(w, t, kernels) { pool_locks.resize(w.hosts.size()); }
  /// Its future, in words, but that of its processes and channels.
  void state(State& s) const {
    // Messages and requests are put where they are met; what is made on first use has no effect; marks are no calls that repeat.
    const auto& [world, suffix, over, recurrence, trace, rma_same, rma_remote, collectives, free_wildcards, order, ranks, marks, finished, kernels_,
                 groups_, messages_, requests_, free_messages_, free_requests_] = static_cast<const JobParts&>(*this);
    put_common(s);
    s.put(finished);
    if (!order.over) s.refuse();
  }

  /// Whether a rank may begin the call on this line of the trace: when its turn has come, or on its way to one that the order names.
  [[nodiscard]] bool may_begin(int32_t r, uint32_t line) const;
  /// Everything is at rest: lets the first call of the order begin that can; every one if none can. False when there is no order to follow.
  bool next_call();
  [[nodiscard]] Rank& rank(int32_t r) const {
    RETROMPI_ASSERT(r >= 0 && static_cast<size_t>(r) < ranks.size());
    return *ranks[static_cast<size_t>(r)];
  }
  [[nodiscard]] const std::vector<int64_t>& vector(int32_t index) const {
    RETROMPI_ASSERT(index >= 0 && static_cast<size_t>(index) < trace.vec.size());
    return trace.vec[static_cast<size_t>(index)];
  }
  [[nodiscard]] const Comm& comm(int32_t index) const { return trace.comms[static_cast<size_t>(index)]; }
  [[nodiscard]] const Group& group(int32_t comm, bool low = true);
  /// Seconds of one repetition of a Kernel action on a host; ConfigError when none are given.
  [[nodiscard]] double kernel_seconds(size_t host, const action::Kernel& kernel) const;

  Message& new_message();
  Request& new_request(Request::Kind kind);
  void free_message(Message& m) { free_messages_.push_back(&m); }
  void free_request(Request& r) { free_requests_.push_back(&r); }
  /// Includes free ones.
  [[nodiscard]] const std::deque<Message>& messages() const { return messages_; }
};

}  // namespace retrompi
