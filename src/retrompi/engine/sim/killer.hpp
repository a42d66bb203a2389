// Processes that are killed while a simulation runs.
#pragma once
#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>

#include "sim/sim.hpp"

namespace retrompi {

/// Kills processes at their times; records which deaths have happened.
class Killer {
 public:
  Killer(const SimConfig& c, World& w) : w_(w) {
    const bool all_there = std::all_of(c.further.begin(), c.further.end(), [](const JobConfig& j) { return j.start == 0; });
    for (const auto& [name, at] : c.kills) {
      if (all_there && !find(name)) throw ConfigError("there is no process '" + name + "' to kill");
      victims_.push_back({this, name, at, 0, false});
    }
    for (Victim& v : victims_) w_.loop.schedule(v.at, callback<&Victim::on_kill>(v));
  }
  /// The killed processes of a job.
  [[nodiscard]] std::string told(uint32_t job) const {
    std::string s;
    for (const Victim& v : victims_)
      if (v.dead && v.job == job) {
        char at[32];
        std::snprintf(at, sizeof at, "%g", to_s(v.at));
        s += (s.empty() ? "killed: " : ", ") + v.name + " at " + at + " s";
      }
    return s;
  }

 private:
  struct Victim {
    Killer* killer;
    std::string name;
    Ps at;
    uint32_t job;
    bool dead;
    void on_kill() {
      Proc* proc = killer->find(name);
      if (!proc || proc->thread.dead()) return;
      job = proc->common.number;
      dead = true;
      killer->w_.loop.cause = killer->w_.anatomy.appointed(at, "kills");
      proc->thread.kill();
    }
  };
  /// The latest process of that name: a background job has had several.
  [[nodiscard]] Proc* find(const std::string& name) const {
    const auto p = std::find_if(w_.procs.rbegin(), w_.procs.rend(), [&name](const auto& q) { return q->thread.name() == name; });
    return p == w_.procs.rend() ? nullptr : p->get();
  }
  World& w_;
  std::deque<Victim> victims_;
};

}  // namespace retrompi
