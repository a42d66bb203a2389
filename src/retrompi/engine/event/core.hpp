// Time, the event loop and the coroutine type that every simulated process is written in.
#pragma once
#include <algorithm>
#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace retrompi {

/// Simulated time in picoseconds. An integer, so that the stages of a message sum to its total exactly
/// (a double loses picoseconds after a quarter of an hour) and the same inputs give the same bytes.
using Ps = int64_t;
constexpr Ps kNever = INT64_MAX;
constexpr double kPsPerSecond = 1e12;

/// Saturates at half of what fits, so that a time may be added to another one.
inline Ps to_ps(double seconds) {
  constexpr Ps kMost = kNever / 2;
  const double ps = seconds * kPsPerSecond + 0.5;
  return ps < static_cast<double>(kMost) ? static_cast<Ps>(ps) : kMost;
}
inline double to_s(Ps ps) { return static_cast<double>(ps) / kPsPerSecond; }

/// The model, the platform or the trace asks for something that cannot be simulated.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Chan;
class Rank;
/// The simulated run ended badly (pool exhausted, retries used up): a result, not a defect.
struct Abort {
  std::string reason;
  const Chan* full = nullptr;      // the channel that had no room
  const Rank* overflow = nullptr;  // the rank whose memory for unexpected messages had none
};

