#include "mpi/rank.hpp"

#include "mpi/recurrence.hpp"

namespace retrompi {

Rank::Rank(Job& j, World& w, Host& h, size_t host_index, int32_t n, const RankSpec& s)
    : Proc(w, j, h, "rank " + std::to_string(n) + j.suffix, host_index), RankParts(*this, j, s, n) {
  idle = spec.recv_wait;
}

Task Rank::main() {
  const ActionList& mine = job.trace.ranks[static_cast<size_t>(id)];
  const SiteOf here([this](State& s) { s.put(now_at != nullptr); });  // its place: where repetitions are counted
  co_await Task::At{here};
  for (place_ = mine.begin(); place_ != mine.end(); advance()) {
    if (job.recurrence && job.recurrence->at(*this)) leave_out_now();
    const Action& a = *place_;
    now_at = &a;
    call_began = world.loop.time();
    if (common.timeline) common.timeline->begin_call(id, call_began);
    if (a.op == Op::Mark)
      job.marks.push_back({id, a.get<action::Mark>().label, world.loop.time()});
    else {
      if (!job.order.over && !computation(a.op)) co_await turn(a.line);
      co_await execute(*this, a);
    }
    ++common.count.done[static_cast<size_t>(a.op)];
    const Ps now = world.loop.time(), used = now - call_began;
    if (common.timeline) common.timeline->end_call(id, a, now);
    if (common.profile) common.profile->ended(id, a, call_began, now);
    if (computation(a.op))
      count.compute += used;
    else
      count.mpi += used;
  }
  call_began = world.loop.time();
  // A trace may end without finalize; MPI must still complete its sends (MPI 1.1, 7.5).
  co_await finish_pending();
  now_at = nullptr;
  finished = true;
  host.acted();
  if (world.anatomy.critical.on && common.number == 1) world.anatomy.critical.end(world.loop.cause);
  end = world.loop.time();
  if (++job.finished == static_cast<int32_t>(job.ranks.size())) job.over();
  // The library continues to answer until the job is over (MPI_Finalize waits for all ranks).
  while (true) {
    if (!inbox.empty())
      co_await absorb();
    else
      co_await thread.wait({.kind = WaitPolicy::Block});
  }
}

void Rank::advance() {
  ++index_;
  ++place_;
  leave_out_now();
}

/// Actions are left out only when none is under way that refers to the list.
void Rank::leave_out_now() {
  if (left_out_ == 0) return;
  index_ += std::exchange(left_out_, 0);
  place_ = job.trace.ranks[static_cast<size_t>(id)].from(index_);
}

void Rank::state(State& s) const {
  put_inbox(s);
  // Channels are put by the builder; the place in the trace and when the call began are where repetitions are counted (Recurrence). Test calls
  // and turns are no calls that repeat.
  const auto& [job, spec, id, out, bulk, end, call_began, count, now_at, awaited, finished, sender, receiver, requests, one_sided, collectives,
               gated_, place_, index_, left_out_, tests_] = static_cast<const RankParts&>(*this);
  s.put(finished);
  collectives.state(s);
  one_sided.state(s);
  sender.state(s);
  receiver.state(s);
  requests.state(s);
  put_request(s, awaited);
  s.put(tests_);
  if (thread.acting()) return;
  thread.sites(s);
}

/// Outside of the library: what arrives meanwhile stays in its channel.
Task Rank::turn(uint32_t line) {
  gated_ = line;
  co_await Proc::until([this, line] { return job.may_begin(id, line); }, {.kind = WaitPolicy::Block}, false);
  gated_ = 0;
}

Task Rank::finish_pending() {
  return until([this] { return sender.all_complete() && collectives.idle(); }, spec.send_wait, true);
}

void Rank::fail(const Action& a, const std::string& why) const {
  throw ConfigError(job.trace.where(static_cast<size_t>(id), a) + ": " + op_name(a.op) + ": " + why);
}

Ps Rank::conversion(int32_t peer, int64_t bytes) const {
  if (spec.convert_buffer <= 0 || job.rank(peer).host.spec.byte_order == host.spec.byte_order) return 0;
  const int64_t buffers = (bytes + spec.convert_buffer - 1) / spec.convert_buffer;
  return host.time(Work{static_cast<Ps>(spec.convert_byte * static_cast<double>(bytes))} + buffers * spec.convert_call);
}

Task Rank::stage(const Message& m, double copies, double byte) {
  co_await thread.run(host.time(Work{static_cast<Ps>(byte * static_cast<double>(m.bytes))}), Stage::Library);
  if (copies <= 0) co_return;
  const bool sends = m.src == id;
  const Chan& chan = *out[static_cast<size_t>(sends ? m.dst : m.src)];  // both directions are alike
  co_await thread.run(plain_copy(m.bytes, copies, chan.holds(m.bytes, sends)));
}

Task Rank::handle(Packet p) {
  // Matching and completion are charged when the message arrives, not when its receive is posted: in a PingPong the posting
  // overlaps the wait.
  const bool called =
      p.first && (p.kind == Packet::Rts || (p.kind == Packet::Data && !p.m->rendezvous)) && (spec.lock.some() || spec.recv_cpu.some());
  if (called || (p.kind == Packet::Data && !p.held && conversion(p.m->src, p.bytes) > 0)) return handle_with_work(p, called);
  return handle_now(p);
}

Task Rank::handle_with_work(Packet p, bool called) {
  if (called) co_await library_call(rank_number::recv_cpu);
  if (p.kind == Packet::Data && !p.held) {
    if (!p.m->envelope_known) receiver.arrive(*p.m);
    co_await thread.run(conversion(p.m->src, p.bytes), Stage::Library);
  }
  co_await handle_now(p);
}

Task Rank::handle_now(const Packet& p) {
  Message& m = *p.m;
  switch (p.kind) {
    case Packet::Rts:
      receiver.arrive(m);
      receiver.on_request(m, p.bytes);
      if (m.rreq) return receiver.on_match(m);
      break;
    case Packet::Cts:
      return sender.cleared(m);
    case Packet::Done:
      sender.sent(m);
      break;
    case Packet::SyncAck:
      m.acked = true;
      sender.try_complete(m);
      break;
    case Packet::Data:
      return receiver.on_data(m, p);
  }
  return {};
}

Task Rank::locked_call(Charge work, Charge system) {
  co_await thread.run(host.work_of(spec, rank_number::lock), Stage::Lock);
  co_await thread.run(host.time(spec.lock.system), Stage::Syscall);
  co_await thread.run(work, Stage::Library);
  co_await thread.run(system, Stage::Syscall);
}

Task Rank::progress() {
  // A test call polls shared memory each time, the network only every n-th time.
  const int every = spec.recv_wait.look_every;
  const bool look = every <= 1 || ++tests_ % every == 0;
  auto network = [](const Token& t) { return t.chan->medium == Medium::Stream; };
  if (look && every > 1 && std::none_of(inbox.begin(), inbox.end(), network))
    co_await thread.run(host.time(spec.recv_wait.look_cost), Stage::Syscall);
  while (true) {
    const auto it = look ? inbox.begin() : std::find_if_not(inbox.begin(), inbox.end(), network);
    if (it == inbox.end()) {
      host.acted();
      if (!collectives.can_advance()) co_return;
      co_await collectives.advance_all();
      continue;
    }
    std::rotate(inbox.begin(), it, it + 1);
    co_await absorb();
  }
}

Task Rank::wait(Request& r) {
  if (r.done) return {};
  return wait_open(r);
}

Task Rank::wait_open(Request& r) {
  const SiteOf here([&](State& s) { put_request(s, &r); });
  co_await Task::At{here};
  awaited = &r;
  const WaitPolicy& policy = r.kind == Request::Send ? spec.send_wait : spec.recv_wait;
  if (!collectives.idle()) co_await until([&r] { return r.done; }, policy, true);
  const void* self = job.recurrence ? co_await Task::Self{} : nullptr;
  while (!r.done) {
    if (inbox.empty()) {
      if (self) job.recurrence->at(*this, self);
      co_await thread.wait(policy);
    } else {
      co_await absorb();
    }
  }
  awaited = nullptr;
}

}  // namespace retrompi
