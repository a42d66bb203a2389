// What each action of a trace does (docs/trace-format.md); requests are filed as SMPI's replay files them.
#include "mpi/rank.hpp"

namespace retrompi {

double Job::kernel_seconds(size_t host, const Action& a) const {
  const auto& x = a.get<action::Kernel>();
  const std::string& name = trace.labels[static_cast<size_t>(x.label)];
  for (const KernelRow& k : kernels_)
    if (k.n == x.length && k.name == name && host < k.seconds.size()) return k.seconds[host];
  throw ConfigError("nobody has said what kernel '" + name + "' takes at length " + std::to_string(x.length));
}

Task Rank::main() {
  const ActionList& mine = job_.trace.ranks[static_cast<size_t>(id)];
  for (place_ = mine.begin(); place_ != mine.end(); ++place_) {
    const Action& a = *place_;
    now_at = &a;
    const Ps before = world.loop.now;
    if (common.timeline) common.timeline->begin_call(id, before);
    if (a.op == Op::Mark)
      job_.marks.push_back({id, a.get<action::Mark>().label, world.loop.now});
    else if (a.op != Op::Init && a.op != Op::CommFree)  // freeing is local: MPI lets what is under way end, and nobody has to agree
      co_await step(a);
    ++common.count.done[static_cast<size_t>(a.op)];
    if (common.timeline) common.timeline->end_call(id, a, world.loop.now);
    if (common.profile) common.profile->ended(id, a, before, world.loop.now);
    const Ps used = world.loop.now - before;
    if (a.op == Op::Compute || a.op == Op::Kernel || a.op == Op::Sleep)
      compute += used;
    else
      mpi += used;
  }
  // A trace may end without finalize; MPI must still see its sends through (MPI 1.1, 7.5).
  co_await until([this] { return open_sends_ == 0 && running_.empty(); }, spec_.send_wait, true);
  now_at = nullptr;
  finished = true;
  end = world.loop.now;
  if (++job_.finished == static_cast<int32_t>(job_.ranks.size())) job_.over();
  // The library of the time goes on answering until the job is over (MPI_Finalize waits for everybody).
  while (true) {
    if (!inbox.empty())
      co_await absorb();
    else
      co_await thread.wait({.kind = WaitPolicy::Block});
  }
}

/// What an action does; marks and what takes no time are not for here.
Task Rank::step(const Action& a) {
  switch (a.op) {
    case Op::Finalize:
      return until([this] { return open_sends_ == 0 && running_.empty(); }, spec_.send_wait, true);
    case Op::Compute:
      return use(a.get<action::Compute>().flops);
    case Op::Kernel:
      return busy(a.get<action::Kernel>().times * job_.kernel_seconds(host_index, a));
    case Op::Sleep:
      within_horizon(a.get<action::Sleep>().seconds);
      return nap(to_ps(a.get<action::Sleep>().seconds));
    case Op::Wait:
    case Op::Waitall:
    case Op::Waitany:
    case Op::Waitsome:
    case Op::Test:
    case Op::Testall:
    case Op::Testany:
    case Op::Testsome:
    case Op::Startall:
    case Op::Start:
    case Op::RequestFree:
      return completion(a);
    case Op::Barrier:
    case Op::Bcast:
    case Op::Reduce:
    case Op::Allreduce:
    case Op::Scan:
    case Op::Exscan:
    case Op::ReduceScatter:
    case Op::Alltoall:
    case Op::Alltoallv:
    case Op::Gather:
    case Op::Gatherv:
    case Op::Allgather:
    case Op::Allgatherv:
    case Op::Scatter:
    case Op::Scatterv:
    case Op::Alltoallw:
    case Op::ReduceScatterBlock:
    case Op::NeighborAllgather:
    case Op::NeighborAllgatherv:
    case Op::NeighborAlltoall:
    case Op::NeighborAlltoallv:
    case Op::NeighborAlltoallw:
      return collective(a);
    case Op::CommNew:
      return new_communicator(a);
    case Op::Put:
    case Op::Get:
    case Op::Accumulate:
    case Op::GetAccumulate:
    case Op::FetchOp:
    case Op::CompareSwap:
    case Op::Fence:
    case Op::Flush:
    case Op::FlushLocal:
    case Op::Lock:
    case Op::LockAll:
    case Op::Unlock:
    case Op::UnlockAll:
    case Op::WinPost:
    case Op::WinStart:
    case Op::WinComplete:
    case Op::WinWait:
    case Op::WinNew:
    case Op::WinFree:
      return one_sided(a);
    case Op::Probe:
    case Op::Iprobe:
      return probe(a);
    default:
      return point_to_point(a);
  }
  return {};
}

Task Rank::nap(Ps ps) { co_await thread.sleep(ps); }

Task Rank::use(double flops) { return busy(flops * common.compute_scale / host.spec.flops); }

Task Rank::busy(double seconds) {
  // Cut into parts, because the neighbours on the memory bus may stretch each of them.
  double left = seconds;
  while (left > 0) {
    within_horizon(left);
    const double part = std::min(left, 1e5);
    left -= part;
    co_await thread.run(to_ps(part), Stage::Compute, common.memory_share);
  }
}

void Rank::within_horizon(double seconds) const {
  constexpr double kHorizon = 4e6;  // seconds: with room for waiting and stretching, what picoseconds in 64 bits can count
  if (to_s(world.loop.now) + seconds < kHorizon) return;
  throw ConfigError(job_.trace.where(static_cast<size_t>(id), *now_at) + ": " + op_name(now_at->op) +
                    ": the simulated time would pass 4e6 s, the longest that can be counted");
}

action::Envelope Rank::asked(const Action& a) const {
  const bool recorded = a.matched() && !job_.free_wildcards;
  if (const auto* both = a.get_if<action::SendReceive>()) return recorded ? both->matched : action::Envelope{both->source, both->receive_tag};
  const auto& x = a.get<action::PointToPoint>();
  return recorded ? x.matched : action::Envelope{x.peer, x.tag};
}

Task Rank::blocking_send(const Action& a) {
  Request& r = make(Request::Send);
  const auto& x = a.get<action::PointToPoint>();
  co_await isend(x.peer, x.tag, program_context(a.comm), x.bytes, a.op, r);
  co_await wait(r);
  drop(r);
}

Task Rank::blocking_receive(const Action& a) {
  Request& r = make(Request::Recv);
  const action::Envelope from = asked(a);
  co_await irecv(from.source, from.tag, program_context(a.comm), a.get<action::PointToPoint>().bytes, r);
  co_await wait(r);
  drop(r);
}

Task Rank::send_and_receive(const Action& a) {
  const int32_t ctx = program_context(a.comm);
  Request& in = make(Request::Recv);
  Request& out_r = make(Request::Send);
  const action::Envelope from = asked(a);
  const auto& x = a.get<action::SendReceive>();
  co_await irecv(from.source, from.tag, ctx, x.receive_bytes, in);
  co_await isend(x.destination, x.send_tag, ctx, x.bytes, Op::Isend, out_r);
  co_await wait(out_r);
  co_await wait(in);
  drop(in);
  drop(out_r);
}

Task Rank::point_to_point(const Action& a) {
  if (a.op == Op::Sendrecv) return send_and_receive(a);
  const int32_t ctx = program_context(a.comm);
  const auto& x = a.get<action::PointToPoint>();
  switch (a.op) {
    case Op::Send:
    case Op::Ssend:
    case Op::Bsend:
    case Op::Rsend:
      return blocking_send(a);
    case Op::Isend:
    case Op::Issend:
    case Op::Ibsend:
    case Op::Irsend: {
      Request& r = make(Request::Send);
      r.peer = x.peer;
      r.tag = x.tag;
      file(r, a.request);
      return isend(x.peer, x.tag, ctx, x.bytes, a.op, r);
    }
    case Op::Recv:
      return blocking_receive(a);
    case Op::Irecv: {
      Request& r = make(Request::Recv);
      r.peer = x.peer;
      r.tag = x.tag;
      file(r, a.request);
      const action::Envelope from = asked(a);
      return irecv(from.source, from.tag, ctx, x.bytes, r);
    }
    case Op::SendInit:
    case Op::SsendInit:
    case Op::BsendInit:
    case Op::RsendInit:
    case Op::RecvInit: {
      Request& r = make(a.op == Op::RecvInit ? Request::Recv : Request::Send);
      r.peer = x.peer;
      r.tag = x.tag;
      r.ctx = ctx;
      r.bytes = x.bytes;
      r.mode = a.op;
      r.persistent = true;
      r.active = false;
      r.done = true;
      file(r, a.request);
      break;
    }
    default:
      bad(a, "not simulated");
  }
  return {};
}

Task Rank::probe(const Action& a) {
  Request want;
  const action::Envelope from = asked(a);
  want.peer = from.source;
  want.tag = from.tag;
  want.ctx = program_context(a.comm);
  auto there = [this, &want] { return std::any_of(unexpected_.begin(), unexpected_.end(), [&](const Message* m) { return fits(want, *m); }); };
  co_await library_call(spec_.test_cpu);
  // One that found a message waits for it; one that found none, or of which nobody knows, is a look.
  if (a.op == Op::Probe || (a.told() && a.done())) {
    if (a.op == Op::Iprobe) co_await progress();
    co_await until(there, spec_.recv_wait, true);
  } else {
    co_await progress();
  }
}

}  // namespace retrompi
