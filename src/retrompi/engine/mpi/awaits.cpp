// What a rank that does not go on waits for: for the diagnosis of a deadlock.
#include "mpi/rank.hpp"

namespace retrompi {

std::vector<Awaited> Rank::awaits() const {
  std::vector<Awaited> out;
  if (!now_at || thread.dead()) return out;
  const Action& a = *now_at;
  auto add = [&out](const Request& r) {
    if (r.done) return;
    const bool send = r.kind == Request::Send;
    const int32_t comm = r.ctx < 0 ? 0 : r.ctx / 2;
    const bool own = r.ctx >= 0 && r.ctx % 2 != 0;  // a collective's message
    if (r.kind == Request::Send || r.kind == Request::Recv)
      out.push_back({r.peer, own ? Awaited::Collective : send ? Awaited::Receiver : Awaited::Message, own ? 0 : r.tag, comm, send ? r.bytes : 0});
  };
  auto add_collective = [&](const Running& c) {
    for (size_t i = c.passed; i < c.open.size(); ++i) {
      // Of several, only the one that a step waits for holds the algorithm up.
      if (c.held && c.steps.step().kind == coll::Step::Wait && c.open[i].slot != c.steps.step().slot) continue;
      add(*c.open[i].r);
    }
  };
  auto add_filed = [&](const Request& r) {
    if (r.kind == Request::Collective) {
      for (const auto& c : running_)
        if (c->request == &r) add_collective(*c);
    } else if (!r.persistent || r.active) {
      add(r);
    }
  };
  if (lock_of_) {
    out.push_back({lock_of_->id, Awaited::Lock, 0, a.comm, 0});
    return out;
  }
  switch (a.op) {
    case Op::Waitall:
    case Op::Waitany:
    case Op::Waitsome:
      if (const auto& x = a.get<action::SeveralRequests>(); x.list >= 0) {
        const auto& list = job_.trace.vec[static_cast<size_t>(x.list)];
        const bool chosen = a.op != Op::Waitall && a.told();  // the recorded ones
        const auto from = list.begin() + (chosen ? x.count : 0), to = from + (chosen ? x.completed : x.count);
        for (const Filed& f : store_)
          if (f.r && std::find(from, to, int64_t{f.req}) != to) add_filed(*f.r);
      } else {
        for (const Filed& f : store_)
          if (f.r) add_filed(*f.r);
      }
      break;
    case Op::Probe:
    case Op::Iprobe: {
      const action::Envelope from = asked(a);
      out.push_back({from.source, Awaited::Message, from.tag, a.comm, 0});
      break;
    }
    case Op::Finalize:
      for (const auto& c : running_) add_collective(*c);
      for (const Filed& f : store_)
        if (f.r && f.r->kind == Request::Send) add_filed(*f.r);
      break;
    default:
      if (awaited_ && awaited_->kind == Request::Collective) {
        add_filed(*awaited_);
      } else if (awaited_) {
        // A sendrecv waits for its send first; if the other half is open as well it is the same call that holds it.
        add(*awaited_);
      } else if (!blocking_.open.empty()) {
        add(*blocking_.open.back().r);  // in the middle of a send: there is no room on its way
      } else if (a.op >= Op::Send && a.op <= Op::Irsend) {
        const auto& x = a.get<action::PointToPoint>();
        out.push_back({x.peer, Awaited::Receiver, x.tag, a.comm, x.bytes});
      }
      if (a.op == Op::Sendrecv && awaited_ && awaited_->kind == Request::Send) {
        const auto& x = a.get<action::SendReceive>();
        out.push_back({x.source, Awaited::Message, x.receive_tag, a.comm, 0});
      }
  }
  return out;
}

std::string Rank::waits_for() const {
  if (!now_at) return "nothing";
  std::string s;
  for (const Awaited& w : awaits()) {
    const std::string who = w.rank == ANY_SOURCE ? "any source" : "rank " + std::to_string(w.rank);
    const std::string tag = w.tag == ANY_TAG ? "any tag" : "tag " + std::to_string(w.tag);
    const std::string comm = w.comm == 0 ? "" : ", communicator " + std::to_string(job_.trace.comms[static_cast<size_t>(w.comm)].id);
    std::string what;
    switch (w.what) {
      case Awaited::Message:
        what = "a message from " + who + ", " + tag + comm;
        break;
      case Awaited::Receiver:
        what = who + " to take a message of " + std::to_string(w.bytes) + " B, " + tag + comm;
        break;
      case Awaited::Collective:
        what = "the other ranks in " + std::string(op_name(now_at->op)) + comm + ": " + who;
        break;
      case Awaited::Lock:
        what = "the lock on the window of " + who;
        break;
    }
    if (s.find(what) == std::string::npos) s += (s.empty() ? "" : "; ") + what;
  }
  if (!s.empty()) return s;
  return now_at->op == Op::Finalize ? "its sends to be taken" : std::string("the other ranks in ") + op_name(now_at->op);
}

}  // namespace retrompi
