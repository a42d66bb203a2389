// A host: processors, the operating system's scheduler, memory, and kernel work that interrupts both.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "event/core.hpp"
#include "event/fifo.hpp"
#include "host/charge.hpp"
#include "host/host_spec.hpp"
#include "record/anatomy.hpp"

namespace retrompi {

/// What two cores share.
enum class Kinship : uint8_t { Same, Cache, Bus };

/// Where the lines of one side of a copy are found. The sets are reuse distances: bytes accessed between two uses of a line.
struct CopySide {
  double near = 0;                                  // by this core: decides the first level
  double set = 0;                                   // in the cache: decides the second level
  enum : uint8_t { Own, Clean, Dirty } held = Own;  // last user of the line: this core; another core that read it; another core that wrote it
  bool operator==(const CopySide&) const = default;
};

struct CopyCost {
  Ps core = 0;                  // with memory and bus to itself
  double memory = 0;            // share of it spent waiting for main memory
  double bus = 0;               // bytes that cross the bus
  CriticalPath::Bill bill = 0;  // of one copy; 0: the critical path is not recorded
  double copies = 1;
  /// The same data copied `n` times.
  [[nodiscard]] CopyCost times(double n) const { return {static_cast<Ps>(n * static_cast<double>(core)), memory, n * bus, bill, n * copies}; }
};

class Host;

/// An operating-system thread. Its coroutine runs only while the thread holds a processor; everything it does that
/// takes time goes through `run` or `wait`.
class Thread {
 public:
  Thread(Host& host, std::string name, int log, uint32_t owner) : host_(host), name_(std::move(name)), log_(log), owner_(owner) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  struct Await {
    Thread& t;
    bool ready;
    bool await_ready() const noexcept { return ready; }
    void await_suspend(std::coroutine_handle<> h) noexcept { t.resume_ = h; }
    void await_resume() const noexcept {}
  };

  /// Uses the processor for a time of this host. `memory`: the share of it spent waiting for main memory when no other processor uses
  /// it; those that do slow each other down.
  Await run(Charge charge, Stage s, double memory = 0);
  Await run(const CopyCost& c);
  /// The same for two parts without memory executed back to back; only the log distinguishes them.
  struct Part {
    Charge charge;
    Stage s;
  };
  Await run_parts(Part a, Part b) {
    const Ps both = a.charge.ps + b.charge.ps;
    if (!host_log()) return run(both, a.s);
    parts_ = {a, b};
    return run({both, joined_bill(a, b)}, Stage::Wait);
  }
  /// Gives up or spins on the processor until `signal` is called. The caller re-tests its condition afterwards.
  Await wait(const WaitPolicy& p);
  /// Sleeps for a given time, rounded up to the clock tick as timed waits are.
  Await sleep(Ps ps);

  /// `immediate` is false for what only a poll can notice (shared memory during a blocking select()); `network` is true for what
  /// a spinning process polls only occasionally.
  void signal(bool immediate = true, bool network = false);
  void start(Task&& main);
  /// Ends the thread from outside at any point. Called from an event, never from a process.
  void kill();
  /// Closes the log at the current time: the run is over.
  void close_log();
  /// The thread may run on this core only.
  void pin(int core);
  /// Its future, in words.
  void state(retrompi::State& s) const;
  [[nodiscard]] const std::string& process_name() const { return name_; }
  /// Where it waits: the coroutines that have called each other, the innermost first.
  void sites(retrompi::State& s) const { sites(s, resume_.address()); }
  /// The same for one that acts, in the coroutine at this address.
  void sites(retrompi::State& s, const void* innermost) const;
  [[nodiscard]] static retrompi::State::Call describe(const Callback& c, retrompi::State& s);
  /// Processor time so far.
  [[nodiscard]] Ps used() const { return used_ + (on_clock_ ? host_time() - began_ : Ps(0)); }
  void add_used(Ps ps) { used_ += ps; }
  void skip(Ps time, Ps begin);
  [[nodiscard]] bool acting() const { return acting_; }
  /// For the critical path: it acts on what others of its host act on too.
  void acts() const;

