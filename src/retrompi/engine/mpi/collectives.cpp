#include "mpi/collectives.hpp"

#include "mpi/rank.hpp"

namespace retrompi {

Collectives::Member& Collectives::member(int32_t comm) {
  if (comm == 0) {
    if (!world_.group) world_ = {&rank_.job.group(0), rank_.id, 0};
    return world_;
  }
  const auto [it, fresh] = members_.try_emplace(comm);
  if (fresh) {
    const Comm& c = rank_.job.comm(comm);
    bool low = true;
    auto at = std::find(c.group.begin(), c.group.end(), rank_.id);
    if (at != c.group.end()) {
      it->second.me = static_cast<int32_t>(at - c.group.begin());
    } else {
      low = false;
      at = std::find(c.remote.begin(), c.remote.end(), rank_.id);
      if (at == c.remote.end())
        throw ConfigError(rank_.job.trace.where(static_cast<size_t>(rank_.id), *rank_.now_at) + ": rank " + std::to_string(rank_.id) +
                          " is not in communicator " + std::to_string(c.id));
      it->second.me = static_cast<int32_t>(at - c.remote.begin());
    }
    it->second.group = &rank_.job.group(comm, low);
  }
  return it->second;
}

bool Collectives::can_go_on(const CollectiveRun& c) const {
  if (!c.blocked) return true;
  const coll::Step& s = c.steps.step();
  switch (s.kind) {
    case coll::Step::Wait: {
      const auto it = std::find_if(c.open.begin(), c.open.end(), [&s](const CollectiveRun::Open& o) { return o.slot == s.slot; });
      return it == c.open.end() || it->r->done;
    }
    case coll::Step::WaitAll:
      return c.passed >= c.open.size() || c.open[c.passed].r->done;
    default:  // AllTaken
      return copied_out_ >= s.slot;
  }
}

bool Collectives::can_advance() const {
  return !advancing_ && std::any_of(running_.begin(), running_.end(), [this](const auto& c) { return can_go_on(*c); });
}

void Collectives::state(State& s) const {
  const auto& [rank_, world_, members_, blocking_, running_, finished_, advancing_, taken_, copied_out_] = *this;
  if (!running_.empty() || advancing_ || blocking_.blocked) return s.refuse();
  s.put(world_.tag);  // those of other communicators change with `taken_`, or in a call that does not repeat
  s.put(copied_out_);
  s.put(taken_);
  s.put(blocking_.passed);
  for (size_t i = blocking_.passed; i < blocking_.open.size(); ++i) put_request(s, blocking_.open[i].r);
}

Task Collectives::advance(CollectiveRun& c, bool blocking) {
  using coll::Step;
  const SiteOf here([](State&) {});  // its steps are counted
  co_await Task::At{here};
  const int32_t ctx = collective_context(c.group->comm);
  while (c.blocked || c.steps.next()) {
    ++taken_;
    const Step& s = c.steps.step();
    if (c.blocked && !can_go_on(c)) co_return;
    c.blocked = false;
    switch (s.kind) {
      case Step::Isend: {
        Request& r = rank_.job.new_request(Request::Send);
        c.open.push_back({s.slot, &r});
        co_await rank_.sender.isend(c.group->of_world(s.peer), c.tag, ctx, s.bytes, s.sync ? Op::Issend : Op::Isend, r);
        break;
      }
      case Step::Irecv: {
        Request& r = rank_.job.new_request(Request::Recv);
        c.open.push_back({s.slot, &r});
        co_await rank_.receiver.irecv(c.group->of_world(s.peer), c.tag, ctx, s.bytes, r);
        break;
      }
      case Step::Wait: {
        const auto it = std::find_if(c.open.begin(), c.open.end(), [&s](const CollectiveRun::Open& o) { return o.slot == s.slot; });
        if (it == c.open.end()) break;
        Request& r = *it->r;
        if (!r.done && !blocking) {
          c.blocked = true;
          co_return;
        }
        co_await rank_.wait(r);
        c.open.erase(it);  // nothing is started meanwhile
        rank_.job.free_request(r);
        break;
      }
      case Step::WaitAll:
        for (; c.passed < c.open.size(); ++c.passed) {
          Request& r = *c.open[c.passed].r;
          if (!r.done && !blocking) {
            c.blocked = true;
            co_return;
          }
          co_await rank_.wait(r);
          rank_.job.free_request(r);
        }
        c.open.clear();
        c.passed = 0;
        break;
      case Step::Copy:
        co_await rank_.thread.run(rank_.plain_copy(s.bytes, s.copies));
        break;
      case Step::Combine:
        if (const Ps ps = rank_.job.collectives.work.combine.at(s.bytes); ps > 0)
          co_await rank_.thread.run(rank_.host.time(Work{ps}), Stage::Library);
        break;
      case Step::Work:
        co_await rank_.thread.run(rank_.host.time(Work{s.bytes}), Stage::Library);
        break;
      case Step::Put:
        co_await rank_.one_sided.put(c.group->of_world(s.peer), s.bytes);
        co_await rank_.one_sided.flush();
        break;
      case Step::Taken: {
        Rank& owner = rank_.job.rank(c.group->of_world(s.peer));
        ++owner.collectives.copied_out_;
        owner.thread.signal();
        break;
      }
      case Step::AllTaken:
        if (copied_out_ < s.slot && !blocking) {
          c.blocked = true;
          co_return;
        }
        co_await rank_.until([this, &s] { return copied_out_ >= s.slot; }, rank_.spec.send_wait, true);
        copied_out_ -= s.slot;
        break;
    }
  }
  // An algorithm that leaves a request open would leave it to the next collective.
  while (!c.open.empty()) {
    co_await rank_.wait(*c.open.back().r);
    rank_.job.free_request(*c.open.back().r);
    c.open.pop_back();
  }
  if (c.flops > 0) co_await compute(rank_, c.flops);
  if (c.request) c.request->done = true;
}

Task Collectives::advance_all() {
  advancing_ = true;
  for (const auto& c : running_)
    if (can_go_on(*c)) co_await advance(*c, false);
  advancing_ = false;
  for (auto it = running_.begin(); it != running_.end();) {
    if (!(*it)->request->done) {
      ++it;
      continue;
    }
    finished_.push_back(std::move(*it));
    it = running_.erase(it);
  }
}

Task Collectives::follow(coll::Steps steps, int32_t comm) {
  const SiteOf here([](State&) {});
  co_await Task::At{here};
  Member& m = member(comm);
  CollectiveRun& c = blocking_;
  c.steps = std::move(steps);
  c.group = m.group;
  c.tag = m.next_tag();
  co_await advance(c, true);
  c.steps = {};
}

coll::Args Collectives::own_args(int32_t comm) {
  const Member& m = member(comm);
  coll::Args c;
  c.n = m.group->n;
  c.remote = m.group->remote;
  c.low = m.group->low;
  c.me = m.me;
  c.host = m.group->host;
  c.table = &rank_.job.collectives;
  return c;
}

Task Collectives::internal(int32_t comm, Op op, int64_t bytes) {
  coll::Args c = own_args(comm);
  c.bytes = c.bytes_in = bytes;
  return follow(c.remote > 0 ? coll::between_groups(op, c) : rank_.job.collectives.make(op, c), comm);
}

coll::Args Collectives::args(const Action& a) {
  coll::Args c = own_args(a.comm);
  const auto& x = a.get<action::Collective>();
  c.bytes = x.bytes;
  c.bytes_in = x.receive_bytes;
  std::span<const int64_t> counts;
  if (x.counts >= 0) counts = rank_.job.vector(x.counts);
  const Layout& form = layout_of(a.op);
  if (form.root) c.root = x.root;
  if (a.op == Op::ReduceScatterBlock || (a.op == Op::Allgather && c.remote == 0)) c.bytes_in = x.bytes;
  size_t sent = Layout::several(form.received) ? counts.size() / 2 : counts.size();
  if (is_neighbour(a.op)) {
    const Comm& comm = rank_.job.comm(a.comm);
    c.sources = comm.sources[static_cast<size_t>(c.me)];
    c.dests = comm.destinations[static_cast<size_t>(c.me)];
    sent = c.dests.size();
  }
  if (!Layout::several(form.sent)) sent = 0;
  if (sent > 0) c.out = counts.first(sent);
  if (Layout::several(form.received)) c.in = counts.subspan(sent);
  return c;
}

coll::Steps Collectives::steps(const Action& a, coll::Args args) const {
  args.nonblocking = a.nonblocking();
  if (args.remote > 0) return coll::between_groups(a.op, args);
  return rank_.job.collectives.call(a.op, args);
}

Task Collectives::execute(const Action& a) {
  const SiteOf here([](State&) {});
  co_await Task::At{here};
  if (a.nonblocking()) {
    co_await start(a);
    co_return;
  }
  co_await follow(steps(a, args(a)), a.comm);
  if (const double flops = a.get<action::Collective>().flops; flops > 0) co_await compute(rank_, flops);
}

Task Collectives::start(const Action& a) {
  if (finished_.empty()) finished_.push_back(std::make_unique<CollectiveRun>());
  std::unique_ptr<CollectiveRun> c = std::move(finished_.back());
  finished_.pop_back();
  coll::Args args = this->args(a);
  // The action and its counts may be gone before the collective ends.
  c->counts.assign(args.out.begin(), args.out.end());
  c->counts.insert(c->counts.end(), args.in.begin(), args.in.end());
  const std::span<const int64_t> kept = c->counts;
  args.in = kept.subspan(args.out.size());
  args.out = kept.first(args.out.size());
  Member& m = member(a.comm);
  c->steps = steps(a, args);
  c->group = m.group;
  c->tag = m.next_tag();
  c->flops = a.get<action::Collective>().flops;
  c->blocked = false;
  Request& r = rank_.job.new_request(Request::Collective);
  r.ctx = collective_context(a.comm);
  r.line = a.line;
  c->request = &r;
  rank_.requests.file(r, a.request);
  running_.push_back(std::move(c));
  co_await advance_all();
}

}  // namespace retrompi
