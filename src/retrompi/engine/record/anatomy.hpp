// The anatomy of a message: where each picosecond between two instants went, as a chain of causes.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "event/core.hpp"
#include "record/critical_path.hpp"
#include "record/message_path.hpp"

namespace retrompi {

/// What an interval of time was spent on. `Wait` is never reported: it is replaced by the cause of the wait.
enum class Stage : uint8_t {
  Library,    // the MPI library's own instructions
  Copy,       // memory copies
  Syscall,    // user/kernel transitions, socket calls
  Event,      // signalling and waking through a kernel object
  Switch,     // context switch
  Tick,       // waiting for a clock tick
  Quantum,    // ready, but another process burns its quantum spinning
  Queueing,   // ready, but the CPU or the device does useful work for others
  Poll,       // a polling loop noticing what has already arrived
  Stack,      // TCP/IP protocol processing in the kernel
  Interrupt,  // interrupted by the kernel
  Nic,        // moving a frame over the card's bus
  Wire,       // on the cable
  Ack,        // waiting for an acknowledgement or its timer
  Compute,    // the application's own computation
  Lock,       // taking and releasing the library's lock
  Line,       // transfer of a cache line from another core
  Wait,
  Latency,  // of a cable or a switch; only on the critical path, the anatomy counts it as Wire
};
inline const char* stage_name(Stage s) {
  static constexpr const char* names[] = {"library",   "copy", "syscall", "event", "switch",  "tick", "quantum", "queueing", "poll",   "stack",
                                          "interrupt", "nic",  "wire",    "ack",   "compute", "lock", "line",    "wait",     "latency"};
  return names[static_cast<int>(s)];
}

/// What a waiting process is waiting for.
enum class WaitFor : uint8_t { Work, Message, Send, Space, Lock, Count };
inline const char* wait_name(WaitFor w) {
  static constexpr const char* names[] = {"nothing to do", "a message", "a send", "room", "a lock"};
  return names[static_cast<int>(w)];
}

/// The cause of something: a thread (at the time of causing) or a recorded piece of kernel, card or wire work.
struct Cause {
  enum Kind : uint8_t { None, Thread, Record } kind = None;
  int32_t id = -1;
  int32_t packet = -1;  // the packet it moves: an index of `MessagePath::packets`
};

class Timeline;

class Anatomy {
 public:
  bool on = false;
  bool log = false;  // whether intervals of threads are recorded, for the anatomy, a timeline or the critical path
  Timeline* timeline = nullptr;
  Cause current;  // what is executing now
  MessagePath path;
  CriticalPath critical;
  /// The point on the critical path of what happens at `t` whatever the run does: a failure, a kill, a job's start, a frame of cross traffic.
  [[nodiscard]] CriticalPath::Point appointed(Ps t, std::string_view what) {
    return critical.on ? critical.extend_to_fixed(0, t, Stage::Wait, critical.place(std::string(what))) : 0;
  }

  int add_thread(const std::string& name) {
    threads_.push_back({name, {}, {}});
    return static_cast<int>(threads_.size()) - 1;
  }
  [[nodiscard]] size_t threads() const { return threads_.size(); }
  void segment(int thread, Ps begin, Ps end, Stage s, WaitFor why) {
    if (log && end > begin) keep(thread, begin, end, s, why);
  }
  void signalled(int thread, Ps t) {
    if (on) threads_[static_cast<size_t>(thread)].signals.push_back({t, current});
  }
  /// Work outside threads. `asked`..`start` is queueing. Returns an id for `finish`.
  int32_t record(const char* where, Stage s, Ps asked, Ps start, Ps end, Stage before = Stage::Queueing) {
    if (!on) return -1;
    records_.push_back({where, s, before, asked, start, end, current});
    return static_cast<int32_t>(records_.size()) - 1;
  }
  /// The work is done for the same packet as its cause.
  [[nodiscard]] Cause of(int32_t rec) const { return rec < 0 ? Cause{} : Cause{Cause::Record, rec, records_[static_cast<size_t>(rec)].by.packet}; }
  /// Attributes the following work to this packet, until another cause executes.
  void attribute(const NetworkPacket& p) {
    if (path.on) current.packet = path.add(p);
  }

  struct Row {
    std::string stage, process;
    Ps ps;
  };
  /// Splits [begin, end] as seen by `thread`, following the causes backwards. The parts sum to end - begin exactly.
  [[nodiscard]] std::vector<Row> split(int thread, Ps begin, Ps end) const;

  /// An interval of the chain of causes; each ends where the next begins.
  struct Link {
    Ps begin, end;
    Stage s;
    Cause by;  // None: the clock
  };
  /// [begin, end] as seen by `thread`, in order of time.
  [[nodiscard]] std::vector<Link> chain(int thread, Ps begin, Ps end) const;
  [[nodiscard]] std::string name(const Cause& c) const {
    if (c.kind == Cause::None) return "clock";
    return c.kind == Cause::Thread ? threads_[static_cast<size_t>(c.id)].name : records_[static_cast<size_t>(c.id)].where;
  }

  struct Seg {
    Ps begin, end;
    Stage s;
    WaitFor why;
  };
  struct Rec {
    const char* where;
    Stage s, before;
    Ps asked, start, end;
    Cause by;
  };
  [[nodiscard]] const std::vector<Seg>& stretches(int thread) const { return threads_[static_cast<size_t>(thread)].segs; }
  [[nodiscard]] const std::vector<Rec>& records() const { return records_; }
  void clear() {
    for (auto& t : threads_) t.segs.clear(), t.signals.clear();
    records_.clear();
    current = {};
  }

 private:
  void keep(int thread, Ps begin, Ps end, Stage s, WaitFor why);
  /// The chain backwards.
  template <class F>
  void walk(int thread, Ps begin, Ps end, F add) const;
  struct Signal {
    Ps t;
    Cause by;
  };
  struct ThreadLog {
    std::string name;
    std::vector<Seg> segs;
    std::vector<Signal> signals;
  };
  std::vector<ThreadLog> threads_;
  std::vector<Rec> records_;
};

}  // namespace retrompi
