#include "processors.hpp"

#include <algorithm>

namespace retrompi::online {

Thread::Thread(Processors& host, Sleeper& sleeper) : host_(host), sleeper_(sleeper), q_left_(host.facts_.quantum) {}

void Thread::held() {
  done_ = false;
  while (!done_) sleeper_.stop();
}

void Thread::start() {
  host_.make_ready(*this);
  held();
}

void Thread::run(Ps ps) {
  need_ = ps;
  host_.start_clock(*this);
  acting_ = false;
  // A woken thread may have a higher priority; this one can only be preempted once it has declared its next request.
  if (state_ == State::Running && host_.others_ready(prio_ + 1)) host_.preempt(static_cast<size_t>(core_), true);
  held();
}

void Thread::doze() {
  acting_ = false;
  host_.release(*this);
  held();
}

void Thread::sleep_until(Ps t) {
  acting_ = false;
  host_.release(*this);
  // A timed wait that expires is not a signalled object: no priority boost.
  simulated().at(t, [this] { host_.make_ready(*this); });
  held();
}

void Thread::wake() {
  prio_ = std::min(Processors::kPriorities - 1, std::max(prio_, host_.facts_.boost));
  host_.make_ready(*this);
}

void Thread::end() {
  acting_ = false;
  host_.release(*this);
}

bool Processors::others_ready(int prio) const {
  return std::any_of(ready_.begin() + std::min(prio, kPriorities), ready_.end(), [](const auto& q) { return !q.empty(); });
}

void Processors::start_clock(Thread& t) {
  t.on_clock_ = true;
  t.began_ = simulated().now();
  simulated().at(t.began_ + t.need_, [this, &t, gen = ++t.gen_] {
    if (gen != t.gen_) return;
    stop_clock(t);
    t.acting_ = t.done_ = true;
    t.sleeper_.wake();
  });
}

void Processors::stop_clock(Thread& t) {
  ++t.gen_;
  if (!t.on_clock_) return;
  t.on_clock_ = false;
  t.need_ -= simulated().now() - t.began_;
}

void Processors::make_ready(Thread& t, bool front) {
  if (!front) t.need_ = 0;
  t.state_ = Thread::State::Ready;
  auto& queue = ready_[static_cast<size_t>(t.prio_)];
  if (front)
    queue.push_front(&t);
  else
    queue.push_back(&t);
  for (size_t c = 0; c < cores_.size(); ++c)
    if (!cores_[c]) return dispatch(c);
  size_t worst = 0;
  int low = kPriorities;
  for (size_t c = 0; c < cores_.size(); ++c)
    if (cores_[c]->prio_ < low) low = cores_[c]->prio_, worst = c;
  if (low < t.prio_) {
    if (!cores_[worst]->acting_) preempt(worst, true);
    return;
  }
  for (size_t c = 0; c < cores_.size(); ++c) arm(c);
}

void Processors::dispatch(size_t core) {
  if (cores_[core]) return;
  const auto queue = std::find_if(ready_.rbegin(), ready_.rend(), [](const auto& q) { return !q.empty(); });
  if (queue == ready_.rend()) return;
  Thread& t = *queue->front();
  queue->pop_front();
  t.state_ = Thread::State::Running;
  t.core_ = static_cast<int>(core);
  cores_[core] = &t;
  const Ps now = simulated().now();
  t.q_end_ = (facts_.quantum_at_tick ? facts_.next_tick(now + 1) - facts_.tick : now) + t.q_left_;
  t.q_armed_ = false;
  start_clock(t);
  if (others_ready(0)) arm(core);
}

void Processors::arm(size_t core) {
  Thread* t = cores_[core];
  if (!t || t->q_armed_) return;
  if (t->q_end_ <= simulated().now()) {  // quanta that ended with no other thread ready
    const int64_t ended = (simulated().now() - t->q_end_) / facts_.quantum + 1;
    t->q_end_ += ended * facts_.quantum;
    t->prio_ = static_cast<int>(std::max<int64_t>(0, t->prio_ - ended));
  }
  t->q_armed_ = true;
  set_quantum(*t);
}

void Processors::set_quantum(Thread& t) {
  simulated().at(t.q_end_, [this, &t, gen = ++t.q_gen_] {
    if (gen != t.q_gen_ || t.state_ != Thread::State::Running || !t.q_armed_) return;
    t.q_armed_ = false;
    t.prio_ = std::max(0, t.prio_ - 1);
    t.q_end_ = simulated().now() + facts_.quantum;
    const auto core = static_cast<size_t>(t.core_);
    if (others_ready(t.prio_) && !t.acting_)
      preempt(core, false);
    else if (others_ready(0))
      arm(core);
  });
}

void Processors::preempt(size_t core, bool to_front) {
  Thread& t = *cores_[core];
  stop_clock(t);
  t.q_left_ = to_front ? std::max<Ps>(t.q_end_ - simulated().now(), 1) : facts_.quantum;
  t.q_armed_ = false;
  t.state_ = Thread::State::Ready;
  t.core_ = -1;
  cores_[core] = nullptr;
  auto& queue = ready_[static_cast<size_t>(t.prio_)];
  if (to_front)
    queue.push_front(&t);
  else
    queue.push_back(&t);
  dispatch(core);
}

void Processors::release(Thread& t) {
  stop_clock(t);
  t.q_left_ = facts_.quantum;
  if (facts_.quantum_carry) {
    Ps left = t.q_end_ - simulated().now();
    if (left <= 0) left += (-left / facts_.quantum + 1) * facts_.quantum;
    left -= facts_.wait_charge;
    if (left <= 0) {
      left = facts_.quantum;
      t.prio_ = std::max(0, t.prio_ - 1);
    }
    t.q_left_ = left;
  }
  t.q_armed_ = false;
  const auto core = static_cast<size_t>(t.core_);
  t.state_ = Thread::State::Blocked;
  t.core_ = -1;
  cores_[core] = nullptr;
  dispatch(core);
}

}  // namespace retrompi::online
