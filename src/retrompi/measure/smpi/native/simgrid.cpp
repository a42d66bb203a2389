#include "simgrid.hpp"

#include <cmath>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

// clang-format off: not self-contained in 3.32, it needs what s4u.hpp includes
#include <simgrid/version.h>

#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
// clang-format on

#include "law.hpp"

// Exported, but in no public header.
namespace simgrid::smpi::colls {
extern int (*bcast)(void* buf, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
}
namespace simgrid::smpi {
class Datatype {
 public:
  void ref();
  static void unref(Datatype* type);
  int pack(const void* in, int count, void* out, int size, int* position, const Comm* comm);
  int unpack(const void* in, int size, int* position, void* out, int count, const Comm* comm);
};
class Op {
 public:
  void ref();
  static void unref(Op** op);
  void apply(const void* in, void* both, const int* count, Datatype* type) const;
};
}  // namespace simgrid::smpi

namespace sg = simgrid::s4u;

namespace retrompi::online {

using simgrid::kernel::timer::Timer;

Ps Clock::now() {
  // SimGrid accumulates seconds in floating point; the requested time is authoritative.
  const Ps there = std::llround(sg::Engine::get_clock() * kPsPerSecond);
  if (there > last_ + 2) last_ = there;
  return last_;
}

void Clock::at(Ps t, std::function<void()> what) {
  t = std::max(t, now());
  coming_.push({t, order_++, std::make_shared<std::function<void()>>(std::move(what))});
  if (busy_) return in_any_case(t);
  if (t < armed_) {
    armed_ = t;
    Timer::set(to_s(t), [this, t] { due(t); });
  }
}

void Clock::stop_after(Ps t, std::function<void()> what) {
  limit_ = t;
  over_ = std::move(what);
}

void Clock::advance(Ps t) {
  if (t > limit_) over_();
  last_ = std::max(last_, t);
}

void Clock::due(Ps t) {
  if (busy_ || t != armed_) return;  // superseded by an earlier event
  advance(t);
  busy_ = true;
  run();
}

void Clock::run() {
  woken_ = false;
  while (!woken_ && !coming_.empty() && coming_.front().t <= last_) {
    const auto what = coming_.front().what;
    coming_.pop();
    (*what)();
  }
  if (woken_) {  // the next actor that stops continues
    ++opening_;
    if (!coming_.empty()) in_any_case(coming_.front().t);
    return;
  }
  busy_ = false;
  armed_ = coming_.empty() ? kNever : coming_.front().t;
  if (armed_ != kNever) Timer::set(to_s(armed_), [this, next = armed_] { due(next); });
}

/// A woken actor may stop inside SimGrid rather than here: then time advances without it.
void Clock::in_any_case(Ps t) {
  t = std::max(t, last_ + 1);
  Timer::set(to_s(t), [this, t, opening = opening_] {
    if (!busy_ || opening != opening_) return;
    advance(t);
    run();
  });
}

void Clock::go_on() {
  if (busy_) run();
}

Clock& simulated() {
  static Clock one;
  return one;
}

struct Sleeper::Inside {
  sg::SemaphorePtr bell = sg::Semaphore::create(0);
};
Sleeper::Sleeper() : in_(std::make_unique<Inside>()) {}
Sleeper::~Sleeper() = default;
void Sleeper::stop() {
  simulated().go_on();
  in_->bell->acquire();
}
void Sleeper::wake() {
  simulated().woken_ = true;
  in_->bell->release();
}

void keep(MPI_Datatype type) {
  if (type) type->ref();
}
void keep(MPI_Op op) {
  if (op) op->ref();
}
void release(MPI_Datatype type) {
  if (type) simgrid::smpi::Datatype::unref(type);
}
void release(MPI_Op op) { simgrid::smpi::Op::unref(&op); }

void pack(MPI_Datatype type, const void* at, int count, std::vector<char>& data) {
  int place = 0;
  type->pack(at, count, data.data(), static_cast<int>(data.size()), &place, nullptr);
}
void unpack(MPI_Datatype type, const std::vector<char>& data, void* at, int count) {
  int place = 0;
  type->unpack(data.data(), static_cast<int>(data.size()), &place, at, count, nullptr);
}
void combine(MPI_Op op, const void* in, void* both, int count, MPI_Datatype type) { op->apply(in, both, &count, type); }

int64_t actor() { return sg::Actor::self() == nullptr ? 0 : sg::this_actor::get_pid(); }
void on_deadlock(std::function<void()> what) { sg::Engine::on_deadlock_cb(std::move(what)); }
void on_end(std::function<void()> what) {
  sg::this_actor::on_exit([what = std::move(what)](bool) { what(); });
}

namespace {
std::function<int(MPI_Comm)>& numbering() {
  static std::function<int(MPI_Comm)> chosen;
  return chosen;
}
int (*smpis_bcast)(void*, int, MPI_Datatype, int, MPI_Comm) = nullptr;
int bcast(void* at, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const int number = count == 1 && type == MPI_INT ? numbering()(comm) : -1;
  if (number < 0) return smpis_bcast(at, count, type, root, comm);
  *static_cast<int*>(at) = number;
  return MPI_SUCCESS;
}
}  // namespace

void number_communicators(std::function<int(MPI_Comm)> number) {
  numbering() = std::move(number);
  smpis_bcast = simgrid::smpi::colls::bcast;
  simgrid::smpi::colls::bcast = &bcast;
}

}  // namespace retrompi::online
