// Requests of a thread to its host (an interval of work, a wait, a signal), and the events that end them.
#include "host/host.hpp"

namespace retrompi {

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
  q_left_ = host_.spec.whole_quantum();
  seg_begin_ = host_.loop.now;
  host_.make_ready(*this);
}

// Awaited calls that end at once may nest on the stack, depending on the compiler.
constexpr uint32_t kMostSkipped = 200;

Thread::Await Thread::run(Charge charge, Stage s, double memory) {
  const Ps ps = charge.ps;
  if (ps <= 0) {
    if (charge.bill != 0) host_.loop.cause = host_.anatomy.critical.charge(host_.loop.cause, charge.bill);
    return {*this, true};
  }
  if (!host_.memory_is_shared()) memory = 0;
  if (host_.undisturbed(*this, host_.loop.now + ps) && !(memory > 0 && host_.using_memory_ > 0) && ++skipped_ < kMostSkipped) {
    // Nothing could observe the elapsed time: no event, and the coroutine continues at once.
    const Ps now = host_.loop.now;
    used_ += ps;
    if (host_.anatomy.log) {
      want_ = s;
      host_.anatomy.segment(log_, seg_begin_, now, seg_, policy_.what);
      point_ = host_.loop.cause;
      log_work(now, now + ps);
      host_.loop.cause = point_ = host_.anatomy.critical.charge(point_, charge.bill);
    }
    if (host_.anatomy.on) host_.anatomy.current = {Cause::Thread, log_};
    host_.loop.move_clock(now + ps);
    seg_begin_ = now + ps;
    seg_ = Stage::Library;
    return {*this, true};
  }
  skipped_ = 0;
  need_ = work_ = ps;
  slowed_ = 0;
  memory_ = memory;
  want_ = s;
  mode_ = Mode::Work;
  point_ = host_.loop.cause;
  bill_ = charge.bill;
  host_.go(*this);
  return {*this, false};
}

CriticalPath::Bill Thread::joined_bill(const Part& a, const Part& b) const { return host_.anatomy.critical.joined(a.charge.bill, b.charge.bill); }

bool Thread::host_log() const { return host_.anatomy.log; }

void Thread::log_work(Ps begin, Ps end) {
  if (want_ != Stage::Wait) {
    extend(end, want_);
    return host_.anatomy.segment(log_, begin, end, want_, policy_.what);
  }
  for (Part& p : parts_) {
    Ps& left = p.charge.ps;
    const Ps n = std::min(left, end - begin);
    host_.anatomy.segment(log_, begin, begin + n, p.s, policy_.what);
    extend(begin + n, p.s);
    left -= n;
    begin += n;
  }
}

void Thread::extend(Ps until, Stage s) {
  CriticalPath& path = host_.anatomy.critical;
  if (path.on) point_ = path.extend(point_, until, s, static_cast<CriticalPath::Who>(log_));
}

void Thread::close_log() {
  if (on_clock_) host_.stop_clock(*this);
  enter(seg_);
}

Thread::Await Thread::wait(const WaitPolicy& p) {
  policy_ = p;
  poll_ = host_.time(p.poll_cost) + host_.time(p.poll_call);
  signalled_ = false;
  poll_armed_ = false;
  mode_ = Mode::Wait;
  wait_begin_ = host_.loop.now;
  need_ = 0;
  memory_ = 0;
  wait_point_ = host_.loop.cause;
  host_.acted();
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
  ++host_.loop.tick_uses;
  host_.loop.schedule(host_.next_tick(host_.loop.now + ps), callback<&Thread::on_wake>(*this, gen_ + 1));
  host_.release(*this);
  return {*this, false};
}

void Thread::acts() const { host_.acted(); }

