// What all parts of one simulation share, and what the processes of one of its jobs have in common.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "host/host.hpp"
#include "network/counters.hpp"
#include "network/net.hpp"
#include "network/wire.hpp"
#include "record/profile.hpp"
#include "record/timeline.hpp"

namespace retrompi {

class Proc;

/// State shared by all parts of one simulation.
struct World {
  Loop loop;
  Anatomy anatomy;
  std::deque<std::unique_ptr<Host>> hosts;
  std::unique_ptr<Wire> wire;
  std::unique_ptr<Net> net;
  std::deque<std::unique_ptr<Proc>> procs;  // of all jobs
  int32_t channels = 0;                     // created so far
};

/// What the processes of one job have in common, ranks and others.
struct Common {
  uint32_t number = 1;  // of the job, as the loop's owner
  Counters count;
  Rng rng{1};
  Timeline* timeline = nullptr;
  CallProfile* profile = nullptr;
  int64_t unexpected_limit = 0;  // bytes of library memory for unexpected messages; 0: only the machine's
  double compute_scale = 1;      // of every amount of computation in the trace
  double memory_share = 0;       // share of a computation spent on the host's shared memory bus
  std::vector<Lock> pool_locks;  // host -> of the shared memory that runtimes guard by one lock
  void put_common(State& s) const {
    // What is counted and recorded has no effect; the rest does not change.
    const auto& [number, count, rng, timeline, profile, unexpected_limit, compute_scale, memory_share, pool_locks] = *this;
    s.put(rng.state());
    for (const Lock& lock : pool_locks)
      if (lock.held) s.refuse();
  }
};

}  // namespace retrompi