  [[nodiscard]] Host& host() const { return host_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int log() const { return log_; }
  [[nodiscard]] bool waiting() const { return mode_ != Mode::Work; }
  [[nodiscard]] bool dead() const { return mode_ == Mode::Dead; }
  [[nodiscard]] bool finished() const { return main_.done(); }
  /// Whether it threw.
  [[nodiscard]] bool failed() const { return main_.failed(); }
  [[nodiscard]] bool could_act() const;
  /// It will be resumed soon (Callback::Member).
  void fetch(int step) const;
  /// Whether it has work or would act when it gets a processor.
  [[nodiscard]] bool has_work() const { return mode_ == Mode::Work || (mode_ == Mode::Wait && signalled_); }
  void check() const { main_.check(); }
  /// Whether it waits for this.
  [[nodiscard]] bool waits_for(WaitFor what) const { return mode_ == Mode::Wait && policy_.what == what; }

 private:
  friend class Host;
  enum class State : uint8_t { Blocked, Ready, Running };
  enum class Mode : uint8_t { Work, Wait, Sleep, Dead };

  void enter(Stage s);  // closes the current interval of the log
  [[nodiscard]] bool host_log() const;
  [[nodiscard]] Ps host_time() const;
  void log_work(Ps begin, Ps end);  // of `want_`, or of its parts
  void extend(Ps until, Stage s);   // the critical path to it, by what it has spent or waited
  [[nodiscard]] CriticalPath::Bill joined_bill(const Part& a, const Part& b) const;
  [[nodiscard]] bool may_use(size_t core) const { return pin_ < 0 || static_cast<size_t>(pin_) == core; }
  [[nodiscard]] Ps notice(bool network) const;  // a spinning thread: from the signal until it has seen it
  void schedule_quantum_end();
  void on_done(uint32_t gen);
  void on_quantum(uint64_t sequence);
  void on_yield(uint32_t gen);
  void on_wake(uint32_t gen);
  Host& host_;
  std::string name_;
  int log_;
  uint32_t owner_;  // of the loop: the job
  Task main_;
  std::coroutine_handle<> resume_;
  State state_ = State::Blocked;
  Mode mode_ = Mode::Work;
  WaitPolicy policy_;
  Ps poll_ = 0;  // one poll by it, on this host
  bool signalled_ = false;
  bool poll_armed_ = false;
  int prio_ = 0;
  int core_ = -1, pin_ = -1;
  Ps pre_ = 0;             // context switch still to be charged first
  Ps need_ = 0;            // processor time still needed, as if no other processor used the memory
  double memory_ = 0;      // share of `need_` spent waiting for it
  double slow_ = 1;        // slowdown of the current interval by the others that do
  Ps began_ = 0;           // when the current interval on the processor began
  bool acting_ = false;    // its coroutine is executing
  bool on_clock_ = false;  // `pre_`, then `need_`, is being consumed
  bool q_armed_ = false;
  uint32_t skipped_ = 0;  // consecutive intervals that needed no event
  uint32_t gen_ = 0;      // invalidates events of an interrupted interval
  Ps q_left_ = 0, q_end_ = 0;
  Ps held_since_ = 0;        // when it got its processor
  uint64_t q_sequence_ = 0;  // of the valid end; `q_due_`: time of the queued event, possibly of an earlier end; kNever: none
  Ps q_due_ = kNever;
  Ps wait_begin_ = 0;
  CriticalPath::Bill bill_ = 0;                           // of `work_`
  Ps work_ = 0, slowed_ = 0;                              // recorded: what was asked for; how much longer others at the memory have made it
  CriticalPath::Point point_ = 0, quantum_point_ = 0;     // on the critical path to it: how far it has come; since when its quantum has an end
  CriticalPath::Point wait_point_ = 0, ready_point_ = 0;  // when it began to wait; when it became ready
  CriticalPath::Point dispatched_ = 0;                    // when it got its processor
  CriticalPath::Point told_ = 0;                          // when it was signalled, if it was just being given its processor
  int32_t carried_ = 0;                                   // how often it has gone on with what was left of its quantum
  CriticalPath::Point begun_ = 0, stopped_ = 0;           // of work that another thread has interrupted: how far it had come; what interrupted it
  Stage want_ = Stage::Library;                           // what `need_` is spent on
  Stage seg_ = Stage::Wait;
  Ps seg_begin_ = 0;
  Ps used_ = 0;
  std::array<Part, 2> parts_{};  // of `need_`, if a log is kept and `want_` is Wait
};

/// Kernel work: runs before any thread of its processor (interrupts, deferred procedure calls).
struct KernelJob {
  Charge cost;
  Stage stage;
  Callback done;
  Ps asked;
  Cause by;
  uint32_t owner;
  bool background;            // of cross traffic
  double memory;              // share of `cost` spent waiting for main memory
  CriticalPath::Point point;  // when it was asked for
};

/// How much longer than alone a processor takes that waits for main memory for a share `m` of its time, while `others` do so for shares of
/// theirs and the memory serves `streams` of them at full rate (docs/nas.md).
[[nodiscard]] double memory_slowdown(double m, std::span<const double> others, double streams);

/// A lock: one holder at a time; the others wait until it is released.
struct Lock {
  bool held = false;
  std::vector<Thread*> waiting;
  bool take(Thread& t) {
    t.acts();
    if (held) {
      waiting.push_back(&t);
      return false;
    }
    return held = true;
  }
  void give() {
    assert(held);
    held = false;
    const auto w = std::move(waiting);
    waiting.clear();
    for (Thread* t : w) t->signal();
  }
};

class Host {
 public:
  /// `spec` is shared by hosts that are alike; its name and tick phase are those of none of them.
  Host(Loop& loop, Anatomy& an, std::shared_ptr<const HostSpec> spec, std::string name, Ps tick_phase);
  Host(Loop& loop, Anatomy& an, const HostSpec& spec);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  Thread& add_thread(const std::string& name, uint32_t owner);
  /// `background`: work for cross traffic, which does not keep a run alive. `memory`: as that of Thread::run.
  void kernel(Charge cost, Stage stage, const Callback& done, bool background = false, double memory = 0);
  void kernel(const CopyCost& copy, const Callback& done) { kernel(charge(copy), Stage::Copy, done, false, copy.memory); }

