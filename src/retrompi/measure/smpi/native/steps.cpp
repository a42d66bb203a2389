// A rank executing the steps of a collective's algorithm (the algorithms are in engine/coll/; engine/mpi/collectives.cpp does the same).
#include <algorithm>

#include "device.hpp"

namespace retrompi::online {

using coll::Step;

coll::Args Rank::args(Comm& c) const {
  coll::Args a;
  a.n = c.n;
  a.remote = c.remote;
  a.low = c.low;
  a.me = c.me;
  a.host = c.host;
  a.table = &environment().collectives;
  return a;
}

bool Rank::can_go_on(const Running& c) const {
  if (!c.held) return true;
  const Step& s = c.steps.step();
  switch (s.kind) {
    case Step::Wait: {
      const auto it = std::find_if(c.open.begin(), c.open.end(), [&s](const Running::Open& o) { return o.slot == s.slot; });
      return it == c.open.end() || it->request->done;
    }
    case Step::WaitAll:
      return c.passed >= c.open.size() || c.open[c.passed].request->done;
    default:  // AllTaken
      return taken >= s.slot;
  }
}

bool Rank::can_drive() const {
  return !driving_ && std::any_of(running_.begin(), running_.end(), [this](const auto& c) { return can_go_on(*c); });
}

void Rank::advance(Running& c, bool blocking) {
  while (c.held || c.steps.next()) {
    const Step& s = c.steps.step();
    if (c.held && !can_go_on(c)) return;
    c.held = false;
    switch (s.kind) {
      case Step::Isend:
      case Step::Irecv: {
        auto r = std::make_unique<Request>();
        r->kind = s.kind == Step::Isend ? Request::Send : Request::Recv;
        r->peer = c.comm->world[static_cast<size_t>(s.peer)];
        r->tag = c.tag;
        r->context = c.comm->collective();
        r->bytes = s.bytes;
        Request& made = *r;
        c.open.push_back({s.slot, std::move(r)});
        if (made.kind == Request::Send)
          send(made);
        else
          receive(made);
        break;
      }
      case Step::Wait: {
        const auto it = std::find_if(c.open.begin(), c.open.end(), [&s](const Running::Open& o) { return o.slot == s.slot; });
        if (it == c.open.end()) break;
        if (!it->request->done && !blocking) {
          c.held = true;
          return;
        }
        wait(*it->request);
        c.open.erase(it);
        break;
      }
      case Step::WaitAll:
        for (; c.passed < c.open.size(); ++c.passed) {
          Request& r = *c.open[c.passed].request;
          if (!r.done && !blocking) {
            c.held = true;
            return;
          }
          wait(r);
        }
        c.open.clear();
        c.passed = 0;
        break;
      case Step::Copy:
        run(copy_cost(s.bytes, s.copies));
        break;
      case Step::Combine:
        if (const Ps ps = environment().collectives.work.combine.at(s.bytes); ps > 0) run(host.time(Work{ps}));
        break;
      case Step::Work:
        run(host.time(Work{s.bytes}));
        break;
      case Step::Put:
        put(c.comm->world[static_cast<size_t>(s.peer)], s.bytes);
        break;
      case Step::Taken: {
        Rank& owner = rank(c.comm->world[static_cast<size_t>(s.peer)]);
        ++owner.taken;
        owner.signal();
        break;
      }
      case Step::AllTaken:
        if (taken < s.slot && !blocking) {
          c.held = true;
          return;
        }
        until([this, &s] { return taken >= s.slot; });
        taken -= s.slot;
        break;
    }
  }
  for (; !c.open.empty(); c.open.pop_back()) wait(*c.open.back().request);
  if (c.finish) c.finish();
  if (c.request) {
    c.request->done = true;
    if (c.request->detached) delete c.request;
  }
  c.request = nullptr;
}

void Rank::drive() {
  driving_ = true;
  for (const auto& c : running_)
    if (can_go_on(*c)) advance(*c, false);
  driving_ = false;
  running_.remove_if([](const auto& c) { return c->request == nullptr; });
}

void Rank::follow(coll::Steps steps, Comm& c) {
  Running now;
  now.steps = std::move(steps);
  now.comm = &c;
  now.tag = c.sequence = (c.sequence + 1) & 0x3fffffff;
  advance(now, true);
}

void Rank::begin(std::unique_ptr<Running> c) {
  c->tag = c->comm->sequence = (c->comm->sequence + 1) & 0x3fffffff;
  running_.push_back(std::move(c));
  drive();
}

}  // namespace retrompi::online