void Thread::signal(bool immediate, bool network) {
  host_.came();
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
        ++host_.loop.tick_uses;
        const Ps tick = host_.spec.tick, now = host_.loop.now;
        Ps due = host_.next_tick(wait_begin_ + policy_.period);
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
        signalled_ = false;  // it has waited until now
        const bool given = pre_ > 0;
        host_.pause(*this);
        signalled_ = true;
        need_ = notice(network);
        want_ = Stage::Poll;
        if (CriticalPath& path = host_.anatomy.critical; path.on) {
          const CriticalPath::Point told = path.join(host_.loop.cause, wait_point_);
          if (pre_ > 0)
            told_ = told;  // it looks when it has its processor
          else
            point_ = given ? path.join(told, point_) : told;
        }
        host_.go(*this);
        host_.reblame();
      } else {
        need_ = notice(network);
        want_ = Stage::Poll;
        if (host_.anatomy.critical.on) ready_point_ = host_.anatomy.critical.join(host_.loop.cause, wait_point_);
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
      if (const auto at = std::find(h.ready_[p].begin(), h.ready_[p].end(), this); at != h.ready_[p].end()) h.ready_[p].erase(at);
      if (h.ready_[p].empty()) h.waiting_ &= ~(1U << p);
    }
  ++gen_;  // its pending timer events are stale
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
  if (!network || policy_.look_every <= 1) return poll_;
  const Ps round = std::max<Ps>(1, policy_.look_every * poll_);
  if (host_.anatomy.critical.on) host_.anatomy.critical.unfollowed("polls that look at the network now and then");
  return round - (host_.loop.now - wait_begin_) % round;
}

void Thread::pin(int core) {
  pin_ = core;
  host_.pinned_ = true;
}

bool Thread::could_act() const { return state_ == State::Ready && (mode_ != Mode::Wait || signalled_); }

void Thread::on_done(uint32_t gen) {
  if (gen != gen_) return;
  host_.pause(*this);
  host_.resume(*this);
}

void Thread::schedule_quantum_end() {
  q_due_ = q_end_;
  host_.loop.schedule_reserved(q_end_, q_sequence_, callback<&Thread::on_quantum>(*this, q_sequence_), true);
}

// Most quanta end early: the event of one stays in the queue for those that follow, and moves on to the end of the current one.
void Thread::on_quantum(uint64_t sequence) {
  if (host_.loop.now != q_due_) return;  // an earlier one has been set since
  q_due_ = kNever;
  if (state_ != State::Running || !q_armed_) return;
  if (sequence != q_sequence_) return schedule_quantum_end();
  q_armed_ = false;
  if (CriticalPath& path = host_.anatomy.critical; path.on) {
    const Stage s = host_.spinning(*this) ? Stage::Quantum : Stage::Queueing;
    host_.loop.cause = path.extend_to_fixed(quantum_point_, host_.loop.now, s, static_cast<CriticalPath::Who>(log_));
    path.unfollowed("ends of quanta");
    host_.came();
  }
  if (host_.spec.quantum_at_tick) ++host_.loop.tick_uses;
  prio_ = std::max(0, prio_ - 1);
  q_end_ = host_.loop.now + host_.spec.whole_quantum();
  const auto core = static_cast<size_t>(core_);
  if (host_.others_ready(prio_, core))
    host_.preempt(core, false);
  else if (host_.others_ready(0, core))
    host_.arm(core);
}

void Thread::on_yield(uint32_t gen) {
  if (gen != gen_ || state_ != State::Running) return;
  const auto core = static_cast<size_t>(core_);
  if (!host_.others_ready(prio_, core)) return;
  CriticalPath& path = host_.anatomy.critical;
  if (path.on && pre_ > 0 && pre_ < host_.context_switch().ps) path.unfollowed("switches of a processor that the kernel interrupts");
  point_ = host_.loop.cause;
  host_.pause(*this);  // it may have been given the processor for these looks
  extend(host_.loop.now, Stage::Poll);
  host_.loop.cause = point_;
  host_.came();
  prio_ = std::max(0, prio_ - 1);  // its quantum is over (E-NT-13)
  host_.preempt(core, false);
}

void Thread::on_wake(uint32_t gen) {
  if (gen != gen_ || state_ != State::Blocked) return;
  host_.anatomy.segment(log_, seg_begin_, host_.loop.now, seg_, policy_.what);
  seg_begin_ = host_.loop.now;
  if (CriticalPath& path = host_.anatomy.critical; path.on) {
    const auto who = static_cast<CriticalPath::Who>(log_);
    const bool polled = mode_ == Mode::Wait;  // a sleep has a length besides
    point_ = polled ? path.join(path.extend_to_fixed(host_.loop.cause, host_.loop.now, Stage::Tick, who), wait_point_)
                    : path.extend(host_.loop.cause, host_.loop.now, Stage::Tick, who);
    host_.loop.cause = point_;
    path.unfollowed("ticks of the clock");
    host_.came();
  }
  // A timed wait that runs out is not a signalled object: no boost (NT boosts by the object that was waited for).
  ++gen_;
  need_ = 0;
  want_ = Stage::Event;
  host_.make_ready(*this);
}

