// Collectives of a rank: the requested operation, and the steps of the algorithm that carries it out (engine/coll/ has the algorithms). A
// blocking call executes them to the end; a non-blocking one as far as it can without waiting, and further whenever the rank is in the library.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "coll/coll.hpp"
#include "mpi/job.hpp"

namespace retrompi {

/// A collective in progress: the steps of its algorithm and the requests that they have started.
struct CollectiveRun {
  coll::Steps steps;
  const Group* group = nullptr;
  int32_t tag = 0;
  bool blocked = false;  // at a step that waits
  size_t passed = 0;     // WaitAll: of `open`, how many are done
  struct Open {
    int32_t slot;
    Request* r;
  };
  std::vector<Open> open;
  Request* request = nullptr;   // non-blocking: the program's
  double flops = 0;             // after it
  std::vector<int64_t> counts;  // non-blocking: what Args::out and in name
};

class Collectives {
 public:
  struct Member {  // this rank in a communicator
    const Group* group = nullptr;
    int32_t me = 0;
    int32_t tag = 0;  // of the last collective
    int32_t next_tag() { return tag = (tag + 1) & 0x3fffffff; }
  };
  explicit Collectives(Rank& rank) : rank_(rank) {}
  /// A collective of the program.
  Task execute(const Action& a);
  /// Steps of the library itself, to the end.
  Task follow(coll::Steps steps, int32_t comm);
  /// A collective of the library itself.
  Task internal(int32_t comm, Op op, int64_t bytes);
  Task barrier(int32_t comm) { return internal(comm, Op::Barrier, 0); }
  /// The arguments common to every collective of this rank in a communicator.
  [[nodiscard]] coll::Args own_args(int32_t comm);
  [[nodiscard]] Member& member(int32_t comm);

  /// The steps of a collective of the program, as a call of this rank would take them.
  [[nodiscard]] coll::Steps planned(const Action& a) { return steps(a, args(a)); }

  /// Its future, in words: of no collective, or of one that takes no step meanwhile, of which the number of steps says where it is. Tags and what is
  /// left of a shared buffer only change in one.
  void state(State& s) const;
  /// Whether no non-blocking collective is in progress.
  [[nodiscard]] bool idle() const { return running_.empty(); }
  [[nodiscard]] bool can_advance() const;
  /// Advances all non-blocking collectives that can make progress.
  Task advance_all();

  [[nodiscard]] const CollectiveRun& blocking() const { return blocking_; }
  [[nodiscard]] const std::vector<std::unique_ptr<CollectiveRun>>& running() const { return running_; }

 private:
  Task start(const Action& a);
  /// Advances a collective until it ends; `blocking` false: until it has to wait.
  Task advance(CollectiveRun& c, bool blocking);
  [[nodiscard]] bool can_go_on(const CollectiveRun& c) const;
  [[nodiscard]] coll::Args args(const Action& a);
  [[nodiscard]] coll::Steps steps(const Action& a, coll::Args args) const;

  Rank& rank_;
  Member world_;
  std::unordered_map<int32_t, Member> members_;
  CollectiveRun blocking_;                                // there is one at a time
  std::vector<std::unique_ptr<CollectiveRun>> running_;   // non-blocking, in the order of their calls
  std::vector<std::unique_ptr<CollectiveRun>> finished_;  // for reuse
  bool advancing_ = false;
  int64_t taken_ = 0;       // steps, of all of them
  int32_t copied_out_ = 0;  // receivers that have copied out of this rank's shared buffer of a broadcast
};

}  // namespace retrompi
