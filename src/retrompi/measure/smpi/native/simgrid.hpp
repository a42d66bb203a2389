// The only interface to SimGrid: its clock, its actors, the platform. Differences between its versions are confined to simgrid.cpp.
#pragma once
#include <mpi.h>

#include <functional>
#include <memory>
#include <vector>

#include "event/core.hpp"
#include "event/event_heap.hpp"

namespace retrompi::online {

/// The simulated time. Events at the same time run in the order in which they were scheduled, and an actor woken by an event acts before
/// the next event: the actor that stops then continues with the events.
class Clock {
 public:
  [[nodiscard]] Ps now();
  void at(Ps t, std::function<void()> what);
  void go_on();                                       // called by an actor that is about to stop
  void stop_after(Ps t, std::function<void()> what);  // instead of the first event later than t

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
  void advance(Ps t);
  Ps last_ = 0, armed_ = kNever, limit_ = kNever;
  std::function<void()> over_;
  bool busy_ = false, woken_ = false;
  uint64_t opening_ = 0;
};
Clock& simulated();

/// The running actor, stopped and woken by others.
class Sleeper {
 public:
  Sleeper();
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  void stop();  // until `wake`, which may have been called before
  void wake();

 private:
  struct Inside;
  std::unique_ptr<Inside> in_;
};

/// References to SimGrid's objects, by which it knows that they are in use after the program has freed them.
void keep(MPI_Datatype type);
void keep(MPI_Op op);
void release(MPI_Datatype type);
void release(MPI_Op op);

/// As SimGrid's MPI_Pack, MPI_Unpack and MPI_Reduce_local, but also of a handle that the program has freed, and at MPI_BOTTOM (null).
void pack(MPI_Datatype type, const void* at, int count, std::vector<char>& data);
void unpack(MPI_Datatype type, const std::vector<char>& data, void* at, int count);
void combine(MPI_Op op, const void* in, void* both, int count, MPI_Datatype type);

/// A handle of the program that stays valid while this exists.
template <class T>
class Kept {
 public:
  Kept(T handle) : handle_(handle) { keep(handle); }
  Kept(const Kept& other) : Kept(other.handle_) {}
  Kept& operator=(const Kept& other) {
    keep(other.handle_);
    release(handle_);
    handle_ = other.handle_;
    return *this;
  }
  ~Kept() { release(handle_); }
  operator T() const { return handle_; }

 private:
  T handle_;
};

int64_t actor();  // number of the running actor, from 1 on; 0: none
/// Publishes the number of a new communicator to its members; SMPI's own method is a broadcast, in which they would wait.
void number_communicators(std::function<int(MPI_Comm)> number);
void on_deadlock(std::function<void()> what);
void on_end(std::function<void()> what);  // of the running actor

}  // namespace retrompi::online
