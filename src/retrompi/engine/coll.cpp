// Collectives as MPICH 1.0/1.1 did them over point-to-point messages (the NT runtimes are built on that library):
// binomial trees for broadcast and reduction, linear gather and scatter, a ring for allgather, a dissemination barrier.
#include <numeric>

#include "rank.hpp"

namespace retrompi {

namespace {
constexpr int32_t kCollectiveContext = 1;
}

Task Rank::to_rank(int32_t dst, int64_t bytes) {
  Request& r = make(Request::Send);
  co_await isend(dst, coll_tag_, kCollectiveContext, bytes, Op::Send, r);
  co_await wait(r);
  drop(r);
}

Task Rank::from_rank(int32_t src, int64_t bytes) {
  Request& r = make(Request::Recv);
  co_await irecv(src, coll_tag_, kCollectiveContext, bytes, r);
  co_await wait(r);
  drop(r);
}

Task Rank::exchange(int32_t dst, int64_t outgoing, int32_t src, int64_t incoming) {
  Request& in = make(Request::Recv);
  Request& o = make(Request::Send);
  co_await irecv(src, coll_tag_, kCollectiveContext, incoming, in);
  co_await isend(dst, coll_tag_, kCollectiveContext, outgoing, Op::Isend, o);
  co_await wait(o);
  co_await wait(in);
  drop(in);
  drop(o);
}

Task Rank::barrier() {
  const auto n = static_cast<int32_t>(job_.ranks.size());
  for (int32_t step = 1; step < n; step <<= 1) co_await exchange((id + step) % n, 0, (id - step + n) % n, 0);
}

Task Rank::bcast(int32_t root, int64_t bytes) {
  switch (job_.ranks.size() > 1 ? job_.bcast.kind : BcastSpec::Binomial) {
    case BcastSpec::PutTree:
      co_await put_tree(root, bytes);
      break;
    case BcastSpec::ByReference:
      co_await by_reference(root, bytes);
      break;
    case BcastSpec::Binomial:
      co_await binomial(root, bytes);
  }
}

Task Rank::binomial(int32_t root, int64_t bytes) {
  const auto n = static_cast<int32_t>(job_.ranks.size());
  const int32_t me = (id - root + n) % n;
  int32_t mask = 1;
  for (; mask < n; mask <<= 1)
    if (me & mask) {
      co_await from_rank((me - mask + root) % n, bytes);
      break;
    }
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (me + mask < n) co_await to_rank((me + mask + root) % n, bytes);
}

Task Rank::reduce(int32_t root, int64_t bytes) {
  const auto n = static_cast<int32_t>(job_.ranks.size());
  const int32_t me = (id - root + n) % n;
  for (int32_t mask = 1; mask < n; mask <<= 1) {
    if (me & mask) {
      co_await to_rank(((me & ~mask) + root) % n, bytes);
      break;
    }
    if ((me | mask) < n) co_await from_rank(((me | mask) + root) % n, bytes);
  }
}

Task Rank::gather(int32_t root, const std::vector<int64_t>& bytes) {
  if (id != root) {
    co_await to_rank(root, bytes[static_cast<size_t>(id)]);
    co_return;
  }
  for (size_t i = 0; i < job_.ranks.size(); ++i)
    if (static_cast<int32_t>(i) != root) co_await from_rank(static_cast<int32_t>(i), bytes[i]);
}

Task Rank::scatter(int32_t root, const std::vector<int64_t>& bytes) {
  if (id != root) {
    co_await from_rank(root, bytes[static_cast<size_t>(id)]);
    co_return;
  }
  for (size_t i = 0; i < job_.ranks.size(); ++i)
    if (static_cast<int32_t>(i) != root) co_await to_rank(static_cast<int32_t>(i), bytes[i]);
}

Task Rank::allgather(const std::vector<int64_t>& bytes) {
  const auto n = static_cast<int32_t>(job_.ranks.size());
  for (int32_t k = 0; k + 1 < n; ++k) {
    const auto mine = static_cast<size_t>((id - k + n) % n);
    const auto theirs = static_cast<size_t>((id - k - 1 + n) % n);
    co_await exchange((id + 1) % n, bytes[mine], (id - 1 + n) % n, bytes[theirs]);
  }
}

Task Rank::alltoall(const std::vector<int64_t>& to_each, const std::vector<int64_t>& from_each) {
  // All receives, then all sends, then one wait, as MPICH's intra_Alltoall does.
  const auto n = static_cast<int32_t>(job_.ranks.size());
  std::vector<Request*> rs;
  for (int32_t k = 0; k < n; ++k) {
    const int32_t peer = (id + k) % n;
    rs.push_back(&make(Request::Recv));
    co_await irecv(peer, coll_tag_, kCollectiveContext, from_each[static_cast<size_t>(peer)], *rs.back());
  }
  for (int32_t k = 0; k < n; ++k) {
    const int32_t peer = (id + k) % n;
    rs.push_back(&make(Request::Send));
    co_await isend(peer, coll_tag_, kCollectiveContext, to_each[static_cast<size_t>(peer)], Op::Isend, *rs.back());
  }
  co_await wait_each(rs);
  for (Request* r : rs) drop(*r);
}

Task Rank::scan(int64_t bytes) {
  // Linear: the exclusive form sends the same messages, it only leaves its own data out.
  const auto n = static_cast<int32_t>(job_.ranks.size());
  if (id > 0) co_await from_rank(id - 1, bytes);
  if (id + 1 < n) co_await to_rank(id + 1, bytes);
}

Task Rank::collective(const Action& a) {
  const size_t n = job_.ranks.size();
  const auto me = static_cast<size_t>(id);
  coll_tag_ = (coll_tag_ + 1) & 0x3fffffff;
  auto counts = [&](size_t from) {
    const auto& v = job_.trace.vec[static_cast<size_t>(a.aux)];
    return std::vector<int64_t>(v.begin() + static_cast<std::ptrdiff_t>(from), v.begin() + static_cast<std::ptrdiff_t>(from + n));
  };
  switch (a.op) {
    case Op::Barrier:
      co_await barrier();
      break;
    case Op::Bcast:
      co_await bcast(a.peer2, a.bytes);
      break;
    case Op::Reduce:
      co_await reduce(a.peer2, a.bytes);
      break;
    case Op::Allreduce:
      co_await reduce(0, a.bytes);
      co_await bcast(0, a.bytes);
      break;
    case Op::Scan:
    case Op::Exscan:
      co_await scan(a.bytes);
      break;
    case Op::ReduceScatter: {
      const std::vector<int64_t> part = counts(0);
      co_await reduce(0, std::accumulate(part.begin(), part.end(), int64_t{0}));
      co_await scatter(0, part);
      break;
    }
    case Op::Gather: {
      // Every rank's own count may differ on paper only: MPI demands equal type signatures.
      std::vector<int64_t> b(n, id == a.peer2 ? a.bytes2 : a.bytes);
      b[me] = a.bytes;
      co_await gather(a.peer2, b);
      break;
    }
    case Op::Gatherv: {
      std::vector<int64_t> b = counts(0);
      b[me] = a.bytes;
      co_await gather(a.peer2, b);
      break;
    }
    case Op::Scatter: {
      const std::vector<int64_t> b(n, id == a.peer2 ? a.bytes : a.bytes2);
      co_await scatter(a.peer2, b);
      break;
    }
    case Op::Scatterv: {
      std::vector<int64_t> b = counts(0);
      if (id != a.peer2) b[me] = a.bytes2;
      co_await scatter(a.peer2, b);
      break;
    }
    case Op::Allgather: {
      const std::vector<int64_t> b(n, a.bytes);
      co_await allgather(b);
      break;
    }
    case Op::Allgatherv: {
      const std::vector<int64_t> b = counts(0);
      co_await allgather(b);
      break;
    }
    case Op::Alltoall: {
      const std::vector<int64_t> s(n, a.bytes), r(n, a.bytes2);
      co_await alltoall(s, r);
      break;
    }
    case Op::Alltoallv: {
      const std::vector<int64_t> s = counts(0), r = counts(n);
      co_await alltoall(s, r);
      break;
    }
    default:
      throw ConfigError(job_.trace.where(me, a) + ": " + op_name(a.op) + " is not simulated");
  }
  if (a.amount > 0) co_await use(a.amount);
}

}  // namespace retrompi
