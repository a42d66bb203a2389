// The processors of a host that has more ranks than processors, under its operating system's scheduler: the rules of
// engine/host/host.cpp for threads that compute, wait for a system object, or sleep. At the curve rung a context switch has no separate cost.
#pragma once
#include <array>
#include <deque>
#include <vector>

#include "environment.hpp"
#include "simgrid.hpp"

namespace retrompi::online {

class Processors;

/// One rank's thread. Its actor runs only while the thread holds a processor.
class Thread {
 public:
  Thread(Processors& host, Sleeper& sleeper);
  void start();     // waits for a processor
  void run(Ps ps);  // computes on it
  void doze();      // releases it until `wake`
  void sleep_until(Ps t);
  void wake();
  void end();

 private:
  friend class Processors;
  void held();  // returns when it holds a processor and has no work left there
  Processors& host_;
  Sleeper& sleeper_;
  enum class State : uint8_t { Blocked, Ready, Running } state_ = State::Blocked;
  int prio_ = 0, core_ = -1;
  Ps need_ = 0, began_ = 0, q_left_ = 0, q_end_ = 0;
  bool acting_ = false, on_clock_ = false, q_armed_ = false, done_ = false;
  uint64_t gen_ = 0, q_gen_ = 0;  // invalidate the events of an interrupted interval
};

class Processors {
 public:
  explicit Processors(const HostSpec& facts) : facts_(facts), cores_(static_cast<size_t>(facts.cores)) {}

 private:
  friend class Thread;
  static constexpr int kPriorities = 4;
  [[nodiscard]] bool others_ready(int prio) const;
  void make_ready(Thread& t, bool front = false);
  void dispatch(size_t core);
  void start_clock(Thread& t);
  void stop_clock(Thread& t);
  void release(Thread& t);
  void preempt(size_t core, bool to_front);
  void arm(size_t core);
  void set_quantum(Thread& t);
  const HostSpec& facts_;
  std::vector<Thread*> cores_;
  std::array<std::deque<Thread*>, kPriorities> ready_;
};

}  // namespace retrompi::online