/// SplitMix64 (Steele, Lea, Flood 2014): tiny, seedable, identical on every machine; std distributions are not.
class Rng {
 public:
  explicit Rng(uint64_t seed) : s_(seed) {}
  uint64_t next() {
    uint64_t z = (s_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t s_;
};

/// What is to come, by time and among equal times by order. Four to a node; which of them is next is found without branches, and the hole
/// goes down to a leaf before the last one is put into it, where it belongs as a rule: nothing there can be foretold by a processor.
template <class E>
class Coming {
 public:
  [[nodiscard]] bool empty() const { return v_.empty(); }
  [[nodiscard]] const E& front() const { return v_.front(); }
  void push(const E& e) {
    v_.emplace_back();
    rise(v_.size() - 1, e);
  }
  void pop() {
    const E e = v_.back();
    v_.pop_back();
    const size_t n = v_.size();
    if (n == 0) return;
    size_t i = 0;
    while (true) {
      const size_t first = i * 4 + 1;
      if (first + 4 <= n) {
        const size_t a = first + sooner(v_[first + 1], v_[first]), b = first + 2 + sooner(v_[first + 3], v_[first + 2]);
        const size_t least = a + (b - a) * sooner(v_[b], v_[a]);
        v_[i] = v_[least];
        i = least;
        continue;
      }
      if (first < n) {
        size_t least = first;
        for (size_t k = first + 1; k < n; ++k) least += (k - least) * sooner(v_[k], v_[least]);
        v_[i] = v_[least];
        i = least;
      }
      break;
    }
    rise(i, e);
  }

 private:
  /// 1 or 0.
  static size_t sooner(const E& a, const E& b) {
    return static_cast<size_t>(a.t < b.t) | (static_cast<size_t>(a.t == b.t) & static_cast<size_t>(a.order < b.order));
  }
  void rise(size_t i, const E& e) {
    while (i > 0) {
      const size_t up = (i - 1) / 4;
      if (!sooner(e, v_[up])) break;
      v_[i] = v_[up];
      i = up;
    }
    v_[i] = e;
  }
  std::vector<E> v_;
};

/// The queue of local events. Events at one time run in the order in which they were asked for.
///
/// An event is *passive* when it only passes time (a quantum ends, a poll finds nothing): a simulation in which only
/// passive events are left, nothing is on the wire and no process has anything to do is deadlocked.
///
/// Several jobs share one queue. An event belongs to the owner for whom it was asked for: with `owners` counted it can be said of one
/// of them that nothing of it is to come while others go on.
class Loop {
 public:
  using Fn = void (*)(void*, uint64_t);
  Ps now = 0;
  bool over = false;    // the job is done
  Ps limit = kNever;    // the last time at which anything may begin
  Ps outside = kNever;  // when something happens that is not in this queue: on the wire
  uint32_t owner = 0;   // for whom things happen just now; 0: nobody in particular

  void at(Ps t, Fn fn, void* obj, uint64_t arg = 0, bool passive = false) {
    active_ += passive ? 0 : 1;
    if (t <= now) {
      // Whatever the heap holds for this time was asked for before.
      soon_.push_back(call(fn, obj, arg, passive));
      return;
    }
    heap_.push({t, (seq_++ << 1) | static_cast<uint64_t>(passive), call(fn, obj, arg, passive)});
  }
  /// A place in the order of events, for one that is put into the queue later: as if it had been asked for now.
  uint64_t ticket() { return seq_++; }
  /// An event at `t`, not before now, in the order of its ticket.
  void at_ticket(Ps t, uint64_t ticket, Fn fn, void* obj, uint64_t arg = 0, bool passive = false) {
    active_ += passive ? 0 : 1;
    heap_.push({t, (ticket << 1) | static_cast<uint64_t>(passive), call(fn, obj, arg, passive)});
  }
  /// From now on, what is to come is counted for each owner below `n`.
  void count_owners(uint32_t n) { coming_.resize(n); }
  /// Something of an owner is on its way that is no event of its own: in a host's kernel, on the wire.
  void hold(uint32_t who) {
    if (who < coming_.size()) ++coming_[who];
  }
  void release(uint32_t who) {
    if (who < coming_.size()) --coming_[who];
  }
  /// Whether nothing of a counted owner is to come but what only passes time.
  [[nodiscard]] bool idle(uint32_t who) const { return coming_[who] == 0; }
  [[nodiscard]] bool empty() const { return heap_.empty() && next_ == soon_.size(); }
  [[nodiscard]] bool only_passive() const { return active_ == 0; }
  [[nodiscard]] Ps next_time() const { return next_ < soon_.size() ? now : heap_.empty() ? kNever : heap_.front().t; }
  [[nodiscard]] uint64_t executed() const { return executed_; }
  /// Whether nothing at all happens until `t`, `t` included: whoever has the word may then move the clock there himself.
  [[nodiscard]] bool calm_until(Ps t) const { return t < outside && t < next_time() && t <= limit && !over; }
  [[nodiscard]] bool finished() const { return over || now > limit; }

  void step() {
    Call c;
    if (next_ < soon_.size() && (heap_.empty() || heap_.front().t > now)) {
      c = soon_[next_++];
      if (next_ == soon_.size()) {
        soon_.clear();
        next_ = 0;
      }
    } else {
      now = heap_.front().t;
      c = heap_.front().call;
      heap_.pop();
    }
    active_ -= c.passive ? 0 : 1;
    if (!c.passive) release(c.owner);
    owner = c.owner;
    ++executed_;
    c.fn(c.obj, c.arg);
  }

 private:
  struct Call {
    Fn fn;
    void* obj;
    uint64_t arg;
    bool passive;
    uint32_t owner;
  };
  Call call(Fn fn, void* obj, uint64_t arg, bool passive) {
    if (!passive) hold(owner);
    return {fn, obj, arg, passive, owner};
  }
  struct Event {
    Ps t;
    uint64_t order;
    Call call;
  };
  Coming<Event> heap_;
  std::vector<Call> soon_;  // for the present time, in order; those before `next_` have run
  size_t next_ = 0;
  uint64_t seq_ = 0;
  uint64_t active_ = 0;
  uint64_t executed_ = 0;
  std::vector<int64_t> coming_;  // owner -> events that are not passive, and what is held
};

/// Coroutine frames are recycled by size: a message allocates nothing once the pools are warm.
class FramePool {
 public:
  static void* get(size_t n) {
    const size_t k = slot(n);
    if (k >= kSlots) return ::operator new(n);
    if (Free* f = free_[k]) {
      free_[k] = f->next;
      return f;
    }
    return ::operator new((k + 1) * kStep);
  }
  static void put(void* p, size_t n) {
    const size_t k = slot(n);
    if (k < kSlots)
      free_[k] = new (p) Free{free_[k]};
    else
      ::operator delete(p);
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr size_t kStep = 64, kSlots = 32;
  static size_t slot(size_t n) { return (n + kStep - 1) / kStep - 1; }
  static inline std::array<Free*, kSlots> free_{};
};

/// A coroutine that starts when awaited (or resumed) and hands control back to its awaiter when it ends.
class [[nodiscard]] Task {
 public:
  struct promise_type {
    std::coroutine_handle<> next = std::noop_coroutine();
    std::exception_ptr error;
    static void* operator new(size_t n) { return FramePool::get(n); }
    static void operator delete(void* p, size_t n) { FramePool::put(p, n); }
    Task get_return_object() { return Task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept { return h.promise().next; }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle h) : h_(h) {}
  Task(Task&& o) noexcept : h_(std::exchange(o.h_, {})) {}
  Task& operator=(Task&& o) noexcept {
    if (this != &o) {
      if (h_) h_.destroy();
      h_ = std::exchange(o.h_, {});
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (h_) h_.destroy();
  }

  /// An empty one has nothing to do: a function that need not wait returns it and makes no coroutine.
  bool await_ready() const noexcept { return !h_; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    h_.promise().next = caller;
    return h_;
  }
  void await_resume() const {
    if (h_ && h_.promise().error) std::rethrow_exception(h_.promise().error);
  }
  [[nodiscard]] Handle handle() const { return h_; }
  [[nodiscard]] bool done() const { return h_ && h_.done(); }
  void check() const {
    if (h_ && h_.promise().error) std::rethrow_exception(h_.promise().error);
  }

 private:
  Handle h_;
};

}  // namespace retrompi
