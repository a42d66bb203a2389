// The coroutine type that every simulated process is written in.
#pragma once
#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

namespace retrompi {

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
  static constexpr size_t kStep = 16, kSlots = 128;
  static size_t slot(size_t n) { return (n + kStep - 1) / kStep - 1; }
  static inline std::array<Free*, kSlots> free_{};
};

class State;

/// Where a coroutine is, and with what, while it waits in something it has called: in words, for those that compare states. It lives in the
/// coroutine.
class Site {
 public:
  using Put = void (*)(const Site&, State&);
  explicit Site(Put put) : put_(put) {}
  void put(State& s) const { put_(*this, s); }
  [[nodiscard]] Put function() const { return put_; }

 private:
  Put put_;
};
/// `F`: void (State&), puts the coroutine's variables.
template <class F>
class SiteOf : public Site {
 public:
  explicit SiteOf(F f) : Site([](const Site& site, State& s) { static_cast<const SiteOf&>(site).f_(s); }), f_(f) {}

 private:
  F f_;
};

/// A coroutine that starts when awaited (or resumed) and hands control back to its awaiter when it ends.
class [[nodiscard]] Task {
 public:
  struct promise_type {
    std::coroutine_handle<> next = std::noop_coroutine();
    std::exception_ptr error;
    const Site* site = nullptr;
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

  /// `co_await Task::At{site}` in a coroutine states its site, and does not wait.
  struct At {
    const Site& site;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(Handle h) const noexcept {
      h.promise().site = &site;
      return false;
    }
    void await_resume() const noexcept {}
  };

  /// `co_await Task::Self{}` in a coroutine is its address, and does not wait.
  struct Self {
    const void* address = nullptr;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(Handle h) noexcept {
      address = h.address();
      return false;
    }
    [[nodiscard]] const void* await_resume() const noexcept { return address; }
  };

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

  /// An empty task is already complete: a function that need not wait returns it and creates no coroutine.
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
  [[nodiscard]] bool failed() const { return done() && h_.promise().error; }
  void check() const {
    if (h_ && h_.promise().error) std::rethrow_exception(h_.promise().error);
  }

 private:
  Handle h_;
};

}  // namespace retrompi
