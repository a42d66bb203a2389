// The scheduler of a host. Every thread that gets the processor after another one pays a context switch of 1 ms, the first one too.
#include "fixture.hpp"

namespace retrompi::test {
namespace {

class Scheduler : public testing::Test {
 public:
  Host& make(HostSpec spec = plain_host()) { return *(host = std::make_unique<Host>(loop, anatomy, std::move(spec))); }
  Task work(Thread& t, Ps ps, Ps* done) {
    co_await t.run(ps, Stage::Compute);
    *done = loop.now;
  }
  Task copy(Thread& t, Ps ps, Ps* done) {
    co_await t.run(ps, Stage::Copy, 1);
    *done = loop.now;
  }
  Task wait_then_work(Thread& t, WaitPolicy policy, Ps ps, Ps* woken, Ps* done) {
    co_await t.wait(policy);
    *woken = loop.now;
    co_await t.run(ps, Stage::Compute);
    *done = loop.now;
  }
  Task wake_then_spin(Thread& t, int polls) {
    co_await t.wait({.kind = WaitPolicy::Block});
    co_await t.wait({.kind = WaitPolicy::SpinYield, .polls = polls, .poll_cost = {kMillisecond / 10}});
  }
  Task nap(Thread& t, Ps ps, Ps* done) {
    co_await t.sleep(ps);
    *done = loop.now;
  }
  void signal(uint64_t immediate) { waiting->signal(immediate != 0); }
  void signal_at(Ps t, bool immediate = true) { loop.schedule(t, callback<&Scheduler::signal>(*this, immediate ? 1 : 0)); }
  void signal_boosted() {
    for (Thread* t : boosted) t->signal();
  }
  void kernel() { host->kernel(2 * kMillisecond, Stage::Stack, callback<&Scheduler::kernel_done>(*this)); }
  void kernel_copy() { host->kernel(2 * kMillisecond, Stage::Copy, callback<&Scheduler::kernel_done>(*this), false, 1); }
  void kernel_done() { kernel_at = loop.now; }
  void run() {
    while (!loop.empty()) loop.step();
  }
  Loop loop;
  Anatomy anatomy;
  std::unique_ptr<Host> host;
  Thread* waiting = nullptr;
  std::vector<Thread*> boosted;
  Ps a = -1, b = -1, woken = -1, kernel_at = -1;
};

TEST_F(Scheduler, AThreadThatIsAlonePaysOneSwitchAndNoQuanta) {
  Thread& t = make().add_thread("a", 1);
  t.start(work(t, 50 * kMillisecond, &a));
  run();
  EXPECT_EQ(a, 51 * kMillisecond);
  EXPECT_TRUE(t.finished());
}

// a: 0-20 (a switch and 19 of work), 40-60 (38), 80-93 (50). b: 20-40 (19), 60-80 (38), 93-106 (50).
TEST_F(Scheduler, TwoThreadsTakeTurnsByQuanta) {
  make();
  Thread &x = host->add_thread("a", 1), &y = host->add_thread("b", 1);
  x.start(work(x, 50 * kMillisecond, &a));
  y.start(work(y, 50 * kMillisecond, &b));
  run();
  EXPECT_EQ(a, 93 * kMillisecond);
  EXPECT_EQ(b, 106 * kMillisecond);
}

TEST_F(Scheduler, TwoProcessorsRunTwoThreadsAtOnce) {
  HostSpec spec = plain_host();
  spec.cores = 2;
  make(spec);
  Thread &x = host->add_thread("a", 1), &y = host->add_thread("b", 1);
  x.start(work(x, 50 * kMillisecond, &a));
  y.start(work(y, 30 * kMillisecond, &b));
  run();
  EXPECT_EQ(a, 51 * kMillisecond);
  EXPECT_EQ(b, 31 * kMillisecond);
}

// Each waits for memory throughout. Together, a memory for one copy at a time gives each a half, one for two serves both; alone again, b goes on at
// full rate: 1 (switch) + 2 x 30 for a; then 20 are left of b.
TEST_F(Scheduler, ProcessorsShareWhatTheMemoryServes) {
  for (const double streams : {1.0, 2.0}) {
    HostSpec spec = plain_host();
    spec.cores = 2;
    spec.mem_streams = streams;
    loop = Loop();
    make(spec);
    Thread &x = host->add_thread("a", 1), &y = host->add_thread("b", 1);
    x.start(copy(x, 30 * kMillisecond, &a));
    y.start(copy(y, 50 * kMillisecond, &b));
    run();
    EXPECT_EQ(a, (streams > 1 ? 31 : 61) * kMillisecond);
    EXPECT_EQ(b, (streams > 1 ? 51 : 81) * kMillisecond);
  }
}

// The system's own copy on the first processor: 2 ms alone, and the copy of the second takes as much longer.
TEST_F(Scheduler, TheKernelsCopiesUseTheMemoryToo) {
  HostSpec spec = plain_host();
  spec.cores = 2;
  make(spec);
  Thread &x = host->add_thread("a", 1), &y = host->add_thread("b", 1);
  x.start(work(x, 1 * kMillisecond, &a));
  y.start(copy(y, 50 * kMillisecond, &b));
  loop.schedule(5 * kMillisecond, callback<&Scheduler::kernel_copy>(*this));
  run();
  EXPECT_EQ(kernel_at, 9 * kMillisecond);
  EXPECT_EQ(b, 53 * kMillisecond);
}

// w: 0-1, then it waits. a: 1-5 (a switch and 3 of work). w is signalled at 5 and outranks a: 5-6 switch, 6-8 work. a: 8-9 switch, 9-56.
TEST_F(Scheduler, AWokenThreadIsBoostedAndPreempts) {
  make();
  Thread &w = host->add_thread("w", 1), &x = host->add_thread("a", 1);
  waiting = &w;
  w.start(wait_then_work(w, {.kind = WaitPolicy::Block}, 2 * kMillisecond, &woken, &b));
  x.start(work(x, 50 * kMillisecond, &a));
  signal_at(5 * kMillisecond);
  run();
  EXPECT_EQ(woken, 6 * kMillisecond);
  EXPECT_EQ(b, 8 * kMillisecond);
  EXPECT_EQ(a, 56 * kMillisecond);
}

// Without a boost it waits for the end of a's quantum: a got the processor at 1, so at 21.
TEST_F(Scheduler, WithoutABoostAWokenThreadWaitsForTheQuantum) {
  HostSpec spec = plain_host();
  spec.boost = 0;
  make(spec);
  Thread &w = host->add_thread("w", 1), &x = host->add_thread("a", 1);
  waiting = &w;
  w.start(wait_then_work(w, {.kind = WaitPolicy::Block}, 2 * kMillisecond, &woken, &b));
  x.start(work(x, 50 * kMillisecond, &a));
  signal_at(5 * kMillisecond);
  run();
  EXPECT_EQ(woken, 22 * kMillisecond);
}

TEST_F(Scheduler, KernelWorkInterruptsAThread) {
  Thread& t = make().add_thread("a", 1);
  t.start(work(t, 10 * kMillisecond, &a));
  loop.schedule(3 * kMillisecond, callback<&Scheduler::kernel>(*this));
  run();
  EXPECT_EQ(kernel_at, 5 * kMillisecond);
  EXPECT_EQ(a, 13 * kMillisecond);  // 1 + 10 + 2
  EXPECT_EQ(t.used(), 11 * kMillisecond);
}

// s gets the processor when a's quantum ends, and spins for one of its own: 20-40. a has worked 19 of 30; a switch, and the rest by 52.
TEST_F(Scheduler, ASpinningThreadBurnsItsQuantum) {
  make();
  Thread &x = host->add_thread("a", 1), &s = host->add_thread("s", 1);
  waiting = &s;
  x.start(work(x, 30 * kMillisecond, &a));
  s.start(wait_then_work(s, {.kind = WaitPolicy::Spin, .poll_cost = {kMillisecond / 10}}, 0, &woken, &b));
  signal_at(60 * kMillisecond);
  run();
  EXPECT_EQ(a, 52 * kMillisecond);
}

// The same, but after ten polls of 0.1 ms (21-22) it offers the processor to others: a has the rest by 22 + 1 + 11.
TEST_F(Scheduler, ASpinningThreadThatYieldsGivesTheProcessorBack) {
  make();
  Thread &x = host->add_thread("a", 1), &s = host->add_thread("s", 1);
  waiting = &s;
  x.start(work(x, 30 * kMillisecond, &a));
  s.start(wait_then_work(s, {.kind = WaitPolicy::SpinYield, .polls = 10, .poll_cost = {kMillisecond / 10}}, 0, &woken, &b));
  signal_at(60 * kMillisecond);
  run();
  EXPECT_EQ(a, 34 * kMillisecond);
  EXPECT_EQ(woken, 60 * kMillisecond + kMillisecond / 10);  // alone by then, it sees the signal with its next poll
}

// s and u are woken above a and offer the processor to each other, which ends their quanta and so their boost: else a would never get it again.
TEST_F(Scheduler, AThreadThatYieldsLosesItsBoost) {
  HostSpec spec = plain_host();
  spec.boost = 1;
  make(spec);
  Thread &s = host->add_thread("s", 1), &u = host->add_thread("u", 1), &x = host->add_thread("a", 1);
  s.start(wake_then_spin(s, 10));
  u.start(wake_then_spin(u, 10));
  x.start(work(x, 30 * kMillisecond, &a));
  boosted = {&s, &u};
  loop.schedule(5 * kMillisecond, callback<&Scheduler::signal_boosted>(*this));
  for (int i = 0; i < 10000 && !loop.empty() && a < 0; ++i) loop.step();
  EXPECT_GT(a, 0);
}

TEST_F(Scheduler, ASleepEndsAtATick) {
  HostSpec spec = plain_host();
  spec.dispatch = 0;
  Thread& t = make(spec).add_thread("a", 1);
  t.start(nap(t, 3 * kMillisecond, &a));
  run();
  EXPECT_EQ(a, 10 * kMillisecond);
}

TEST_F(Scheduler, TicksHaveAPhase) {
  HostSpec spec = plain_host();
  spec.dispatch = 0;
  spec.tick_phase = 4 * kMillisecond;
  Thread& t = make(spec).add_thread("a", 1);
  t.start(nap(t, 3 * kMillisecond, &a));
  run();
  EXPECT_EQ(a, 4 * kMillisecond);
}

/// When a thread that polls every 3 ms notices a signal.
class Polling : public Scheduler {
 public:
  Ps noticed(Ps signalled, bool immediate) {
    HostSpec spec = plain_host();
    spec.dispatch = 0;
    Thread& t = make(spec).add_thread("a", 1);
    waiting = &t;
    t.start(wait_then_work(t, {.kind = WaitPolicy::Poll, .period = 3 * kMillisecond}, 0, &woken, &a));
    signal_at(signalled, immediate);
    run();
    return woken;
  }
};

// A timed wait of 3 ms ends at the next tick, at 10.
TEST_F(Polling, EndsAtTheFirstTick) { EXPECT_EQ(noticed(2 * kMillisecond, false), 10 * kMillisecond); }
// The wait that begins at 10 ends at 20.
TEST_F(Polling, EndsAtTheTickOfALaterWait) { EXPECT_EQ(noticed(12 * kMillisecond, false), 20 * kMillisecond); }
TEST_F(Polling, IsEndedAtOnceByWhatASelectSees) { EXPECT_EQ(noticed(2 * kMillisecond, true), 2 * kMillisecond); }

// Work by the clock and what a cycle does, services by the null call: 4 us on the reference host.
TEST_F(Scheduler, CostsOfTheReferenceHostScaleByTheirKind) {
  HostSpec spec = plain_host();
  spec.clock = 2 * kReferenceClock;
  spec.work = 1.25;
  spec.syscall = 6 * kMicrosecond;
  Host& h = make(spec);
  EXPECT_EQ(h.time(Work{10 * kMicrosecond}), 4 * kMicrosecond);
  EXPECT_EQ(h.time(Service{10 * kMicrosecond}), 15 * kMicrosecond);
  EXPECT_EQ(h.time(Work{10 * kMicrosecond} + 2 * Work{5 * kMicrosecond}), 8 * kMicrosecond);
}

TEST_F(Scheduler, AKilledThreadGivesItsProcessorUp) {
  make();
  Thread &x = host->add_thread("a", 1), &y = host->add_thread("b", 1);
  waiting = &x;
  x.start(work(x, 50 * kMillisecond, &a));
  y.start(work(y, 5 * kMillisecond, &b));
  struct Killer {
    Thread& victim;
    void kill() { victim.kill(); }
  } killer{x};
  loop.schedule(10 * kMillisecond, callback<&Killer::kill>(killer));
  run();
  EXPECT_EQ(a, -1);
  EXPECT_TRUE(x.dead());
  EXPECT_EQ(b, 16 * kMillisecond);  // 10 + a switch + 5
}

}  // namespace
}  // namespace retrompi::test
