// The only door to SimGrid: its clock, its actors, the platform. What differs between its versions is in simgrid.cpp.
#pragma once
#include <mpi.h>

#include <functional>
#include <memory>

#include "event/core.hpp"
#include "event/event_heap.hpp"

namespace retrompi::online {

/// The simulated time. What happens at one time happens in the order in which it was asked for, and whom an event wakes acts before the
/// next event: who stops then goes on with the events.
class Clock {
 public:
  [[nodiscard]] Ps now();
  void at(Ps t, std::function<void()> what);
  void go_on();  // by an actor that is about to stop

 private:
  struct Event {
    Ps t;
    uint64_t order;
    std::shared_ptr<std::function<void()>> what;
  };
  friend class Sleeper;
  void due(Ps t);
  void run();
  void in_any_case(Ps t);
  EventHeap<Event> coming_;
  uint64_t order_ = 0;
  Ps last_ = 0, armed_ = kNever;
  bool busy_ = false, woken_ = false;
  uint64_t opening_ = 0;
};
Clock& simulated();

/// The actor that runs now, stopped and woken by others.
class Sleeper {
 public:
  Sleeper();
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  void stop();  // until `wake`, which may have come before
  void wake();

 private:
  struct Inside;
  std::unique_ptr<Inside> in_;
};

int64_t actor();  // its number, from 1 on; 0: none runs
/// Who tells the members of a new communicator its number; SMPI's own way is a broadcast, for which they would wait.
void number_communicators(std::function<int(MPI_Comm)> number);
void on_deadlock(std::function<void()> what);

}  // namespace retrompi::online