  /// A frame is coming at `at`, for which `in` will ask for so much work of the kernel that changes nothing else. True: it is left out as long as
  /// nobody on this host could see it; false: `in` is to be called then.
  [[nodiscard]] bool leave_out(Ps at, Ps work, const Callback& in);
  /// Before something else happens here: what was left out and is not over goes on as if it had not been.
  void settle() {
    if (left_out_.there) [[unlikely]]
      settle_left_out();
  }

  /// The sum of so many times declared numbers of the host: `host.charge(host_number::interrupt, bytes * host_number::tcp_byte)`.
  template <class... Part>
  [[nodiscard]] Charge charge(const Part&... parts) const {
    return charge_of(anatomy.critical, static_cast<const HostFields&>(spec), parts...);
  }
  /// What a frame that comes in costs the kernel, beside its interrupt if it needs one.
  template <class... Part>
  [[nodiscard]] Charge charge_frame(const Part&... parts) const {
    CriticalPath& path = anatomy.critical;
    if (needs_interrupt()) {
      if (path.on && spec.napi) path.follows(kernel_.end, loop.cause);  // before that it would have been saved
      return charge(host_number::interrupt, parts...);
    }
    if (path.on) path.unfollowed("interrupts that a kernel at work saves");
    return charge(parts...);
  }
  [[nodiscard]] bool needs_interrupt() const { return !spec.napi || !cores_[0].kernel_busy; }
  /// The terms of a delay alone, where it is charged in parts.
  [[nodiscard]] CriticalPath::Bill bill(const AtRate<HostFields>& amount) const {
    if (!anatomy.critical.on) [[likely]]
      return 0;
    return anatomy.critical.bill({detail::term_of(static_cast<const HostFields&>(spec), amount)});
  }
  /// Work of a library on this host: the sum of so many times declared costs of `library`.
  template <class Spec, class... Part>
  [[nodiscard]] Charge work_of(const Spec& library, const Part&... parts) const {
    Charge c = time((detail::reference_cost_of(detail::owner<Part>(library), parts) + ...));
    if (anatomy.critical.on) [[unlikely]]
      c.bill = anatomy.critical.bill({detail::term_of(detail::owner<Part>(library), parts, 1 / spec.speed())...});
    return c;
  }
  /// As many system calls as `library` declares.
  template <class Spec>
  [[nodiscard]] Charge system_calls(const Spec& library, const DeclaredNumber<Spec, double>& calls) const {
    const auto a_call = static_cast<double>(spec.syscall);
    Charge c(static_cast<Ps>(library.*calls.member * a_call));
    if (anatomy.critical.on) [[unlikely]]
      c.bill = anatomy.critical.bill({detail::term_of(library, calls, a_call / kPsPerSecond)});
    return c;
  }
  [[nodiscard]] Charge charge(const CopyCost& copy) const {
    return {copy.core, anatomy.critical.on ? anatomy.critical.scaled(copy.bill, copy.copies) : 0};
  }