/// It may have held its processor since before that period, and nobody wanted it: its quanta have ended meanwhile, as `arm` finds when somebody does.
void Thread::skip(Ps time, Ps begin) {
  if (!q_armed_ && held_since_ <= begin) q_end_ -= time;
}

/// Step by step: itself; its host and the frame of the coroutine that goes on; the processors, and the frame that goes on after that.
void Thread::fetch(int step) const {
  switch (step) {
    case 0:
      return fetch_lines(this, 7);
    case 1:
      fetch_lines(&host_, 7);
      return fetch_lines(resume_.address(), 4);
    case 2:
      fetch_lines(host_.cores_.data(), 2);
      if (resume_ && mode_ == Mode::Work && state_ == State::Running)
        fetch_lines(Task::Handle::from_address(resume_.address()).promise().next.address(), 4);
      return;
    default:
      return;
  }
}

Ps Thread::host_time() const { return host_.loop.now; }

// A coroutine that waits is at the `co_await` of its `wait`, and its process says what for. One that is in the middle of work may be anywhere.
void Thread::state(retrompi::State& s) const {
  // One that waits has no interval under way but what is put (`want_`, `memory_`, `slow_` are of work), and what a record needs has no effect.
  // `skipped_` bounds how deep calls may nest; `poll_` and `wait_begin_` matter to one that polls.
  const auto& [host_, name_, log_, owner_, main_, resume_, state_, mode_, policy_, poll_, signalled_, poll_armed_, prio_, core_, pin_, pre_, need_,
               memory_, slow_, began_, acting_, on_clock_, q_armed_, skipped_, gen_, q_left_, q_end_, held_since_, q_sequence_, q_due_, wait_begin_,
               bill_, work_, slowed_, point_, quantum_point_, wait_point_, ready_point_, dispatched_, told_, carried_, begun_, stopped_, want_, seg_,
               seg_begin_, used_, parts_] = *this;
  if (!acting_ && mode_ != Mode::Wait) return s.refuse();
  s.put(state_);
  s.put(mode_);
  s.put(signalled_);
  s.put(poll_armed_);
  s.put(prio_);
  s.put(core_);
  s.put(q_left_);
  s.put(on_clock_);
  const Ps used = on_clock_ ? s.now() - began_ : Ps(0), pre = std::min(used, pre_);
  s.put(pre_ - pre);
  const bool spin = mode_ == Mode::Wait && !signalled_;
  s.put(spin || acting_ ? Ps(0) : need_ - (used - pre));
  if (mode_ == Mode::Wait) {
    s.put(policy_.kind);
    s.put(policy_.what);
    s.put(policy_.polls);
    s.put(policy_.look_every);
    s.put(policy_.period);
    s.put(poll_);
    if (policy_.kind == WaitPolicy::Poll || policy_.look_every > 1) s.put_time(wait_begin_);
  }
  // The end of a quantum that nobody waits for decides nothing as long as it is so (`skip`); `quantum_matters` where the clock's phase does.
  if (state_ == State::Running && q_armed_) s.put_due(q_end_, q_sequence_ << 1 | 1, callback<&Thread::on_quantum>(const_cast<Thread&>(*this)));
}

void Thread::sites(retrompi::State& s, const void* innermost) const {
  const void* outermost = main_.handle().address();
  for (const void* at = innermost;;) {
    const auto& coroutine = Task::Handle::from_address(const_cast<void*>(at)).promise();
    if (!coroutine.site) return s.refuse();
    s.put(reinterpret_cast<const void*>(coroutine.site->function()));
    coroutine.site->put(s);
    if (at == outermost) return;
    at = coroutine.next.address();
  }
}

retrompi::State::Call Thread::describe(const Callback& c, retrompi::State& s) {
  using Call = retrompi::State::Call;
  const Thread& t = *static_cast<const Thread*>(c.object);
  if (calls<&Thread::on_quantum, Thread>(c)) return Call::Void;  // put as due by `state`
  const bool wake = calls<&Thread::on_wake, Thread>(c);
  if (!wake && !calls<&Thread::on_done, Thread>(c) && !calls<&Thread::on_yield, Thread>(c)) return Call::Unknown;
  if (static_cast<uint32_t>(c.arg) != t.gen_ || (wake && t.state_ != State::Blocked)) return Call::Void;
  s.put(c.fn);
  s.put(c.object);
  return Call::Put;
}

}  // namespace retrompi
