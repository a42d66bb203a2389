// What each action of a trace does (docs/trace-format.md); requests are filed as SMPI's replay files them.
#include "rank.hpp"

namespace retrompi {

namespace {
[[noreturn]] void bad(const Trace& t, int32_t rank, const Action& a, const std::string& why) {
  throw ConfigError(t.where(static_cast<size_t>(rank), a) + ": " + op_name(a.op) + ": " + why);
}
std::string peer_name(int32_t p) { return p == ANY_SOURCE ? "any source" : "rank " + std::to_string(p); }
}  // namespace

double Job::kernel_seconds(size_t host, const Action& a) const {
  const std::string& name = trace.labels[static_cast<size_t>(a.tag)];
  for (const KernelRow& k : kernels_)
    if (k.n == a.bytes && k.name == name && host < k.seconds.size()) return k.seconds[host];
  throw ConfigError("nobody has said what kernel '" + name + "' takes at length " + std::to_string(a.bytes));
}

Task Rank::main() {
  for (const Action& a : job_.trace.ranks[static_cast<size_t>(id)]) {
    now_at = &a;
    const Ps before = world.loop.now;
    co_await step(a);
    const Ps used = world.loop.now - before;
    if (a.op == Op::Compute || a.op == Op::Kernel || a.op == Op::Sleep)
      compute += used;
    else
      mpi += used;
  }
  // A trace may end without finalize; MPI must still see its sends through (MPI 1.1, 7.5).
  co_await until([this] { return open_sends_ == 0; }, spec_.send_wait, true);
  now_at = nullptr;
  finished = true;
  end = world.loop.now;
  ++job_.finished;
  // The library of the time goes on answering until the job is over (MPI_Finalize waits for everybody).
  while (true) {
    if (!inbox.empty())
      co_await absorb();
    else
      co_await thread.wait({.kind = WaitPolicy::Block});
  }
}

Task Rank::step(const Action& a) {
  switch (a.op) {
    case Op::Init:
      break;
    case Op::Finalize:
      co_await until([this] { return open_sends_ == 0; }, spec_.send_wait, true);
      break;
    case Op::Compute:
      co_await use(a.amount);
      break;
    case Op::Kernel:
      co_await busy(a.amount * job_.kernel_seconds(host_index, a));
      break;
    case Op::Sleep:
      within_horizon(a.amount);
      co_await thread.sleep(to_ps(a.amount));
      break;
    case Op::Mark:
      job_.marks.push_back({id, a.tag, world.loop.now});
      break;
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
      co_await completion(a);
      break;
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
      co_await collective(a);
      break;
    case Op::Put:
    case Op::Get:
    case Op::Accumulate:
    case Op::Fence:
    case Op::Flush:
      co_await one_sided(a);
      break;
    default:
      co_await point_to_point(a);
  }
}

Task Rank::use(double flops) { return busy(flops * world.compute_scale / host.spec.flops); }

Task Rank::busy(double seconds) {
  // Cut into parts, because the neighbours on the memory bus may stretch each of them.
  double left = seconds;
  while (left > 0) {
    within_horizon(left);
    const double part = std::min(left, 1e5);
    left -= part;
    co_await thread.run(to_ps(part), Stage::Compute, world.memory_share);
  }
}

void Rank::within_horizon(double seconds) const {
  constexpr double kHorizon = 4e6;  // seconds: with room for waiting and stretching, what picoseconds in 64 bits can count
  if (to_s(world.loop.now) + seconds < kHorizon) return;
  throw ConfigError(job_.trace.where(static_cast<size_t>(id), *now_at) + ": " + op_name(now_at->op) +
                    ": the simulated time would pass 4e6 s, the longest that can be counted");
}

void Rank::file(Request& r) {
  if (r.kind == Request::Send)
    r.src = id, r.dst = r.peer;
  else
    r.src = r.peer, r.dst = id;
  store_.push_back({r.src, r.dst, r.tag, &r});
}

Request* Rank::filed(const Action& a, bool& marker) {
  marker = false;
  for (size_t i = 0; i < store_.size(); ++i) {
    Filed& f = store_[i];
    if (f.src != a.peer || f.dst != a.peer2 || f.tag != a.tag) continue;
    if (!f.r) {  // completed by a test: this is the wait that belongs to it
      store_.erase(store_.begin() + static_cast<std::ptrdiff_t>(i));
      marker = true;
      return nullptr;
    }
    if (f.r->persistent && !f.r->active && a.op != Op::Start && a.op != Op::RequestFree) continue;
    return f.r;
  }
  return nullptr;
}

void Rank::settle(size_t i) {
  Request* r = store_[i].r;
  if (r && r->persistent) {
    r->active = false;
    return;
  }
  if (r) drop(*r);
  store_.erase(store_.begin() + static_cast<std::ptrdiff_t>(i));
}

Task Rank::start(Request& r) {
  r.active = true;
  if (r.kind == Request::Send)
    co_await isend(r.peer, r.tag, r.ctx, r.bytes, r.mode, r);
  else
    co_await irecv(r.peer, r.tag, r.ctx, r.bytes, r);
}

Task Rank::point_to_point(const Action& a) {
  switch (a.op) {
    case Op::Send:
    case Op::Ssend:
    case Op::Bsend:
    case Op::Rsend: {
      Request& r = make(Request::Send);
      co_await isend(a.peer, a.tag, 2 * a.comm, a.bytes, a.op, r);
      co_await wait(r);
      drop(r);
      break;
    }
    case Op::Isend:
    case Op::Issend:
    case Op::Ibsend:
    case Op::Irsend: {
      Request& r = make(Request::Send);
      r.peer = a.peer;
      r.tag = a.tag;
      file(r);
      co_await isend(a.peer, a.tag, 2 * a.comm, a.bytes, a.op, r);
      break;
    }
    case Op::Recv: {
      Request& r = make(Request::Recv);
      co_await irecv(a.peer, a.tag, 2 * a.comm, a.bytes, r);
      co_await wait(r);
      drop(r);
      break;
    }
    case Op::Irecv: {
      Request& r = make(Request::Recv);
      r.peer = a.peer;
      r.tag = a.tag;
      file(r);
      co_await irecv(a.peer, a.tag, 2 * a.comm, a.bytes, r);
      break;
    }
    case Op::Sendrecv: {
      Request& in = make(Request::Recv);
      Request& out_r = make(Request::Send);
      co_await irecv(a.peer2, 0, 2 * a.comm, a.bytes2, in);
      co_await isend(a.peer, 0, 2 * a.comm, a.bytes, Op::Isend, out_r);
      co_await wait(out_r);
      co_await wait(in);
      drop(in);
      drop(out_r);
      break;
    }
    case Op::SendInit:
    case Op::SsendInit:
    case Op::BsendInit:
    case Op::RsendInit:
    case Op::RecvInit: {
      Request& r = make(a.op == Op::RecvInit ? Request::Recv : Request::Send);
      r.peer = a.peer;
      r.tag = a.tag;
      r.ctx = 2 * a.comm;
      r.bytes = a.bytes;
      r.mode = a.op;
      r.persistent = true;
      r.active = false;
      r.done = true;
      file(r);
      break;
    }
    case Op::Probe:
    case Op::Iprobe: {
      Request want;
      want.peer = a.peer;
      want.tag = a.tag;
      auto there = [this, &want] { return std::any_of(unexpected_.begin(), unexpected_.end(), [&](const Message* m) { return fits(want, *m); }); };
      co_await library_call(spec_.test_cpu);
      if (a.op == Op::Probe)
        co_await until(there, spec_.recv_wait, true);
      else
        co_await progress();
      break;
    }
    default:
      bad(job_.trace, id, a, "not simulated");
  }
}

Task Rank::completion(const Action& a) {
  bool marker = false;
  switch (a.op) {
    case Op::Wait: {
      Request* r = filed(a, marker);
      if (!r) {
        // As in SMPI's replay: a key without a request was completed earlier, unless the rank never filed any request.
        if (!marker && store_.empty()) bad(job_.trace, id, a, "no request is outstanding on rank " + std::to_string(id));
        break;
      }
      co_await wait(*r);
      for (size_t i = 0; i < store_.size(); ++i)
        if (store_[i].r == r) {
          settle(i);
          break;
        }
      break;
    }
    case Op::Test: {
      Request* r = filed(a, marker);
      if (marker) store_.push_back({a.peer, a.peer2, a.tag, nullptr});
      co_await library_call(spec_.test_cpu);
      co_await progress();
      if (!r || !r->done) break;
      for (Filed& f : store_)
        if (f.r == r) {
          if (r->persistent) {
            r->active = false;
          } else {
            f.r = nullptr;
            drop(*r);
          }
          break;
        }
      break;
    }
    case Op::Waitall:
      for (size_t i = 0; i < store_.size(); ++i)
        if (store_[i].r) co_await wait(*store_[i].r);
      for (size_t i = store_.size(); i-- > 0;) settle(i);
      break;
    case Op::Waitany:
    case Op::Waitsome: {
      auto ready = [this] { return std::any_of(store_.begin(), store_.end(), [](const Filed& f) { return f.r && f.r->active && f.r->done; }); };
      const bool any = std::any_of(store_.begin(), store_.end(), [](const Filed& f) { return f.r && f.r->active; });
      if (!any) break;  // MPI 1.1, 3.7.5: no active request, returns at once
      co_await until(ready, spec_.recv_wait, true);
      for (size_t i = 0; i < store_.size();) {
        Request* r = store_[i].r;
        if (!r || !r->active || !r->done) {
          ++i;
          continue;
        }
        const bool stays = r->persistent;
        settle(i);
        if (a.op == Op::Waitany) break;
        if (stays) ++i;
      }
      break;
    }
    case Op::Testall:
    case Op::Testany:
    case Op::Testsome: {
      co_await library_call(spec_.test_cpu);
      co_await progress();
      auto open = [](const Filed& f) { return f.r && f.r->active && !f.r->done; };
      if (a.op == Op::Testall && std::any_of(store_.begin(), store_.end(), open)) break;
      for (size_t i = 0; i < store_.size();) {
        Request* r = store_[i].r;
        if (!r || !r->active || !r->done) {
          ++i;
          continue;
        }
        const bool stays = r->persistent;
        settle(i);
        if (a.op == Op::Testany) break;
        if (stays) ++i;
      }
      break;
    }
    case Op::Start: {
      Request* r = filed(a, marker);
      if (!r || !r->persistent) bad(job_.trace, id, a, "no persistent request of this key");
      co_await start(*r);
      break;
    }
    case Op::Startall:
      for (size_t i = 0; i < store_.size(); ++i)
        if (store_[i].r && store_[i].r->persistent && !store_[i].r->active) co_await start(*store_[i].r);
      break;
    case Op::RequestFree: {
      Request* r = filed(a, marker);
      if (!r) bad(job_.trace, id, a, "no request of this key");
      co_await wait(*r);  // MPI lets it complete; nothing of the program depends on when
      for (size_t i = 0; i < store_.size(); ++i)
        if (store_[i].r == r) {
          drop(*r);
          store_.erase(store_.begin() + static_cast<std::ptrdiff_t>(i));
          break;
        }
      break;
    }
    default:
      break;
  }
}

std::string Rank::waits_for() const {
  if (!now_at) return "nothing";
  const Action& a = *now_at;
  auto tag = [](int32_t t) { return t == ANY_TAG ? std::string("any tag") : "tag " + std::to_string(t); };
  switch (a.op) {
    case Op::Recv:
    case Op::Probe:
      return "a message from " + peer_name(a.peer) + ", " + tag(a.tag);
    case Op::Send:
    case Op::Ssend:
    case Op::Rsend:
    case Op::Bsend:
    case Op::Isend:
    case Op::Issend:
      return peer_name(a.peer) + " to take a message of " + std::to_string(a.bytes) + " B, " + tag(a.tag);
    case Op::Sendrecv:
      return peer_name(a.peer2) + " and " + peer_name(a.peer);
    case Op::Wait:
      return a.peer == id && a.peer2 != id ? peer_name(a.peer2) + " to take a message, " + tag(a.tag)
                                           : "a message from " + peer_name(a.peer) + ", " + tag(a.tag);
    case Op::Waitall:
    case Op::Waitany:
    case Op::Waitsome: {
      std::string s;
      for (const Filed& f : store_)
        if (f.r && !f.r->done)
          s += (s.empty() ? "" : "; ") +
               (f.r->kind == Request::Send ? peer_name(f.dst) + " to take a message, " : "a message from " + peer_name(f.src) + ", ") + tag(f.tag);
      return s.empty() ? "its requests" : s;
    }
    case Op::Finalize:
      return "its sends to be taken";
    default:
      return std::string("the other ranks in ") + op_name(a.op);
  }
}

}  // namespace retrompi