  /// A copy between the memory of two processes, whose processors are so related.
  [[nodiscard]] CopyCost copy_cost(int64_t bytes, const CopySide& from, const CopySide& to, Kinship kin = Kinship::Same) const;
  [[nodiscard]] Kinship kinship(int a, int b) const;
  /// Transfer of a line that the other core has modified.
  [[nodiscard]] Ps line(Kinship k) const { return k == Kinship::Bus ? spec.line_bus : k == Kinship::Cache ? spec.line_shared : 0; }
  /// Books a copy on the buses of two cores from now on; returns when its last byte has passed.
  Ps claim_bus(int a, int b, const CopyCost& c);
  /// A cost stated for the reference host, on this host.
  [[nodiscard]] Ps time(Work w) const { return spec.time(w); }
  [[nodiscard]] Ps time(Service s) const { return spec.time(s); }

  [[nodiscard]] const std::string& process_name() const { return name; }
  /// The first tick of its clock at or after `t`.
  [[nodiscard]] Ps next_tick(Ps t) const { return spec.next_tick(t, tick_phase_); }
  /// Its future, in words.
  void state(State& s) const;
  [[nodiscard]] static State::Call describe(const Callback& c, State& s);
  /// So much time is skipped, in periods like the one that began at `begin`: the loop's clock stands still meanwhile, the host's does not.
  void skip(Ps time, Ps begin) {
    tick_phase_ = ((tick_phase_ - time) % spec.tick + spec.tick) % spec.tick;
    for (const Core& c : cores_)
      if (c.running) c.running->skip(time, begin);
  }

 private:
  const std::shared_ptr<const HostSpec> shared_;

 public:
  const HostSpec& spec;
  const std::string name;
  Loop& loop;
  Anatomy& anatomy;
  [[nodiscard]] bool could_act() const;
  [[nodiscard]] CriticalPath::Who place() const { return place_; }
  /// For the critical path: now a thread of it acts on what others act on too; something has come for its threads.
  void acted() {
    if (anatomy.critical.on) [[unlikely]]
      record_act();
  }
  void came() {
    if (anatomy.critical.on) [[unlikely]]
      record_coming();
  }

