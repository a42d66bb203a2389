// Collectives: what an action asks for, and a rank that follows the steps of the algorithm (engine/coll/ has the algorithms). A blocking
// call follows them to the end; a non-blocking one as far as it can without waiting, and further whenever the rank is in the library.
#include "mpi/coll.hpp"

#include "mpi/rank.hpp"

namespace retrompi {

const Group& Job::group(int32_t comm, bool low) {
  const size_t i = 2 * static_cast<size_t>(comm) + (low ? 0 : 1);
  if (i >= groups_.size()) groups_.resize(std::max(2 * trace.comms.size(), i + 1));
  auto& g = groups_[i];
  if (g) return *g;
  g = std::make_unique<Group>();
  g->comm = comm;
  g->low = low;
  if (comm == 0) {
    g->n = static_cast<int32_t>(ranks.size());
  } else {
    const Comm& c = trace.comms[static_cast<size_t>(comm)];
    const auto& own = low ? c.group : c.remote;
    g->world = own;
    g->n = static_cast<int32_t>(own.size());
    if (c.kind == Comm::Inter) {
      const auto& other = low ? c.remote : c.group;
      g->world.insert(g->world.end(), other.begin(), other.end());
      g->remote = static_cast<int32_t>(other.size());
    }
  }
  g->host.reserve(static_cast<size_t>(g->n));
  for (int32_t r = 0; r < g->n; ++r) g->host.push_back(static_cast<int32_t>(ranks[static_cast<size_t>(g->of_world(r))]->host_index));
  return *g;
}

Rank::Member& Rank::member(int32_t comm) {
  if (comm == 0) {
    if (!world_.group) world_ = {&job_.group(0), id, 0};
    return world_;
  }
  const auto [it, fresh] = members_.try_emplace(comm);
  if (fresh) {
    const Comm& c = job_.trace.comms[static_cast<size_t>(comm)];
    bool low = true;
    auto at = std::find(c.group.begin(), c.group.end(), id);
    if (at != c.group.end()) {
      it->second.me = static_cast<int32_t>(at - c.group.begin());
    } else {
      low = false;
      at = std::find(c.remote.begin(), c.remote.end(), id);
      if (at == c.remote.end())
        throw ConfigError(job_.trace.where(static_cast<size_t>(id), *now_at) + ": rank " + std::to_string(id) + " is not in communicator " +
                          std::to_string(c.id));
      it->second.me = static_cast<int32_t>(at - c.remote.begin());
    }
    it->second.group = &job_.group(comm, low);
  }
  return it->second;
}

bool Rank::can_go_on(const Running& c) const {
  if (!c.held) return true;
  const coll::Step& s = c.steps.step();
  switch (s.kind) {
    case coll::Step::Wait: {
      const auto it = std::find_if(c.open.begin(), c.open.end(), [&s](const Running::Open& o) { return o.slot == s.slot; });
      return it == c.open.end() || it->r->done;
    }
    case coll::Step::WaitAll:
      return c.passed >= c.open.size() || c.open[c.passed].r->done;
    default:  // AllTaken
      return taken_ >= s.slot;
  }
}

Task Rank::advance(Running& c, bool blocking) {
  using coll::Step;
  const int32_t ctx = collective_context(c.group->comm);
  while (c.held || c.steps.next()) {
    const Step& s = c.steps.step();
    if (c.held && !can_go_on(c)) co_return;
    c.held = false;
    switch (s.kind) {
      case Step::Isend: {
        Request& r = make(Request::Send);
        c.open.push_back({s.slot, &r});
        co_await isend(c.group->of_world(s.peer), c.tag, ctx, s.bytes, Op::Isend, r);
        break;
      }
      case Step::Irecv: {
        Request& r = make(Request::Recv);
        c.open.push_back({s.slot, &r});
        co_await irecv(c.group->of_world(s.peer), c.tag, ctx, s.bytes, r);
        break;
      }
      case Step::Wait: {
        const auto it = std::find_if(c.open.begin(), c.open.end(), [&s](const Running::Open& o) { return o.slot == s.slot; });
        if (it == c.open.end()) break;
        Request& r = *it->r;
        if (!r.done && !blocking) {
          c.held = true;
          co_return;
        }
        co_await wait(r);
        c.open.erase(it);  // nothing is started meanwhile
        drop(r);
        break;
      }
      case Step::WaitAll:
        for (; c.passed < c.open.size(); ++c.passed) {
          Request& r = *c.open[c.passed].r;
          if (!r.done && !blocking) {
            c.held = true;
            co_return;
          }
          co_await wait(r);
          drop(r);
        }
        c.open.clear();
        c.passed = 0;
        break;
      case Step::Copy:
        co_await thread.run(plain_copy(s.bytes, s.copies), Stage::Copy);
        break;
      case Step::Combine:
        if (const Ps ps = job_.collectives.work.combine.at(s.bytes); ps > 0) co_await thread.run(host.scaled(ps), Stage::Library);
        break;
      case Step::Work:
        co_await thread.run(host.scaled(s.bytes), Stage::Library);
        break;
      case Step::Put:
        co_await put(c.group->of_world(s.peer), s.bytes);
        co_await flush();
        break;
      case Step::Taken: {
        Rank& owner = *job_.ranks[static_cast<size_t>(c.group->of_world(s.peer))];
        ++owner.taken_;
        owner.thread.signal();
        break;
      }
      case Step::AllTaken:
        if (taken_ < s.slot && !blocking) {
          c.held = true;
          co_return;
        }
        co_await until([this, &s] { return taken_ >= s.slot; }, spec_.send_wait, true);
        taken_ -= s.slot;
        break;
    }
  }
  // An algorithm that leaves a request open would leave it to the next collective.
  while (!c.open.empty()) {
    co_await wait(*c.open.back().r);
    drop(*c.open.back().r);
    c.open.pop_back();
  }
  if (c.amount > 0) co_await use(c.amount);
  if (c.request) c.request->done = true;
}

Task Rank::drive() {
  driving_ = true;
  for (const auto& c : running_)
    if (can_go_on(*c)) co_await advance(*c, false);
  driving_ = false;
  for (auto it = running_.begin(); it != running_.end();) {
    if (!(*it)->request->done) {
      ++it;
      continue;
    }
    finished_.push_back(std::move(*it));
    it = running_.erase(it);
  }
}

Task Rank::follow(coll::Steps steps, int32_t comm) {
  Member& m = member(comm);
  Running& c = blocking_;
  c.steps = std::move(steps);
  c.group = m.group;
  c.tag = next_tag(m);
  co_await advance(c, true);
  c.steps = {};
}

coll::Args Rank::own_args(int32_t comm) {
  const Member& m = member(comm);
  coll::Args c;
  c.n = m.group->n;
  c.remote = m.group->remote;
  c.low = m.group->low;
  c.me = m.me;
  c.host = m.group->host;
  c.table = &job_.collectives;
  return c;
}

Task Rank::internal(int32_t comm, Op op, int64_t bytes) {
  coll::Args c = own_args(comm);
  c.bytes = c.bytes_in = bytes;
  return follow(c.remote > 0 ? coll::between_groups(op, c) : job_.collectives.make(op, c), comm);
}

Task Rank::barrier(int32_t comm) { return internal(comm, Op::Barrier, 0); }

coll::Args Rank::args(const Action& a) {
  coll::Args c = own_args(a.comm);
  const auto& x = a.get<action::Collective>();
  c.bytes = x.bytes;
  c.bytes_in = x.receive_bytes;
  std::span<const int64_t> counts;
  if (x.counts >= 0) counts = job_.trace.vec[static_cast<size_t>(x.counts)];
  switch (a.op) {
    case Op::Bcast:
    case Op::Reduce:
    case Op::Gather:
    case Op::Scatter:
      c.root = x.root;
      break;
    case Op::Gatherv:
      c.root = x.root;
      c.in = counts;
      break;
    case Op::Scatterv:
      c.root = x.root;
      c.out = counts;
      break;
    case Op::Allgather:
      if (c.remote == 0) c.bytes_in = x.bytes;
      break;
    case Op::ReduceScatterBlock:
      c.bytes_in = x.bytes;
      break;
    case Op::Allgatherv:
    case Op::ReduceScatter:
      c.in = counts;
      break;
    case Op::Alltoallv:
    case Op::Alltoallw:
      c.out = counts.first(counts.size() / 2);
      c.in = counts.subspan(counts.size() / 2);
      break;
    case Op::NeighborAllgather:
    case Op::NeighborAllgatherv:
    case Op::NeighborAlltoall:
    case Op::NeighborAlltoallv:
    case Op::NeighborAlltoallw: {
      const Comm& comm = job_.trace.comms[static_cast<size_t>(a.comm)];
      c.sources = comm.sources[static_cast<size_t>(c.me)];
      c.dests = comm.destinations[static_cast<size_t>(c.me)];
      if (a.op == Op::NeighborAllgatherv) c.in = counts;
      if (a.op == Op::NeighborAlltoallv || a.op == Op::NeighborAlltoallw) {
        c.out = counts.first(c.dests.size());
        c.in = counts.subspan(c.dests.size());
      }
      break;
    }
    default:  // Barrier, Allreduce, Scan, Exscan, Alltoall
      break;
  }
  return c;
}

coll::Steps Rank::steps(const Action& a, coll::Args args) {
  args.nonblocking = a.nonblocking();
  if (args.remote > 0) return coll::between_groups(a.op, args);
  return job_.collectives.call(a.op, args);
}

Task Rank::collective(const Action& a) {
  if (a.nonblocking()) {
    co_await start_collective(a);
    co_return;
  }
  co_await follow(steps(a, args(a)), a.comm);
  if (const double flops = a.get<action::Collective>().flops; flops > 0) co_await use(flops);
}

Task Rank::start_collective(const Action& a) {
  if (finished_.empty()) finished_.push_back(std::make_unique<Running>());
  std::unique_ptr<Running> c = std::move(finished_.back());
  finished_.pop_back();
  coll::Args args = this->args(a);
  // The action, and the counts that it names, may be gone before the collective ends.
  c->counts.assign(args.out.begin(), args.out.end());
  c->counts.insert(c->counts.end(), args.in.begin(), args.in.end());
  const std::span<const int64_t> kept = c->counts;
  args.in = kept.subspan(args.out.size());
  args.out = kept.first(args.out.size());
  Member& m = member(a.comm);
  c->steps = steps(a, args);
  c->group = m.group;
  c->tag = next_tag(m);
  c->amount = a.get<action::Collective>().flops;
  c->held = false;
  Request& r = make(Request::Collective);
  r.ctx = collective_context(a.comm);
  c->request = &r;
  file(r, a.request);
  running_.push_back(std::move(c));
  co_await drive();
}

// How members agree on a new communicator, as MPICH does (coll.hpp has the sources of the steps).
Task Rank::new_communicator(const Action& a) {
  const auto& x = a.get<action::NewComm>();
  const bool belongs = x.made >= 0;
  auto context = [this](int32_t comm) { return follow(coll::agree_on_context(own_args(comm)), comm); };
  switch (x.how) {
    case CommHow::Cart:
    case CommHow::Graph: {
      // Where the grid leaves ranks out, they are split off (code: MPICH2, src/mpi/topo/cart_create.c).
      const bool all = belongs && static_cast<int32_t>(job_.trace.comms[static_cast<size_t>(x.made)].group.size()) == member(a.comm).group->n;
      if (!all) co_await follow(coll::agree_on_colors(own_args(a.comm)), a.comm);
      co_await context(a.comm);
      break;
    }
    case CommHow::Split:
      co_await follow(coll::agree_on_colors(own_args(a.comm)), a.comm);
      co_await context(a.comm);
      break;
    case CommHow::Dup:
    case CommHow::Create:
      co_await context(a.comm);
      break;
    case CommHow::CreateGroup:  // code: MPICH 3, src/mpi/comm/comm_create_group.c: among the group alone
      if (belongs) co_await context(x.made);
      break;
    case CommHow::IntercommCreate:
      co_await follow(coll::swap_groups(own_args(x.made)), x.made);
      co_await context(x.made);
      break;
    case CommHow::IntercommMerge:
      // Who comes first, then a context (code: MPICH 1.1, src/context/comm_merge.c; MPICH2 likewise)
      co_await follow(coll::agree_on_context(own_args(a.comm)), a.comm);
      co_await context(x.made);
      break;
  }
}

}  // namespace retrompi
