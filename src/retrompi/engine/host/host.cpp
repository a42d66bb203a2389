// The scheduler: which thread runs on which processor, for how long, and when the kernel interrupts.
#include "host/host.hpp"

namespace retrompi {

Host::Host(Loop& l, Anatomy& an, std::shared_ptr<const HostSpec> s, std::string its_name, Ps tick_phase)
    : shared_(std::move(s)),
      spec(*shared_),
      name(std::move(its_name)),
      loop(l),
      anatomy(an),
      cores_(static_cast<size_t>(spec.cores)),
      bus_free_((cores_.size() - 1) / static_cast<size_t>(spec.package_cores) + 1),
      tick_phase_(tick_phase),
      place_(anatomy.critical.place(name)) {}

Host::Host(Loop& l, Anatomy& an, const HostSpec& s) : Host(l, an, std::make_shared<const HostSpec>(s), s.name, s.tick_phase) {}

Thread& Host::add_thread(const std::string& name, uint32_t owner) {
  threads_.push_back(std::make_unique<Thread>(*this, name, anatomy.add_thread(name), owner));
  return *threads_.back();
}

bool Host::could_act() const {
  // A thread interrupted by background work only continues after it.
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
  // The reason why a ready thread waits may change: the thread that holds the processor may begin to spin.
  for (auto& q : ready_)
    for (Thread* t : q)
      if (!spinning(*t)) {
        const Stage s = blame(*t);
        if (t->seg_ != s) t->enter(s);
      }
}

// The acting thread keeps its core until then: there is no event, no thread of higher priority and no interrupt.
bool Host::undisturbed(const Thread& t, Ps until) const {
  return t.acting_ && t.state_ == Thread::State::Running && t.pre_ == 0 && loop.no_event_until(until) && !(t.core_ == 0 && cores_[0].kernel_busy) &&
         !others_ready(t.prio_ + 1, static_cast<size_t>(t.core_));
}

void Host::go(Thread& t) {
  if (t.core_ == 0 && cores_[0].kernel_busy) {  // continues when the kernel is done
    if (t.seg_ == Stage::Library) t.enter(Stage::Interrupt);
    return;
  }
  start_clock(t);
  if (t.memory_ > 0) reshare(&t);
}

void Host::start_clock(Thread& t) {
  t.on_clock_ = true;
  t.began_ = loop.now;
  ++t.gen_;
  if (t.memory_ > 0) ++using_memory_;
  if (t.mode_ != Thread::Mode::Wait || t.signalled_) {
    t.slow_ = slowdown(t.memory_, &t);
    const Ps need = t.slow_ > 1 ? static_cast<Ps>(static_cast<double>(t.need_) * t.slow_ + 0.5) : t.need_;
    loop.schedule(loop.now + t.pre_ + need, callback<&Thread::on_done>(t, t.gen_));
  } else if (t.policy_.kind == WaitPolicy::SpinYield && others_ready(t.prio_, static_cast<size_t>(t.core_))) {
    loop.schedule(loop.now + t.pre_ + t.policy_.polls * t.poll_, callback<&Thread::on_yield>(t, t.gen_), true);
  }
}

void Host::pause(Thread& t) {
  const bool shares = t.on_clock_ && t.memory_ > 0;
  stop_clock(t);
  if (shares) reshare(&t);
}

void Host::stop_clock(Thread& t) {
  ++t.gen_;
  if (!t.on_clock_) return;
  t.on_clock_ = false;
  if (t.memory_ > 0) --using_memory_;
  const Ps now = loop.now, used = now - t.began_;
  assert(used >= 0);
  t.used_ += used;
  const Ps pre = std::min(used, t.pre_);
  t.pre_ -= pre;
  const bool spin = spinning(t);
  const Ps done = used - pre, own = t.slow_ > 1 ? std::min(t.need_, static_cast<Ps>(static_cast<double>(done) / t.slow_ + 0.5)) : done;
  if (!spin) {
    t.need_ -= own;
    t.slowed_ += done - own;
  }
  if (anatomy.log) {
    anatomy.segment(t.log_, t.seg_begin_, t.began_, t.seg_, t.policy_.what);
    anatomy.segment(t.log_, t.began_, t.began_ + pre, Stage::Switch, t.policy_.what);
    t.extend(t.began_ + pre, Stage::Switch);
    if (anatomy.critical.on && pre > 0 && t.pre_ == 0)
      t.point_ = anatomy.critical.join(anatomy.critical.charge(t.point_, context_switch().bill), std::exchange(t.told_, 0));
    if (anatomy.critical.on && t.slow_ > 1 && t.memory_ > 0) anatomy.critical.unfollowed("processors that slow each other down at the memory");
    if (spin)
      anatomy.segment(t.log_, t.began_ + pre, now, Stage::Wait, t.policy_.what);
    else
      t.log_work(t.began_ + pre, now);
  }
  t.seg_begin_ = now;
  t.seg_ = spin ? Stage::Wait : Stage::Interrupt;
}

void Host::resume(Thread& t) {
  t.mode_ = Thread::Mode::Work;
  t.seg_ = Stage::Library;
  if (anatomy.log) {
    anatomy.current = {Cause::Thread, t.log_};
    const CriticalPath::Bill bill = anatomy.critical.stretched(std::exchange(t.bill_, 0), t.work_, t.work_ + t.slowed_);
    loop.cause = t.point_ = anatomy.critical.charge(t.point_, bill);
    t.begun_ = 0;
  }
  t.acting_ = true;
  loop.owner = t.owner_;
  std::exchange(t.resume_, {}).resume();
  t.acting_ = false;
  if (!t.resume_) {  // it has stated no further request
    assert(t.main_.done());
    t.mode_ = Thread::Mode::Sleep;
    release(t);
    t.main_.check();
    return;
  }
  // A thread it woke may outrank it; a thread can only be preempted once its coroutine has stated its next request.
  if (t.state_ == Thread::State::Running && !(t.core_ == 0 && cores_[0].kernel_busy) && others_ready(t.prio_ + 1, static_cast<size_t>(t.core_)))
    preempt(static_cast<size_t>(t.core_), true);
}

void Host::queue(Thread& t, bool front) {
  settle();
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
  if (Thread* t = pop_ready(core)) give(core, *t);
}

/// A processor that nobody has goes to a thread that is in no queue.
void Host::give(size_t core, Thread& t) {
  Core& c = cores_[core];
  t.enter(spinning(t) ? Stage::Wait : t.seg_);
  t.state_ = Thread::State::Running;
  t.core_ = static_cast<int>(core);
  c.running = &t;
  if (c.last != &t) t.pre_ = context_switch().ps;
  c.last = &t;
  if (anatomy.critical.on) begin(t, c);
  // NT counts a quantum in ticks seen by the running thread, so it ends at one (variant); else it is a plain length of time.
  const Ps from = spec.quantum_at_tick ? next_tick(loop.now + 1) - spec.tick : loop.now;
  t.held_since_ = loop.now;
  t.q_end_ = from + t.q_left_;
  t.q_armed_ = false;
  go(t);
  reblame();
  if (others_ready(0, core)) arm(core);
}

/// The critical path to a thread that gets a processor.
void Host::begin(Thread& t, const Core& c) {
  CriticalPath& path = anatomy.critical;
  t.point_ = path.join(path.join(loop.cause, t.ready_point_), c.free_point);
  if (t.begun_ != 0) t.point_ = path.resume(t.point_, t.begun_, t.stopped_);
  t.dispatched_ = t.point_;
}

void Host::arm(size_t core) {
  Thread* t = cores_[core].running;
  if (!t) return;
  if (!t->q_armed_) {
    quantum_matters(*t);
    if (anatomy.critical.on) record_quantum(*t, true);
    if (t->q_end_ <= loop.now) {  // quanta that ended while no other thread wanted the processor
      const int64_t ended = (loop.now - t->q_end_) / spec.whole_quantum() + 1;
      t->q_end_ += ended * spec.whole_quantum();
      t->prio_ = static_cast<int>(std::max<int64_t>(0, t->prio_ - ended));
    }
    t->q_armed_ = true;
    t->quantum_point_ = loop.cause;
    t->q_sequence_ = loop.reserve_sequence();
    if (t->q_due_ > t->q_end_) t->schedule_quantum_end();
  }
  if (t->on_clock_ && spinning(*t) && t->policy_.kind == WaitPolicy::SpinYield && others_ready(t->prio_, core)) {
    pause(*t);
    go(*t);
  }
}

/// A quantum that ends at a tick could have ended by now if the clock had another phase.
void Host::quantum_matters(const Thread& t) {
  if (spec.quantum_at_tick && t.q_end_ - spec.tick <= loop.now) ++loop.tick_uses;
}

void Host::preempt(size_t core, bool to_front) {
  Core& c = cores_[core];
  assert(c.running && !c.running->acting_);
  Thread& t = *c.running;
  pause(t);
  if (anatomy.critical.on) {
    t.ready_point_ = c.free_point = loop.cause;
    if (t.q_armed_) record_quantum(t, true);
    // While it was being given the processor nothing of its work was done: that is as far as it had come before.
    if (!spinning(t) && t.need_ > 0 && t.pre_ == 0) t.begun_ = t.point_, t.stopped_ = loop.cause;
  }
  if (t.q_armed_) quantum_matters(t);
  if (to_front && spec.quantum_at_tick) ++loop.tick_uses;
  t.q_left_ = to_front ? std::max<Ps>(t.q_end_ - loop.now, 1) : spec.whole_quantum();
  t.carried_ = to_front ? t.carried_ + 1 : 0;
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
  t.ready_point_ = loop.cause;
  t.enter(anatomy.log ? blame(t) : Stage::Queueing);
  settle();
  const bool alone = waiting_ == 0;  // then no queue is needed
  if (!alone) queue(t, front);
  for (size_t c = 0; c < cores_.size(); ++c)
    if (!cores_[c].running && t.may_use(c) && !(c == 0 && cores_[c].kernel_busy)) return alone ? give(c, t) : dispatch(c);
  if (alone) queue(t, front);
  size_t worst = 0;
  int low = kPrios;
  for (size_t c = 0; c < cores_.size(); ++c)
    if (cores_[c].running && t.may_use(c) && cores_[c].running->prio_ < low) low = cores_[c].running->prio_, worst = c;
  if (low < t.prio_) {
    if (!cores_[worst].running->acting_) preempt(worst, true);
    return;  // otherwise `resume` does this
  }
  for (size_t c = 0; c < cores_.size(); ++c)
    if (t.may_use(c)) arm(c);
}

void Host::wake(Thread& t) {
  t.prio_ = std::min(kPrios - 1, std::max(t.prio_, spec.boost));
  ++t.gen_;
  t.need_ = 0;
  t.want_ = Stage::Event;
  const CriticalPath::Point here = loop.cause;
  if (anatomy.critical.on) loop.cause = anatomy.critical.join(here, t.wait_point_);
  make_ready(t);
  loop.cause = here;
}

void Host::release(Thread& t) {
  pause(t);
  if (anatomy.critical.on && (t.q_armed_ || spec.quantum_carry)) record_quantum(t, t.q_armed_);
  if (t.q_armed_) quantum_matters(t);
  if (spec.quantum_carry) {
    if (spec.quantum_at_tick) ++loop.tick_uses;
    Ps left = t.q_end_ - loop.now;
    if (left <= 0) left += (-left / spec.whole_quantum() + 1) * spec.whole_quantum();
    left -= spec.wait_charge;
    if (left <= 0) {
      left = spec.whole_quantum();
      t.prio_ = std::max(0, t.prio_ - 1);
    }
    t.q_left_ = left;
    ++t.carried_;
  } else {
    t.q_left_ = spec.whole_quantum();
    t.carried_ = 0;
  }
  t.q_armed_ = false;
  const auto core = static_cast<size_t>(t.core_);
  assert(cores_[core].running == &t);  // only its holder gives a processor up
  t.state_ = Thread::State::Blocked;
  t.core_ = -1;
  cores_[core].running = nullptr;
  cores_[core].free_point = loop.cause;
  t.enter(t.mode_ == Thread::Mode::Sleep ? Stage::Tick : Stage::Wait);
  dispatch(core);
}

bool Host::leave_out(Ps at, Ps work, const Callback& in) {
  settle();
  if (!loop.foresees || work <= 0 || at <= loop.now || cores_[0].running || cores_[0].kernel_busy || waiting_ != 0) return false;
  left_out_.there = true;
  left_out_.owner = loop.owner;
  left_out_.at = at;
  left_out_.until = at + work;
  left_out_.in = in;
  loop.leave_out(at, left_out_.until, left_out_.turn);
  return true;
}

void Host::settle_left_out() {
  left_out_.there = false;
  const uint64_t end = left_out_.turn.next;
  const uint32_t owner = std::exchange(loop.owner, left_out_.owner);
  if (end == 0) {  // it has not come
    loop.schedule_reserved(left_out_.at, left_out_.turn.sequence, left_out_.in);
    left_out_.turn.sequence = 0;
  } else if (loop.past(left_out_.until, end)) {
    absorbs_ = true;
    left_out_.in();
    absorbs_ = false;
  } else {
    const Ps now = std::exchange(loop.now, left_out_.at);
    began_before_ = end;
    left_out_.in();
    loop.now = now;
  }
  loop.owner = owner;
}

void Host::kernel(Charge cost, Stage stage, const Callback& done, bool background, double memory) {
  if (absorbs_) return done();
  settle();
  if (anatomy.critical.on) [[unlikely]]
    record_request();
  kjobs_.push_back({cost, stage, done, loop.now, anatomy.current, loop.owner, background, memory_is_shared() ? memory : 0, loop.cause});
  if (!background) ++own_kjobs_;
  loop.add_pending(loop.owner);
  Core& c = cores_[0];
  if (c.kernel_busy) return;
  c.kernel_busy = true;
  if (c.running) pause(*c.running);
  start_kernel(c);
}

/// For the critical path: work of the kernel is asked for, by an event or by a thread that acts.
void Host::record_request() {
  if (acting())
    record_act();
  else
    anatomy.critical.order(asks_, loop.cause);
}

/// For the critical path: between which ends of its quanta a thread is now. Quanta that end while nobody waits, and those that do not end, decide
/// too. An end depends on the tick in which the thread got its processor; that of a quantum which is what was left of one, besides on all instants at
/// which it got and gave it up, which nothing records.
void Host::record_quantum(const Thread& t, bool contested) {
  CriticalPath& path = anatomy.critical;
  const auto who = static_cast<CriticalPath::Who>(t.log_);
  auto ends = [&](Ps at) {
    return spec.quantum_at_tick ? path.extend_to_fixed(t.dispatched_, at, Stage::Wait, who) : path.extend(t.dispatched_, at, Stage::Wait, who);
  };
  Ps next = t.q_end_, margin = kNever;
  if (next <= loop.now) {
    const int64_t ended = (loop.now - next) / spec.whole_quantum() + 1;
    const Ps last = next + (ended - 1) * spec.whole_quantum();
    path.follows(ends(last), loop.cause);
    margin = loop.now - last;
    next += ended * spec.whole_quantum();
  }
  path.follows(loop.cause, ends(next));
  margin = std::min(margin, next - loop.now);
  if (t.carried_ > 0) {
    if (contested && margin <= (t.carried_ + 1) * spec.tick) path.unfollowed("quanta that outlive a wait or an interruption");
  } else if (spec.quantum_at_tick && margin <= spec.tick) {
    const Ps tick = next_tick(path.time(t.dispatched_) + 1);
    path.follows(t.dispatched_, path.extend_to_fixed(0, tick, Stage::Wait, who));
    if (tick > spec.tick) path.follows(path.extend_to_fixed(0, tick - spec.tick, Stage::Wait, who), t.dispatched_);
  }
}

bool Host::acting() const {
  return std::any_of(cores_.begin(), cores_.end(), [](const Core& c) { return c.running && c.running->acting_; });
}

void Host::record_act() {
  anatomy.critical.order(asks_, loop.cause);
  anatomy.critical.order(acts_, loop.cause);
}

void Host::record_coming() {
  if (acting()) return record_act();
  anatomy.critical.order(acts_, loop.cause);
}

void Host::begin_kernel_work(Core& c) {
  c.kernel_since = loop.now;
  kernel_.need = kjobs_.front().cost.ps;
  kernel_.memory = kjobs_.front().memory;
  if (CriticalPath& path = anatomy.critical; path.on) {
    // Asked for after the work before it had ended, it would find that a thread has gone on between.
    if (c.running || waiting_ != 0) path.follows(kjobs_.front().point, kernel_.end);
    kernel_.point = path.join(path.join(loop.cause, kjobs_.front().point), kernel_.end);
  }
}

void Host::start_kernel(Core& c) {
  begin_kernel_work(c);
  if (kernel_.memory > 0) ++using_memory_;
  start_kernel_clock();
  if (kernel_.memory > 0) reshare(nullptr);
}

void Host::start_kernel_clock() {
  kernel_.began = loop.now;
  kernel_.slow = slowdown(kernel_.memory, nullptr);
  const Ps need = kernel_.slow > 1 ? static_cast<Ps>(static_cast<double>(kernel_.need) * kernel_.slow + 0.5) : kernel_.need;
  const Callback end = callback<&Host::on_kernel>(*this, ++kernel_.gen);
  if (const uint64_t sequence = std::exchange(began_before_, 0))
    loop.schedule_reserved(loop.now + need, sequence, end);
  else
    loop.schedule(loop.now + need, end, own_kjobs_ == 0);
}

void Host::on_kernel(uint32_t gen) {
  if (gen != kernel_.gen) return;
  Core& c = cores_[0];
  do end_kernel_work(c);
  while (!kjobs_.empty() && goes_on(c));
  if (!kjobs_.empty()) return start_kernel(c);
  c.kernel_busy = false;
  if (!c.running) return dispatch(0);
  // A thread that became ready meanwhile may outrank the interrupted one.
  if (others_ready(c.running->prio_ + 1, 0)) return preempt(0, true);
  go(*c.running);
  if (others_ready(0, 0)) arm(0);
}

/// Whether the next work of the kernel ends before anything else happens anywhere: then it has, without an event.
bool Host::goes_on(Core& c) {
  const KernelJob& next = kjobs_.front();
  const Ps end = loop.now + next.cost.ps;
  if (own_kjobs_ == 0 || next.memory > 0 || !loop.no_event_until(end)) return false;
  begin_kernel_work(c);
  kernel_.slow = 1;
  loop.move_clock(end);
  return true;
}

/// The first work of the kernel is done.
void Host::end_kernel_work(Core& c) {
  assert(c.kernel_busy && !kjobs_.empty());
  if (kernel_.memory > 0) {
    kernel_.memory = 0;
    --using_memory_;
    reshare(nullptr);
  }
  const KernelJob job = kjobs_.front();
  kjobs_.pop_front();
  if (!job.background) --own_kjobs_;
  if (anatomy.on) {
    anatomy.current = job.by;
    anatomy.current = anatomy.of(anatomy.record(name.c_str(), job.stage, job.asked, c.kernel_since, loop.now));
  }
  if (anatomy.critical.on) extend_over(job);
  const CriticalPath::Point here = loop.cause;
  loop.owner = job.owner;
  loop.remove_pending(job.owner);
  job.done();
  loop.cause = here;
}

/// The critical path over kernel work that is done, and over its interruption of a thread.
void Host::extend_over(const KernelJob& job) {
  CriticalPath& path = anatomy.critical;
  const Core& c = cores_[0];
  const Ps took = loop.now - c.kernel_since;
  const CriticalPath::Bill bill = path.stretched(job.cost.bill, job.cost.ps, took);
  loop.cause = kernel_.end = path.extend(kernel_.point, loop.now, job.stage, place_, bill);
  if (took > job.cost.ps) path.unfollowed("processors that slow each other down at the memory");
  path.order(acts_, loop.cause);
  if (!c.running || (spinning(*c.running) && c.running->pre_ == 0)) return;
  Thread& t = *c.running;
  if (path.time(t.point_) > c.kernel_since) {  // it has asked for the processor meanwhile
    t.point_ = path.join(loop.cause, t.point_);
    return;
  }
  // Its work is longer by the interruption, whenever that came.
  t.extend(loop.now, Stage::Interrupt);
  t.point_ = path.charge(t.point_, bill);
}

void Host::state(State& s) const {
  // `waiting_`, `pinned_`, `using_memory_` and `own_kjobs_` sum up what is put; `others_` and `copied_` only save time; the end of `kernel_` is an
  // event. The phase of the clock differs between repetitions (Loop::tick_uses).
  const auto& [shared_, spec, name, loop, anatomy, cores_, bus_free_, ready_, waiting_, pinned_, using_memory_, others_, copied_, kjobs_, kernel_,
               own_kjobs_, left_out_, absorbs_, began_before_, threads_, tick_phase_, place_, asks_, acts_] = *this;
  const auto& threads = threads_;
  auto index = [&threads](const Thread* t) {
    return std::find_if(threads.begin(), threads.end(), [t](const auto& each) { return each.get() == t; }) - threads.begin();
  };
  for (const Core& c : cores_) {
    const auto& [running, last, kernel_busy, kernel_since, free_point] = c;
    s.put(index(running));
    s.put(index(last));
    s.put(kernel_busy);
  }
  for (const auto& q : ready_) {
    s.put(q.size());
    for (const Thread* t : q) s.put(index(t));
  }
  for (const Ps free : bus_free_) s.put_busy_until(free);
  s.put(kjobs_.size());
  for (const KernelJob& job : kjobs_) {
    const auto& [cost, stage, done, asked, by, owner, background, memory, point] = job;
    s.put(cost.ps);
    s.put(background);
    if (memory > 0) s.refuse();
    s.put(done);
  }
  for (const auto& t : threads_) t->state(s);
}

State::Call Host::describe(const Callback& c, State& s) {
  if (!calls<&Host::on_kernel, Host>(c)) return State::Call::Unknown;
  const Host& h = *static_cast<const Host*>(c.object);
  if (static_cast<uint32_t>(c.arg) != h.kernel_.gen) return State::Call::Void;
  s.put(c.fn);
  s.put(c.object);
  return State::Call::Put;
}

}  // namespace retrompi