 private:
  friend class Thread;
  struct Core {
    Thread* running = nullptr;
    Thread* last = nullptr;
    bool kernel_busy = false;
    Ps kernel_since = 0;
    CriticalPath::Point free_point = 0;  // when its last thread gave it up
  };
  void make_ready(Thread& t, bool front = false);
  void dispatch(size_t core);
  void give(size_t core, Thread& t);
  [[nodiscard]] bool undisturbed(const Thread& t, Ps until) const;
  void go(Thread& t);     // the running thread (re)starts consuming its need
  void pause(Thread& t);  // the running thread stops consuming
  [[nodiscard]] bool memory_is_shared() const { return cores_.size() > 1; }
  [[nodiscard]] double slowdown(double memory, const Thread* self) const;  // self: null for the kernel
  void reshare(const Thread* self);                                        // it has started or stopped using the memory: the others change speed
  void start_clock(Thread& t);
  void stop_clock(Thread& t);
  void resume(Thread& t);  // the need is consumed: let the coroutine act
  void wake(Thread& t);    // a blocked thread becomes ready, with the system's boost
  [[nodiscard]] bool spinning(const Thread& t) const;
  void release(Thread& t);  // the running thread gives up its core
  void preempt(size_t core, bool to_front);
  void arm(size_t core);  // a thread waits for this core: set the quantum's end
  [[nodiscard]] bool others_ready(int prio, size_t core) const;
  Thread* pop_ready(size_t core);
  Stage blame(const Thread& t) const;
  void reblame();  // anatomy only: the running thread has changed or begun to spin
  [[nodiscard]] Charge context_switch() const { return charge(host_number::dispatch); }
  void settle_left_out();
  void start_kernel(Core& c);
  [[nodiscard]] bool goes_on(Core& c);
  void begin_kernel_work(Core& c);
  void end_kernel_work(Core& c);
  void start_kernel_clock();
  void extend_over(const KernelJob& job);
  void begin(Thread& t, const Core& c);
  void record_request();
  [[nodiscard]] bool acting() const;
  void record_act();
  void record_quantum(const Thread& t, bool contested);
  void record_coming();
  void on_kernel(uint32_t gen);
  void quantum_matters(const Thread& t);

  void queue(Thread& t, bool front);
  static constexpr int kPrios = 4;
  std::vector<Core> cores_;
  std::vector<Ps> bus_free_;  // by package
  std::array<Fifo<Thread*>, kPrios> ready_;
  unsigned waiting_ = 0;                // a bit for each priority with a ready thread
  bool pinned_ = false;                 // some thread is pinned: not every thread may use every core
  int using_memory_ = 0;                // threads on the clock, and kernel work, that wait for memory
  mutable std::vector<double> others_;  // scratch space of `slowdown`
  struct Copied {
    int64_t bytes = -1;
    CopySide from, to;
    Kinship kin = Kinship::Same;
    CopyCost cost;
  };
  mutable std::unique_ptr<std::array<Copied, 64>> copied_;  // cached costs of copies, from the first on: the same sizes recur
  Fifo<KernelJob> kjobs_;
  struct {  // the first of them, under way
    Ps need = 0, began = 0;
    double memory = 0, slow = 1;
    uint32_t gen = 0;               // invalidates the end of an earlier speed
    CriticalPath::Point point = 0;  // at its beginning
    CriticalPath::Point end = 0;    // of the one before
  } kernel_;
  size_t own_kjobs_ = 0;  // those that belong to a job
  struct {                // a frame that comes at `at` while nobody is here; the kernel is done with it at `until`
    bool there = false;
    uint32_t owner = 0;
    Ps at = 0, until = 0;
    Callback in;
    Loop::Turn turn;
  } left_out_;
  bool absorbs_ = false;       // work of the kernel that is over: what follows from it happens
  uint64_t began_before_ = 0;  // the sequence number of the end of kernel work that has begun before now
  std::vector<std::unique_ptr<Thread>> threads_;
  Ps tick_phase_;  // clocks of two machines are not synchronised
  CriticalPath::Who place_;
  CriticalPath::Point asks_ = 0, acts_ = 0;  // the last that asked for the kernel or acted; that came or acted
};

inline Thread::Await Thread::run(const CopyCost& c) { return run(host_.charge(c), Stage::Copy, c.memory); }

}  // namespace retrompi
