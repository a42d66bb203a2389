// Collectives: what an action asks for, and a rank that follows the steps of the algorithm (engine/coll/ has the algorithms).
#include "rank.hpp"

namespace retrompi {

const Group& Job::group(int32_t comm) {
  const auto i = static_cast<size_t>(comm);
  if (i >= groups_.size()) groups_.resize(std::max(trace.comms.size(), i + 1));
  auto& g = groups_[i];
  if (g) return *g;
  g = std::make_unique<Group>();
  g->comm = comm;
  if (comm != 0) g->world = trace.comms[i].group;
  g->n = static_cast<int32_t>(comm == 0 ? ranks.size() : g->world.size());
  g->host.reserve(static_cast<size_t>(g->n));
  for (int32_t r = 0; r < g->n; ++r) g->host.push_back(static_cast<int32_t>(ranks[static_cast<size_t>(g->of_world(r))]->host_index));
  return *g;
}

Rank::Member& Rank::member(const Group& g) {
  if (g.comm == 0) {
    world_member_.me = id;
    return world_member_;
  }
  const auto [it, fresh] = members_.try_emplace(g.comm);
  if (fresh) {
    const auto at = std::find(g.world.begin(), g.world.end(), id);
    if (at == g.world.end())
      throw ConfigError(job_.trace.where(static_cast<size_t>(id), *now_at) + ": rank " + std::to_string(id) + " is not in communicator " +
                        std::to_string(job_.trace.comms[static_cast<size_t>(g.comm)].id));
    it->second.me = static_cast<int32_t>(at - g.world.begin());
  }
  return it->second;
}

Task Rank::follow(coll::Steps steps, const Group& g, int32_t tag) {
  using coll::Step;
  const int32_t ctx = g.context();
  while (steps.next()) {
    const Step& s = steps.step();
    switch (s.kind) {
      case Step::Isend: {
        Request& r = make(Request::Send);
        open_.push_back({s.slot, &r});
        co_await isend(g.of_world(s.peer), tag, ctx, s.bytes, Op::Isend, r);
        break;
      }
      case Step::Irecv: {
        Request& r = make(Request::Recv);
        open_.push_back({s.slot, &r});
        co_await irecv(g.of_world(s.peer), tag, ctx, s.bytes, r);
        break;
      }
      case Step::Wait: {
        const auto it = std::find_if(open_.begin(), open_.end(), [&s](const Open& o) { return o.slot == s.slot; });
        if (it == open_.end()) break;
        Request& r = *it->r;
        open_.erase(it);
        co_await wait(r);
        drop(r);
        break;
      }
      case Step::WaitAll:
        for (const Open& o : open_) {
          co_await wait(*o.r);
          drop(*o.r);
        }
        open_.clear();
        break;
      case Step::Copy:
        co_await thread.run(plain_copy(s.bytes, s.copies), Stage::Copy);
        break;
      case Step::Combine:
        if (spec_.combine_byte > 0)
          co_await thread.run(host.scaled(static_cast<Ps>(spec_.combine_byte * static_cast<double>(s.bytes))), Stage::Library);
        break;
      case Step::Put:
        co_await put(g.of_world(s.peer), s.bytes);
        co_await flush();
        break;
      case Step::Taken: {
        Rank& owner = *job_.ranks[static_cast<size_t>(g.of_world(s.peer))];
        ++owner.taken_;
        owner.thread.signal();
        break;
      }
      case Step::AllTaken:
        co_await until([this, &s] { return taken_ >= s.slot; }, spec_.send_wait, true);
        taken_ -= s.slot;
        break;
    }
  }
}

Task Rank::barrier(const Group& g) {
  Member& m = member(g);
  coll::Args a;
  a.n = g.n;
  a.me = m.me;
  a.host = g.host;
  return follow(job_.collectives.make(Op::Barrier, a), g, next_tag(m));
}

coll::Args Rank::args(const Action& a, const Group& g) {
  coll::Args c;
  c.n = g.n;
  c.me = member(g).me;
  c.bytes = a.bytes;
  c.bytes_in = a.bytes2;
  c.host = g.host;
  std::span<const int64_t> counts;
  if (a.aux >= 0) counts = job_.trace.vec[static_cast<size_t>(a.aux)];
  const auto n = static_cast<size_t>(g.n);
  switch (a.op) {
    case Op::Bcast:
    case Op::Reduce:
    case Op::Gather:
    case Op::Scatter:
      c.root = a.peer2;
      break;
    case Op::Gatherv:
      c.root = a.peer2;
      c.in = counts;
      break;
    case Op::Scatterv:
      c.root = a.peer2;
      c.out = counts;
      break;
    case Op::Allgather:
    case Op::ReduceScatterBlock:
      c.bytes_in = a.bytes;
      break;
    case Op::Allgatherv:
    case Op::ReduceScatter:
      c.in = counts;
      break;
    case Op::Alltoallv:
    case Op::Alltoallw:
      c.out = counts.first(n);
      c.in = counts.subspan(n);
      break;
    default:  // Barrier, Allreduce, Scan, Exscan, Alltoall
      break;
  }
  return c;
}

Task Rank::collective(const Action& a) {
  const Group& g = job_.group(a.comm);
  Member& m = member(g);
  co_await follow(job_.collectives.make(a.op, args(a, g)), g, next_tag(m));
  if (a.amount > 0) co_await use(a.amount);
}

}  // namespace retrompi
