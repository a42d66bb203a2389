// What each action of a trace does (docs/trace-format.md).
#include "mpi/rank.hpp"

namespace retrompi {

action::Envelope wanted(const Job& job, const Action& a) {
  const bool recorded = a.matched() && !job.free_wildcards;
  if (const auto* both = a.get_if<action::SendReceive>()) return recorded ? both->matched : action::Envelope{both->source, both->receive_tag};
  const auto& x = a.get<action::PointToPoint>();
  return recorded ? x.matched : action::Envelope{x.peer, x.tag};
}

namespace {

/// ConfigError for a duration that cannot be counted.
void within_horizon(const Rank& rank, double seconds) {
  constexpr double kHorizon = 4e6;  // seconds: range of picoseconds in 64 bits, less a margin for waiting and slowdown
  if (to_s(rank.world.loop.time()) + seconds < kHorizon) return;
  rank.fail(*rank.now_at, "the simulated time would pass 4e6 s, the longest that can be counted");
}

Task busy(Rank& rank, double seconds, CriticalPath::Bill bill = 0) {
  // Cut into parts, because the neighbours on the memory bus may stretch each of them.
  double left = seconds;
  while (left > 0) {
    within_horizon(rank, left);
    const double part = std::min(left, 1e5);
    left -= part;
    co_await rank.thread.run({to_ps(part), std::exchange(bill, 0)}, Stage::Compute, rank.common.memory_share);
  }
}

Task nap(Rank& rank, Ps ps) { co_await rank.thread.sleep(ps); }

Task blocking_send(Rank& rank, const Action& a) {
  Request& r = rank.job.new_request(Request::Send);
  const SiteOf here([&](State& s) { put_request(s, &r); });
  co_await Task::At{here};
  const auto& x = a.get<action::PointToPoint>();
  co_await rank.sender.isend(x.peer, x.tag, program_context(a.comm), x.bytes, a.op, r);
  co_await rank.wait(r);
  rank.job.free_request(r);
}

Task blocking_receive(Rank& rank, const Action& a) {
  Request& r = rank.job.new_request(Request::Recv);
  const SiteOf here([&](State& s) { put_request(s, &r); });
  co_await Task::At{here};
  const action::Envelope from = wanted(rank.job, a);
  co_await rank.receiver.irecv(from.source, from.tag, program_context(a.comm), a.get<action::PointToPoint>().bytes, r);
  co_await rank.wait(r);
  rank.job.free_request(r);
}

Task send_and_receive(Rank& rank, const Action& a) {
  const int32_t ctx = program_context(a.comm);
  Request& in = rank.job.new_request(Request::Recv);
  Request& out_r = rank.job.new_request(Request::Send);
  const SiteOf here([&](State& s) {
    put_request(s, &in);
    put_request(s, &out_r);
  });
  co_await Task::At{here};
  const action::Envelope from = wanted(rank.job, a);
  const auto& x = a.get<action::SendReceive>();
  co_await rank.receiver.irecv(from.source, from.tag, ctx, x.receive_bytes, in);
  co_await rank.sender.isend(x.destination, x.send_tag, ctx, x.bytes, Op::Isend, out_r);
  co_await rank.wait(out_r);
  co_await rank.wait(in);
  rank.job.free_request(in);
  rank.job.free_request(out_r);
}

Task point_to_point(Rank& rank, const Action& a) {
  const int32_t ctx = program_context(a.comm);
  const auto& x = a.get<action::PointToPoint>();
  const bool receives = is_receive(a.op);
  if (!is(a.op, Trait::Posts)) return receives ? blocking_receive(rank, a) : blocking_send(rank, a);
  Request& r = rank.job.new_request(receives ? Request::Recv : Request::Send);
  r.peer = x.peer;
  r.tag = x.tag;
  if (is_persistent(a.op)) {
    r.ctx = ctx;
    r.bytes = x.bytes;
    r.mode = a.op;
    r.persistent = true;
    r.active = false;
    r.done = true;
  }
  rank.requests.file(r, a.request);
  if (r.persistent) return {};
  if (!receives) return rank.sender.isend(x.peer, x.tag, ctx, x.bytes, a.op, r);
  const action::Envelope from = wanted(rank.job, a);
  return rank.receiver.irecv(from.source, from.tag, ctx, x.bytes, r);
}

Task probe(Rank& rank, const Action& a) {
  Request want;
  const action::Envelope from = wanted(rank.job, a);
  want.peer = from.source;
  want.tag = from.tag;
  want.ctx = program_context(a.comm);
  auto there = [&queue = rank.receiver.unexpected(), &want] {
    return std::any_of(queue.begin(), queue.end(), [&](const Message* m) { return matches(want, *m); });
  };
  co_await rank.library_call(rank_number::test);
  if (from.source == PROC_NULL) co_return;  // MPI 4.0, 3.10: returns at once
  // A probe recorded as successful waits for its message; one that failed, or whose outcome is unknown, is a single test.
  if (a.op == Op::Probe || (a.told() && a.done())) {
    if (a.op == Op::Iprobe) co_await rank.progress();
    co_await rank.until(there, rank.spec.recv_wait, true);
  } else {
    co_await rank.progress();
  }
}

}  // namespace

Task compute(Rank& rank, double flops) {
  const auto amount = flops * rank.common.compute_scale / host_number::flops;
  return busy(rank, amount.seconds(rank.host.spec), rank.host.bill(amount));
}

Task execute(Rank& rank, const Action& a) {
  switch (a.kind()) {
    case ActionKind::Compute:
      return compute(rank, a.get<action::Compute>().flops);
    case ActionKind::Kernel: {
      const auto& x = a.get<action::Kernel>();
      return busy(rank, x.times * rank.job.kernel_seconds(rank.host_index, x));
    }
    case ActionKind::Sleep: {
      const double seconds = a.get<action::Sleep>().seconds;
      within_horizon(rank, seconds);
      return nap(rank, to_ps(seconds));
    }
    case ActionKind::OneRequest:
    case ActionKind::SeveralRequests:
      return rank.requests.execute(a);
    case ActionKind::Collective:
      return rank.collectives.execute(a);
    case ActionKind::NewComm:
      return make_communicator(rank, a);
    case ActionKind::NewWindow:
    case ActionKind::Rma:
    case ActionKind::WindowSync:
      return rank.one_sided.execute(a);
    case ActionKind::SendReceive:
      return send_and_receive(rank, a);
    case ActionKind::PointToPoint:
      return is_probe(a.op) ? probe(rank, a) : point_to_point(rank, a);
    case ActionKind::None:  // freeing a communicator is local: MPI lets pending operations complete, without synchronisation
      if (a.op == Op::Finalize) return rank.finish_pending();
      break;
    case ActionKind::Mark:
      break;
  }
  return {};
}

}  // namespace retrompi
