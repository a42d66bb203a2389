// The event loop: simulated time and the queue of local events.
#pragma once
#include <cassert>
#include <functional>

#include "event/callback.hpp"
#include "event/event_queue.hpp"
#include "event/event_trace.hpp"
#include "event/limits.hpp"
#include "event/state.hpp"
#include "event/time.hpp"

namespace retrompi {

/// What happens beside the events of the hosts: on links.
class Outside {
 public:
  virtual ~Outside() = default;
  /// Everything that happens there at `Loop::external_event`; what it schedules on hosts runs when all of it has happened.
  virtual void advance() = 0;
  /// Whether something is under way that a process waits for.
  [[nodiscard]] virtual bool under_way() const = 0;
};

/// Events at one time run in the order in which they were scheduled.
///
/// An event is *passive* when it only passes time (a quantum ends, a poll finds nothing): a simulation in which only
/// passive events are left, nothing is on the wire and no process has anything to do is deadlocked.
///
/// An event whose effects nobody sees may be left out. What it would have scheduled has its place in the order all the same: the loop keeps the
/// turn of what is left out, and reserves a sequence number when it comes.
///
/// Several jobs share one queue. An event belongs to the owner it was scheduled for: with owners counted (`count_owners`), the loop
/// knows when one of them has nothing pending while others continue.
class Loop {
 public:
  Ps now = 0;                  // less what was skipped
  bool stopped = false;        // the job is done
  Ps limit = kNever;           // the last time at which anything may begin
  Ps external_event = kNever;  // the next event outside this queue: on a link
  uint32_t owner = 0;          // of the running event; 0: none
  uint32_t cause = 0;          // what the running event is a consequence of (record/critical_path.hpp); 0: the start
  EffortWatch effort;
  uint64_t tick_uses = 0;        // how often the phase of a host's clock has, or could have, decided something
  bool foresees = false;         // events may be left out
  std::function<void()> settle;  // schedules what has been left out and is not over

  /// The turn of an event that is left out.
  struct Turn {
    uint64_t sequence = 0;  // its own
    uint64_t next = 0;      // of what it would have scheduled; 0: its turn has not come
  };

  void schedule(Ps t, const Callback& c, bool passive = false) {
    active_ += passive ? 0 : 1;
    if (t <= now) {
      // Events in the queue for this time were scheduled earlier.
      present_.push_back(call(c, passive));
      return;
    }
    queue_.push({t, (next_sequence_++ << 1) | static_cast<uint64_t>(passive), call(c, passive)});
  }
  /// A sequence number for an event that is scheduled later, as if it had been scheduled now.
  uint64_t reserve_sequence() { return next_sequence_++; }
  /// An event at `t`, not before now, in the place of its reserved sequence number.
  void schedule_reserved(Ps t, uint64_t sequence, const Callback& c, bool passive = false) {
    assert(t >= now && sequence < next_sequence_);
    active_ += passive ? 0 : 1;
    queue_.push({t, (sequence << 1) | static_cast<uint64_t>(passive), call(c, passive)});
  }
  /// Leaves an event at `t` out that is scheduled now; what it begins ends at `end`. `turn` stays where it is until then.
  void leave_out(Ps t, Ps end, Turn& turn) {
    turn = {next_sequence_++, 0};
    turns_.push({t, turn.sequence, &turn});
    next_turn_ = turns_.front().t;
    left_out_until_ = std::max(left_out_until_, end);
  }
  /// Whether an event at `t` with this sequence number has had its turn.
  [[nodiscard]] bool past(Ps t, uint64_t sequence) const { return t < now || (t == now && sequence < running_); }
  /// From now on, pending work is counted for each owner below `n`.
  void count_owners(uint32_t n) { pending_.resize(n); }
  /// Counts pending work of an owner that is not an event in this queue: in a host's kernel, on the wire.
  void add_pending(uint32_t who) {
    if (who < pending_.size()) ++pending_[who];
  }
  void remove_pending(uint32_t who) {
    if (who >= pending_.size()) return;
    --pending_[who];
    assert(pending_[who] >= 0);
  }
  /// Whether a counted owner has only passive events pending.
  [[nodiscard]] bool idle(uint32_t who) const { return pending_[who] == 0; }
  [[nodiscard]] bool empty() const { return queue_.empty() && present_begin_ == present_.size(); }
  [[nodiscard]] bool only_passive() const { return active_ == 0; }
  [[nodiscard]] Ps next_time() const { return present_begin_ < present_.size() ? now : queue_.empty() ? kNever : queue_.front().t; }
  [[nodiscard]] uint64_t executed() const { return executed_; }
  /// Simulated time since the start, including what was skipped because it only repeated what had been simulated (mpi/recurrence.hpp).
  [[nodiscard]] Ps time() const { return now + skipped_; }
  void skip(Ps time) {
    skipped_ += time;
    if (limit != kNever) limit -= time;
  }
  /// What the pending events of the queue are consequences of.
  template <class F>
  void pending_causes(F f) const {
    queue_.each([&f](const Event& e) { f(e.call.cause); });
  }
  void state(State& s) const {
    // Sequence numbers only order the events, which are put in their order; what is counted has no effect. Nothing is left out now (`settle`).
    const auto& [now, stopped, limit, external_event, owner, cause, effort, tick_uses, foresees, settle, queue_, present_, present_begin_,
                 next_sequence_, running_, active_, executed_, skipped_, pending_, trace_, turns_, next_turn_, left_out_until_] = *this;
    queue_.each([&s](const Event& e) { s.put_event(e.t, e.order, e.call.what); });
    for (size_t i = present_begin_; i < present_.size(); ++i) s.put_event(now, (uint64_t{1} << 63) + i, present_[i].what);
  }
  /// Whether no event happens up to and including `t`: the running event may then move the clock there itself.
  [[nodiscard]] bool no_event_until(Ps t) const { return t < external_event && t < next_time() && t < next_turn_ && t <= limit && !stopped; }
  void move_clock(Ps t) {
    assert(no_event_until(t));
    now = t;
    running_ = UINT64_MAX;  // all that was to happen by then has happened
  }
  [[nodiscard]] bool finished() const { return stopped || now > limit; }
  /// Whether what happens at `t` is past the limit; the clock then stands there.
  bool ends_before(Ps t) {
    if (t <= limit) return false;
    now = limit;
    return true;
  }

