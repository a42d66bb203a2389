#include "host/host.hpp"

#include <cmath>

namespace retrompi {

// ---------------------------------------------------------------- Thread

void Thread::enter(Stage s) {
  host_.anatomy.segment(log_, seg_begin_, host_.loop.now, seg_, policy_.what);
  seg_ = s;
  seg_begin_ = host_.loop.now;
}

void Thread::start(Task&& main) {
  main_ = std::move(main);
  resume_ = main_.handle();
  mode_ = Mode::Work;
  need_ = 0;
  q_left_ = host_.spec.quantum;
  seg_begin_ = host_.loop.now;
  host_.make_ready(*this);
}

// Awaited calls that end at once are as deep in the stack as the compiler leaves them.
constexpr uint32_t kMostSkipped = 200;

Thread::Await Thread::run(Ps ps, Stage s, double memory) {
  if (ps <= 0) return {*this, true};
  if (host_.undisturbed(*this, host_.loop.now + ps) && !(host_.shares_memory && (s == Stage::Copy || memory > 0)) && ++skipped_ < kMostSkipped) {
    // Nobody would have noticed that it took the time: no event, and the coroutine goes on at once.
    Ps& now = host_.loop.now;
    used_ += ps;
    if (host_.anatomy.log) {
      want_ = s;
      host_.anatomy.segment(log_, seg_begin_, now, seg_, policy_.what);
      log_work(now, now + ps);
    }
    if (host_.anatomy.on) host_.anatomy.current = {Cause::Thread, log_};
    now += ps;
    seg_begin_ = now;
    seg_ = Stage::Library;
    return {*this, true};
  }
  skipped_ = 0;
  need_ = ps;
  // A copy of the library does nothing but wait for memory, as far as its data are not in a cache: long ones are not.
  memory_ = s == Stage::Copy && host_.shares_memory ? 1 : memory;
  want_ = s;
  mode_ = Mode::Work;
  host_.go(*this);
  return {*this, false};
}

bool Thread::host_log() const { return host_.anatomy.log; }

void Thread::log_work(Ps begin, Ps end) {
  if (want_ != Stage::Wait) return host_.anatomy.segment(log_, begin, end, want_, policy_.what);
  for (Part& p : parts_) {
    const Ps n = std::min(p.ps, end - begin);
    host_.anatomy.segment(log_, begin, begin + n, p.s, policy_.what);
    p.ps -= n;
    begin += n;
  }
}

void Thread::close_log() {
  if (on_clock_) host_.stop_clock(*this);
  enter(seg_);
}

Thread::Await Thread::wait(const WaitPolicy& p) {
  policy_ = p;
  signalled_ = false;
  poll_armed_ = false;
  mode_ = Mode::Wait;
  wait_begin_ = host_.loop.now;
  need_ = 0;
  memory_ = 0;
  if (p.kind == WaitPolicy::Block || p.kind == WaitPolicy::Poll) {
    host_.release(*this);
  } else {
    enter(Stage::Wait);
    host_.go(*this);
    host_.reblame();
  }
  return {*this, false};
}

Thread::Await Thread::sleep(Ps ps) {
  mode_ = Mode::Sleep;
  need_ = 0;
  memory_ = 0;
  ++gen_;
  host_.loop.schedule(host_.spec.next_tick(host_.loop.now + ps), callback<&Thread::on_wake>(*this, gen_ + 1));
  host_.release(*this);
  return {*this, false};
}

void Thread::signal(bool immediate, bool network) {
  if (mode_ != Mode::Wait) return;
  host_.anatomy.signalled(log_, host_.loop.now);
  const bool again = signalled_;
  signalled_ = true;
  switch (policy_.kind) {
    case WaitPolicy::Block:
      if (!again) host_.wake(*this);
      break;
    case WaitPolicy::Poll:
      if (state_ != State::Blocked) break;
      if (immediate) {
        host_.wake(*this);
      } else if (!poll_armed_) {
        // The process looks at shared memory when its timed wait ends; the time-out is rounded up to a tick, and one that
        // starts just after a tick therefore ends at the second tick that follows (E-NT-03, E-P4-11).
        poll_armed_ = true;
        const Ps tick = host_.spec.tick, now = host_.loop.now;
        Ps due = host_.spec.next_tick(wait_begin_ + policy_.period);
        const Ps step = (policy_.period / tick + 1) * tick;
        if (now > due) due += (now - due + step - 1) / step * step;
        enter(Stage::Tick);
        host_.loop.schedule(due, callback<&Thread::on_wake>(*this, gen_));
      }
      break;
    case WaitPolicy::Spin:
    case WaitPolicy::SpinYield:
      if (again) break;
      if (state_ == State::Running) {
        signalled_ = false;  // up to now it has waited
        host_.pause(*this);
        signalled_ = true;
        need_ = notice(network);
        want_ = Stage::Poll;
        host_.go(*this);
        host_.reblame();
      } else {
        need_ = notice(network);
        want_ = Stage::Poll;
        enter(host_.blame(*this));
      }
      break;
  }
}

void Thread::kill() {
  if (dead()) return;
  const State was = state_;
  Host& h = host_;
  if (was == State::Running) h.pause(*this);
  if (was == State::Ready)
    for (size_t p = 0; p < h.ready_.size(); ++p) {
      std::erase(h.ready_[p], this);
      if (h.ready_[p].empty()) h.waiting_ &= ~(1U << p);
    }
  ++gen_;  // whatever it had asked the clock for is stale
  q_armed_ = false;
  signalled_ = false;
  mode_ = Mode::Dead;
  state_ = State::Blocked;
  enter(Stage::Wait);
  if (was == State::Running) {
    const auto core = static_cast<size_t>(core_);
    core_ = -1;
    h.cores_[core].running = nullptr;
    h.dispatch(core);
  }
}

Ps Thread::notice(bool network) const {
  if (!network || policy_.look_every <= 1) return policy_.poll_cost;
  const Ps round = policy_.look_every * policy_.poll_cost;
  return round - (host_.loop.now - wait_begin_) % round;
}

void Thread::pin(int core) {
  pin_ = core;
  host_.pinned_ = true;
}

bool Thread::could_act() const { return state_ == State::Ready && (mode_ != Mode::Wait || signalled_); }

// ---------------------------------------------------------------- Host

Host::Host(Loop& l, Anatomy& an, HostSpec s)
    : spec(std::move(s)),
      loop(l),
      anatomy(an),
      cores_(static_cast<size_t>(spec.cores)),
      bus_free_((cores_.size() - 1) / static_cast<size_t>(spec.package_cores) + 1) {}

Thread& Host::add_thread(const std::string& name, uint32_t owner) {
  threads_.push_back(std::make_unique<Thread>(*this, name, anatomy.add_thread(name), owner));
  return *threads_.back();
}

Ps Host::copy_time(int64_t bytes, double from_set, double to_set) const {
  if (bytes <= 0) return 0;
  Copied& c =
      copied_[((static_cast<uint64_t>(bytes) * 3 + static_cast<uint64_t>(from_set) * 5 + static_cast<uint64_t>(to_set)) * 0x9e3779b97f4a7c15ULL) >>
              58];
  if (c.bytes != bytes || c.from != from_set || c.to != to_set) c = {bytes, from_set, to_set, spec.copy_time(bytes, from_set, to_set)};
  return c.ps;
}

Kinship Host::kinship(int a, int b) const {
  if (a == b) return Kinship::Same;
  return a / spec.l2_shared_by == b / spec.l2_shared_by ? Kinship::Cache : Kinship::Bus;
}

CopyCost Host::copy_cost(int64_t bytes, const CopySide& from, const CopySide& to, Kinship kin) const {
  constexpr double kLine = 64;
  CopyCost c;
  double per_byte = 0;
  // Reading a byte from memory is one transfer, writing one is two: the line is fetched first and written back later.
  auto side = [&](const CopySide& s, double transfers) {
    const bool foreign = s.held != CopySide::Own && kin != Kinship::Same;
    if (s.near <= spec.l1 && (!foreign || (s.held == CopySide::Clean && kin == Kinship::Cache))) {
      per_byte += 0.5 / spec.copy_l1;
      return;
    }
    const double miss = spec.misses(s.set), memory = transfers / 3 / spec.copy_mem;
    double hit = 0.5 / spec.copy_l2;
    if (foreign && kin == Kinship::Bus) {
      // The line crosses the bus once: from memory while it is clean, else from the cache that changed it, which no prefetcher
      // hides; only as many lines as the core has fill buffers are on their way at a time.
      hit = 1.0 / 3 / spec.copy_mem;
      if (s.held == CopySide::Dirty) hit = std::max(hit, to_s(spec.line_bus) / kLine / spec.lines_in_flight);
      c.bus += (1 - miss) * static_cast<double>(bytes);
    } else if (foreign && s.held == CopySide::Dirty) {
      hit = std::max(hit, to_s(spec.line_shared) / kLine / spec.lines_in_flight);
    }
    per_byte += (1 - miss) * hit + miss * memory;
    c.bus += miss * transfers * static_cast<double>(bytes);
  };
  if (bytes <= 0) return c;
  side(from, 1);
  side(to, 2);
  c.core = to_ps(static_cast<double>(bytes) * per_byte);
  return c;
}

Ps Host::claim_bus(int a, int b, const CopyCost& c) {
  if (c.bus <= 0) return 0;
  auto claim = [&](int core) {
    Ps& free_at = bus_free_[static_cast<size_t>(core / spec.package_cores)];
    free_at = std::max(free_at, loop.now) + to_ps(c.bus / spec.fsb_rate);
    return free_at;
  };
  Ps end = claim(a);
  if (a / spec.package_cores != b / spec.package_cores) end = std::max(end, claim(b));
  return std::max<Ps>(0, end - loop.now - c.core);
}

bool Host::could_act() const {
  // Whom background work alone interrupts goes on after it.
  const Core& first = cores_[0];
  if (own_kjobs_ > 0 || (first.kernel_busy && first.running && !spinning(*first.running))) return true;
  return std::any_of(threads_.begin(), threads_.end(), [](const auto& t) { return t->could_act(); });
}

bool Host::spinning(const Thread& t) const { return t.mode_ == Thread::Mode::Wait && !t.signalled_; }

Stage Host::blame(const Thread& t) const {
  for (size_t c = 0; c < cores_.size(); ++c) {
    const Thread* other = cores_[c].running;
    if (other && other != &t && t.may_use(c) && spinning(*other)) return Stage::Quantum;
  }
  return Stage::Queueing;
}

void Host::reblame() {
  if (!anatomy.log) return;
  // The reason for which a ready thread waits changes while it waits: who holds the processor may begin to spin.
  for (auto& q : ready_)
    for (Thread* t : q)
      if (!spinning(*t)) {
        const Stage s = blame(*t);
        if (t->seg_ != s) t->enter(s);
      }
}

// Each computation is a customer of two stations in turn: its own processor, and the memory bus, where it queues behind the
// others. Mean value analysis of two customers that spend the shares a and b of their time alone on the bus stretches each by
// 1 + ab; with more processors the others' shares add up. The factor holds from one change of the neighbours to the next.
double Host::slowdown(const Thread& t) const {
  if (t.memory_ <= 0 || cores_.size() < 2) return 1;
  double others = 0;
  for (const Core& c : cores_)
    if (c.running && c.running != &t && c.running->on_clock_) others += c.running->memory_;
  return 1 + t.memory_ * others;
}

void Host::reshare(const Thread& t) {
  for (const Core& c : cores_) {
    Thread* u = c.running;
    if (!u || u == &t || !u->on_clock_ || u->memory_ <= 0) continue;
    stop_clock(*u);
    start_clock(*u);
  }
}

// The thread that is acting keeps its core until then: no event comes, nobody outranks it and the kernel leaves it alone.
bool Host::undisturbed(const Thread& t, Ps until) const {
  return t.acting_ && t.state_ == Thread::State::Running && t.pre_ == 0 && loop.no_event_until(until) && !(t.core_ == 0 && cores_[0].kernel_busy) &&
         !others_ready(t.prio_ + 1, static_cast<size_t>(t.core_));
}

void Host::go(Thread& t) {
  if (t.core_ == 0 && cores_[0].kernel_busy) return;  // goes on when the kernel is done
  start_clock(t);
  if (t.memory_ > 0 && cores_.size() > 1) reshare(t);
}

void Host::start_clock(Thread& t) {
  t.on_clock_ = true;
  t.began_ = loop.now;
  ++t.gen_;
  if (t.mode_ != Thread::Mode::Wait || t.signalled_) {
    t.slow_ = slowdown(t);
    const Ps need = t.slow_ > 1 ? static_cast<Ps>(static_cast<double>(t.need_) * t.slow_ + 0.5) : t.need_;
    loop.schedule(loop.now + t.pre_ + need, callback<&Thread::on_done>(t, t.gen_));
  } else if (t.policy_.kind == WaitPolicy::SpinYield && others_ready(t.prio_, static_cast<size_t>(t.core_))) {
    loop.schedule(loop.now + t.pre_ + t.policy_.polls * t.policy_.poll_cost, callback<&Thread::on_yield>(t, t.gen_), true);
  }
}

void Host::pause(Thread& t) {
  const bool shares = t.on_clock_ && t.memory_ > 0 && cores_.size() > 1;
  stop_clock(t);
  if (shares) reshare(t);
}

void Host::stop_clock(Thread& t) {
  ++t.gen_;
  if (!t.on_clock_) return;
  t.on_clock_ = false;
  const Ps now = loop.now, used = now - t.began_;
  t.used_ += used;
  const Ps pre = std::min(used, t.pre_);
  t.pre_ -= pre;
  const bool spin = spinning(t);
  const Ps done = used - pre;
  if (!spin) t.need_ -= t.slow_ > 1 ? std::min(t.need_, static_cast<Ps>(static_cast<double>(done) / t.slow_ + 0.5)) : done;
  if (anatomy.log) {
    anatomy.segment(t.log_, t.seg_begin_, t.began_, t.seg_, t.policy_.what);
    anatomy.segment(t.log_, t.began_, t.began_ + pre, Stage::Switch, t.policy_.what);
    if (spin)
      anatomy.segment(t.log_, t.began_ + pre, now, Stage::Wait, t.policy_.what);
    else
      t.log_work(t.began_ + pre, now);
  }
  t.seg_begin_ = now;
  t.seg_ = spin ? Stage::Wait : Stage::Interrupt;
}

void Thread::on_done(uint32_t gen) {
  if (gen != gen_) return;
  host_.pause(*this);
  host_.resume(*this);
}

void Host::resume(Thread& t) {
  t.mode_ = Thread::Mode::Work;
  t.seg_ = Stage::Library;
  if (anatomy.on) anatomy.current = {Cause::Thread, t.log_};
  t.acting_ = true;
  loop.owner = t.owner_;
  t.resume_.resume();
  t.acting_ = false;
  if (t.main_.done()) {
    t.mode_ = Thread::Mode::Sleep;
    release(t);
    t.main_.check();
    return;
  }
  // Whom it woke may outrank it; a thread can only be preempted once its coroutine has said what it wants next.
  if (t.state_ == Thread::State::Running && !(t.core_ == 0 && cores_[0].kernel_busy) && others_ready(t.prio_ + 1, static_cast<size_t>(t.core_)))
    preempt(static_cast<size_t>(t.core_), true);
}

void Host::queue(Thread& t, bool front) {
  auto& q = ready_[static_cast<size_t>(t.prio_)];
  waiting_ |= 1U << static_cast<unsigned>(t.prio_);
  if (front)
    q.push_front(&t);
  else
    q.push_back(&t);
}

bool Host::others_ready(int prio, size_t core) const {
  if (!pinned_) return (waiting_ >> static_cast<unsigned>(prio)) != 0;
  for (int p = prio; p < kPrios; ++p)
    for (const Thread* t : ready_[static_cast<size_t>(p)])
      if (t->may_use(core)) return true;
  return false;
}

Thread* Host::pop_ready(size_t core) {
  if (waiting_ == 0) return nullptr;
  for (int p = kPrios - 1; p >= 0; --p) {
    auto& q = ready_[static_cast<size_t>(p)];
    if (q.empty()) continue;
    const auto it = std::find_if(q.begin(), q.end(), [core](const Thread* t) { return t->may_use(core); });
    if (it == q.end()) continue;
    Thread* t = *it;
    if (it == q.begin())
      q.pop_front();
    else
      q.erase(it);
    if (q.empty()) waiting_ &= ~(1U << static_cast<unsigned>(p));
    return t;
  }
  return nullptr;
}

void Host::dispatch(size_t core) {
  Core& c = cores_[core];
  if (c.running || (core == 0 && c.kernel_busy)) return;
  Thread* t = pop_ready(core);
  if (!t) return;
  t->enter(spinning(*t) ? Stage::Wait : t->seg_);
  t->state_ = Thread::State::Running;
  t->core_ = static_cast<int>(core);
  c.running = t;
  if (c.last != t) t->pre_ = spec.dispatch;
  c.last = t;
  // NT counts a quantum in ticks seen by the running thread, so it ends at one (variant); else it is a plain length of time.
  const Ps from = spec.quantum_at_tick ? spec.next_tick(loop.now + 1) - spec.tick : loop.now;
  t->q_end_ = from + t->q_left_;
  t->q_armed_ = false;
  go(*t);
  reblame();
  if (others_ready(0, core)) arm(core);
}

void Host::arm(size_t core) {
  Thread* t = cores_[core].running;
  if (!t) return;
  if (!t->q_armed_) {
    while (t->q_end_ <= loop.now) {  // quanta that ended while nobody else wanted the processor
      t->q_end_ += spec.quantum;
      t->prio_ = std::max(0, t->prio_ - 1);
    }
    t->q_armed_ = true;
    t->q_sequence_ = loop.reserve_sequence();
    if (t->q_due_ > t->q_end_) t->schedule_quantum_end();
  }
  if (t->on_clock_ && spinning(*t) && t->policy_.kind == WaitPolicy::SpinYield && others_ready(t->prio_, core)) {
    pause(*t);
    go(*t);
  }
}

void Thread::schedule_quantum_end() {
  q_due_ = q_end_;
  host_.loop.schedule_reserved(q_end_, q_sequence_, callback<&Thread::on_quantum>(*this, q_sequence_), true);
}

// Most quanta end early: the event of one stays in the queue for those that follow, and goes on to the end of the present one.
void Thread::on_quantum(uint64_t sequence) {
  if (host_.loop.now != q_due_) return;  // an earlier one has been set since
  q_due_ = kNever;
  if (state_ != State::Running || !q_armed_) return;
  if (sequence != q_sequence_) return schedule_quantum_end();
  q_armed_ = false;
  prio_ = std::max(0, prio_ - 1);
  q_end_ = host_.loop.now + host_.spec.quantum;
  const auto core = static_cast<size_t>(core_);
  if (host_.others_ready(prio_, core))
    host_.preempt(core, false);
  else if (host_.others_ready(0, core))
    host_.arm(core);
}

void Thread::on_yield(uint32_t gen) {
  if (gen != gen_ || state_ != State::Running) return;
  const auto core = static_cast<size_t>(core_);
  if (host_.others_ready(prio_, core)) host_.preempt(core, false);
}

void Host::preempt(size_t core, bool to_front) {
  Core& c = cores_[core];
  Thread& t = *c.running;
  pause(t);
  t.q_left_ = to_front ? std::max<Ps>(t.q_end_ - loop.now, 1) : spec.quantum;
  t.q_armed_ = false;
  t.state_ = Thread::State::Ready;
  t.core_ = -1;
  c.running = nullptr;
  queue(t, to_front);
  t.enter(spinning(t) ? Stage::Wait : Stage::Queueing);
  dispatch(core);
  if (!spinning(t) && t.state_ == Thread::State::Ready) t.enter(blame(t));
}

void Host::make_ready(Thread& t, bool front) {
  t.state_ = Thread::State::Ready;
  t.enter(anatomy.log ? blame(t) : Stage::Queueing);
  queue(t, front);
  for (size_t c = 0; c < cores_.size(); ++c)
    if (!cores_[c].running && t.may_use(c) && !(c == 0 && cores_[c].kernel_busy)) return dispatch(c);
  size_t worst = 0;
  int low = kPrios;
  for (size_t c = 0; c < cores_.size(); ++c)
    if (cores_[c].running && t.may_use(c) && cores_[c].running->prio_ < low) low = cores_[c].running->prio_, worst = c;
  if (low < t.prio_) {
    if (!cores_[worst].running->acting_) preempt(worst, true);
    return;  // else `resume` does it
  }
  for (size_t c = 0; c < cores_.size(); ++c)
    if (t.may_use(c)) arm(c);
}

void Host::wake(Thread& t) {
  t.prio_ = std::min(kPrios - 1, std::max(t.prio_, spec.boost));
  ++t.gen_;
  t.need_ = 0;
  t.want_ = Stage::Event;
  make_ready(t);
}

void Thread::on_wake(uint32_t gen) {
  if (gen != gen_ || state_ != State::Blocked) return;
  host_.anatomy.segment(log_, seg_begin_, host_.loop.now, seg_, policy_.what);
  seg_begin_ = host_.loop.now;
  // A timed wait that runs out is not a signalled object: no boost (NT boosts by the object that was waited for).
  ++gen_;
  need_ = 0;
  want_ = Stage::Event;
  host_.make_ready(*this);
}

void Host::release(Thread& t) {
  pause(t);
  if (spec.quantum_carry) {
    Ps left = t.q_end_ - loop.now;
    while (left <= 0) left += spec.quantum;
    left -= spec.wait_charge;
    if (left <= 0) {
      left = spec.quantum;
      t.prio_ = std::max(0, t.prio_ - 1);
    }
    t.q_left_ = left;
  } else {
    t.q_left_ = spec.quantum;
  }
  t.q_armed_ = false;
  const auto core = static_cast<size_t>(t.core_);
  t.state_ = Thread::State::Blocked;
  t.core_ = -1;
  cores_[core].running = nullptr;
  t.enter(t.mode_ == Thread::Mode::Sleep ? Stage::Tick : Stage::Wait);
  dispatch(core);
}

void Host::kernel(Ps cost, Stage stage, const Callback& done, bool background) {
  kjobs_.push_back({cost, stage, done, loop.now, anatomy.current, loop.owner, background});
  if (!background) ++own_kjobs_;
  loop.add_pending(loop.owner);
  Core& c = cores_[0];
  if (c.kernel_busy) return;
  c.kernel_busy = true;
  if (c.running) pause(*c.running);
  start_kernel(c);
}

void Host::start_kernel(Core& c) {
  c.kernel_since = loop.now;
  loop.schedule(loop.now + kjobs_.front().cost, callback<&Host::on_kernel>(*this), own_kjobs_ == 0);
}

void Host::on_kernel() {
  Core& c = cores_[0];
  const KernelJob job = kjobs_.front();
  kjobs_.pop_front();
  if (!job.background) --own_kjobs_;
  if (anatomy.on) {
    anatomy.current = job.by;
    anatomy.current = anatomy.of(anatomy.record(spec.name.c_str(), job.stage, job.asked, c.kernel_since, loop.now));
  }
  loop.owner = job.owner;
  loop.remove_pending(job.owner);
  job.done();
  if (!kjobs_.empty()) return start_kernel(c);
  c.kernel_busy = false;
  if (!c.running) return dispatch(0);
  // What became ready meanwhile may outrank the interrupted thread.
  if (others_ready(c.running->prio_ + 1, 0)) return preempt(0, true);
  go(*c.running);
  if (others_ready(0, 0)) arm(0);
}

}  // namespace retrompi
