// What a blocked rank waits for, for the deadlock analysis.
#include "mpi/rank.hpp"

namespace retrompi {

namespace {

using List = std::vector<Awaited>;

void add(List& out, const Request& r) {
  if (r.done || (r.kind != Request::Send && r.kind != Request::Recv)) return;
  const bool send = r.kind == Request::Send;
  const int32_t comm = r.ctx < 0 ? 0 : r.ctx / 2;
  const bool own = r.ctx >= 0 && r.ctx % 2 != 0;  // a collective's message
  out.push_back({r.peer, own ? Awaited::Collective : send ? Awaited::Receiver : Awaited::Message, own ? 0 : r.tag, comm, send ? r.bytes : 0});
}

void add_collective(List& out, const CollectiveRun& c) {
  for (size_t i = c.passed; i < c.open.size(); ++i) {
    // Of several, only the one that the current step waits for blocks the algorithm.
    if (c.blocked && c.steps.step().kind == coll::Step::Wait && c.open[i].slot != c.steps.step().slot) continue;
    add(out, *c.open[i].r);
  }
}

/// A request that the trace names.
void add_filed(List& out, const Rank& rank, const Request& r) {
  if (r.kind == Request::Collective) {
    for (const auto& c : rank.collectives.running())
      if (c->request == &r) add_collective(out, *c);
  } else if (!r.persistent || r.active) {
    add(out, r);
  }
}

/// Those that a call waits for of which several are named, or all.
void add_several(List& out, const Rank& rank, const Action& a) {
  const auto& x = a.get<action::SeveralRequests>();
  if (x.list < 0) {
    for (const RequestTable::Filed& f : rank.requests.filed())
      if (f.r) add_filed(out, rank, *f.r);
    return;
  }
  const auto& list = rank.job.vector(x.list);
  const bool chosen = a.op != Op::Waitall && a.told();  // the recorded ones
  const auto from = list.begin() + (chosen ? x.count : 0), to = from + (chosen ? x.completed : x.count);
  for (const RequestTable::Filed& f : rank.requests.filed())
    if (f.r && std::find(from, to, int64_t{f.req}) != to) add_filed(out, rank, *f.r);
}

/// The library is finished when its collectives and what it has sent are.
void add_pending(List& out, const Rank& rank) {
  for (const auto& c : rank.collectives.running()) add_collective(out, *c);
  for (const RequestTable::Filed& f : rank.requests.filed())
    if (f.r && f.r->kind == Request::Send) add_filed(out, rank, *f.r);
}

/// What a blocking call waits for.
void add_blocking(List& out, const Rank& rank, const Action& a) {
  const Request* awaited = rank.awaited;
  const auto& open = rank.collectives.blocking().open;
  if (awaited && awaited->kind == Request::Collective) {
    add_filed(out, rank, *awaited);
  } else if (awaited) {
    add(out, *awaited);
  } else if (!open.empty()) {
    add(out, *open.back().r);  // in the middle of a send: there is no space on its path
  } else if (is_send(a.op) && a.kind() == ActionKind::PointToPoint) {
    const auto& x = a.get<action::PointToPoint>();
    out.push_back({x.peer, Awaited::Receiver, x.tag, a.comm, x.bytes});
  }
  // A sendrecv waits for its send first; if the other half is open as well, the same call blocks it.
  if (a.op == Op::Sendrecv && awaited && awaited->kind == Request::Send) {
    const auto& x = a.get<action::SendReceive>();
    out.push_back({x.source, Awaited::Message, x.receive_tag, a.comm, 0});
  }
}

}  // namespace

std::vector<Awaited> awaits(const Rank& rank) {
  List out;
  if (!rank.now_at || rank.thread.dead()) return out;
  const Action& a = *rank.now_at;
  if (const Rank* owner = rank.one_sided.waits_to_lock()) return {{owner->id, Awaited::Lock, 0, a.comm, 0}};
  switch (a.op) {
    case Op::Waitall:
    case Op::Waitany:
    case Op::Waitsome:
      add_several(out, rank, a);
      break;
    case Op::Probe:
    case Op::Iprobe: {
      const action::Envelope from = wanted(rank.job, a);
      out.push_back({from.source, Awaited::Message, from.tag, a.comm, 0});
      break;
    }
    case Op::Finalize:
      add_pending(out, rank);
      break;
    default:
      add_blocking(out, rank, a);
  }
  return out;
}

std::string waits_for(const Rank& rank) {
  if (!rank.now_at) return "nothing";
  std::string s;
  for (const Awaited& w : awaits(rank)) {
    const std::string who = w.rank == ANY_SOURCE ? "any source" : "rank " + std::to_string(w.rank);
    const std::string tag = w.tag == ANY_TAG ? "any tag" : "tag " + std::to_string(w.tag);
    const std::string comm = w.comm == 0 ? "" : ", communicator " + std::to_string(rank.job.comm(w.comm).id);
    std::string what;
    switch (w.what) {
      case Awaited::Message:
        what = "a message from " + who + ", " + tag + comm;
        break;
      case Awaited::Receiver:
        what = who + " to take a message of " + std::to_string(w.bytes) + " B, " + tag + comm;
        break;
      case Awaited::Collective:
        what = "the other ranks in " + std::string(op_name(rank.now_at->op)) + comm + ": " + who;
        break;
      case Awaited::Lock:
        what = "the lock on the window of " + who;
        break;
    }
    if (s.find(what) == std::string::npos) s += (s.empty() ? "" : "; ") + what;
  }
  if (!s.empty()) return s;
  return rank.now_at->op == Op::Finalize ? "its sends to be taken" : std::string("the other ranks in ") + op_name(rank.now_at->op);
}

}  // namespace retrompi