  /// Runs until it is over or until nothing can happen any more. Returns true if nothing could happen (a deadlock). `could_act` is called
  /// when only passive events are left: whether a process has anything to do.
  bool run(Outside& outside, const std::function<bool()>& could_act) {
    while (!finished()) {
      if (only_passive()) [[unlikely]] {
        if (left_out_until_ > now) {
          left_out_until_ = -1;
          settle();
          continue;
        }
        if (!outside.under_way() && !could_act()) return true;
      }
      // At one time, what happens on the hosts comes first.
      const Ps hosts = next_time(), links = external_event;
      if (hosts <= links && (hosts != kNever || !empty())) {
        if (ends_before(hosts)) break;
        step();
      } else if (links == kNever) {
        return true;
      } else if (ends_before(links)) {
        break;
      } else {
        running_ = UINT64_MAX;
        take_turns(links, UINT64_MAX);
        outside.advance();
      }
    }
    return false;
  }
  /// Runs the next event; throws Limit if no more may run.
  void step() {
    assert(!empty());
    if (effort.due(executed_)) look();
    Call c;
    if (present_is_next()) {
      running_ = UINT64_MAX;  // after all that were scheduled earlier for this time
      take_turns(now, running_);
      c = present_[present_begin_++];
      if (present_begin_ == present_.size()) {
        present_.clear();
        present_begin_ = 0;
      }
    } else {
      const Event& e = queue_.front();
      assert(e.t >= now);  // time does not run back
      running_ = e.order >> 1;
      take_turns(e.t, running_);
      now = e.t;
      c = e.call;
      queue_.pop();
    }
    assert(c.passive || active_ > 0);
    active_ -= c.passive ? 0 : 1;
    if (!c.passive) remove_pending(c.owner);
    owner = c.owner;
    cause = c.cause;
    ++executed_;
    c.what();
  }

  /// Writes every event from now on to `trace`, which outlives the loop's events.
  void write_to(EventTrace& trace) {
    trace_ = &trace;
    effort.look_at_each();
  }
  /// Something outside this queue happens at `t`: what it calls is traced like an event.
  void trace(Ps t, const Callback& c) {
    if (trace_) [[unlikely]]
      trace_->write(t + skipped_, c);
  }

 private:
  /// Reserves the numbers of what would have been scheduled before an event at `t` with this sequence number.
  void take_turns(Ps t, uint64_t sequence) {
    if (next_turn_ <= t) [[unlikely]]
      take_turns_until(t, sequence);
  }
  [[gnu::noinline]] void take_turns_until(Ps t, uint64_t sequence) {
    while (!turns_.empty() && (turns_.front().t < t || (turns_.front().t == t && turns_.front().order < sequence))) {
      Turn& turn = *turns_.front().turn;
      if (turn.sequence == turns_.front().order) turn.next = next_sequence_++;
      turns_.pop();
    }
    next_turn_ = turns_.empty() ? kNever : turns_.front().t;
  }
  [[nodiscard]] bool present_is_next() const { return present_begin_ < present_.size() && (queue_.empty() || queue_.front().t > now); }
  /// Before an event: bounds on the work, and the trace.
  [[gnu::noinline, gnu::cold]] void look() {
    effort.look(executed_);
    trace(next_time(), present_is_next() ? present_[present_begin_].what : queue_.front().call.what);
  }
  struct Call {
    Callback what;
    bool passive;
    uint16_t owner;
    uint32_t cause;
  };
  Call call(const Callback& c, bool passive) {
    if (!passive) add_pending(owner);
    return {c, passive, static_cast<uint16_t>(owner), cause};
  }
  struct Event {
    Ps t;
    uint64_t order;
    Call call;
    static constexpr int kFetchSteps = Callback::kFetchSteps;
    void fetch(int step) const { call.what.fetch(step); }
  };
  struct LeftOut {
    Ps t;
    uint64_t order;
    Turn* turn;  // of another event by now if its number is another one
  };
  EventQueue<Event> queue_;
  std::vector<Call> present_;  // for the present time, in order; those before `present_begin_` have run
  size_t present_begin_ = 0;
  uint64_t next_sequence_ = 1;
  uint64_t running_ = 0;  // number of the running event
  uint64_t active_ = 0;
  uint64_t executed_ = 0;
  Ps skipped_ = 0;
  std::vector<int64_t> pending_;  // owner -> events that are not passive, and what `add_pending` counted
  EventTrace* trace_ = nullptr;
  EventHeap<LeftOut> turns_;
  Ps next_turn_ = kNever;
  Ps left_out_until_ = -1;  // what has been left out is over by then
};

}  // namespace retrompi
