// Collective operations: the model's algorithm determines the messages, which are simulated one by one. The data bypass them: every
// member leaves a copy of what it contributes and takes its result when its part of the algorithm is done. By then all members whose
// data it needs have called, which is what makes it an algorithm of this operation (tests/test_collective_flow.py).
#include <cstring>
#include <functional>
#include <map>

#include "calls.hpp"

namespace retrompi::online {
namespace {

using Bytes = std::vector<char>;

/// What the members of one call contribute.
struct Given {
  std::map<int, std::vector<Bytes>> by;  // member -> one block, or one for each member
  std::map<int, Bytes> reduced;          // partial results in rank order, by last member included
  int left = 0;                          // members that have taken their result
};

std::map<std::pair<int, int>, std::shared_ptr<Given>>& calls() {
  static std::map<std::pair<int, int>, std::shared_ptr<Given>> all;
  return all;
}

/// The call that a member of a communicator is about to make.
std::shared_ptr<Given> given(Comm& c) {
  auto& slot = calls()[{c.id, c.sequence}];
  if (!slot) slot = std::make_shared<Given>();
  return slot;
}

const Bytes& block(const Given& g, int from, int nth = 0) {
  static const Bytes nothing;
  const auto at = g.by.find(from);
  return at == g.by.end() || static_cast<size_t>(nth) >= at->second.size() ? nothing : at->second[static_cast<size_t>(nth)];
}

void* moved(const void* base, int64_t items, const Type& type) {
  return static_cast<char*>(const_cast<void*>(base == MPI_BOTTOM ? nullptr : base)) + items * type.extent;
}

/// A vector in its memory layout: the operand of a reduction.
struct Vector {
  Bytes bytes;
  MPI_Aint low = 0;
  [[nodiscard]] void* data() { return bytes.data() - low; }
};
Vector memory(const void* at, int count, const Type& type) {
  Vector v;
  v.low = type.low;
  v.bytes.resize(count > 0 ? static_cast<size_t>(type.extent * count) : 0);
  if (!v.bytes.empty()) std::memcpy(v.bytes.data(), static_cast<const char*>(at) + v.low, v.bytes.size());
  return v;
}

/// Members first..last combined in rank order.
Bytes combined(Given& g, int first, int last, int count, const Type& type, MPI_Op op) {
  Bytes sum = block(g, last);
  for (int m = last - 1; m >= first; --m) {
    Bytes mine = block(g, m);
    if (mine.size() != sum.size())
      abort_run(Outcome::Aborted,
                "rank " + std::to_string(m) + " of a reduction gives " + std::to_string(mine.size()) + " B, another one " +
                    std::to_string(sum.size()) + " B",
                1);
    if (!sum.empty()) combine(op, mine.data() - type.low, sum.data() - type.low, count, type.handle);
  }
  return sum;
}
const Bytes& all_combined(Given& g, int n, int count, const Type& type, MPI_Op op) {
  auto [at, fresh] = g.reduced.try_emplace(n - 1);
  if (fresh) at->second = combined(g, 0, n - 1, count, type, op);
  return at->second;
}
void lay(const Bytes& data, void* at, const Type& type, size_t from = 0) {
  if (data.size() > from) std::memcpy(static_cast<char*>(at) + type.low, data.data() + from, data.size() - from);
}

/// One member's call: the arguments of its algorithm, what it contributes, and what it does with the result.
struct Operation {
  Op op = Op::Barrier;
  coll::Args args;
  std::vector<int64_t> out, in;
  std::function<void(Given&)> take;
};

void leave(const std::pair<int, int>& key, Given& g, int members) {
  if (++g.left == members) calls().erase(key);
}

int carry_out(Rank& r, Comm& c, Operation& o, std::vector<Bytes> mine, MPI_Request* request) {
  const std::pair<int, int> key{c.id, c.sequence};
  const auto g = given(c);
  g->by[c.me] = std::move(mine);
  auto finish = [g, key, take = o.take, n = c.n] {
    if (take) take(*g);
    leave(key, *g, n);
  };
  if (!request) {
    o.args.out = o.out;
    o.args.in = o.in;
    r.follow(environment().collectives.call(o.op, o.args), c);
    finish();
    return MPI_SUCCESS;
  }
  auto now = std::make_unique<Running>();
  now->out = std::move(o.out);
  now->in = std::move(o.in);
  o.args.out = now->out;
  o.args.in = now->in;
  o.args.nonblocking = true;
  now->steps = environment().collectives.call(o.op, o.args);
  now->comm = &c;
  now->finish = finish;
  auto* mine_request = new Request;
  mine_request->kind = Request::Collective;
  mine_request->context = c.collective();
  give_handle(*mine_request, request);
  now->request = mine_request;
  r.begin(std::move(now));
  return MPI_SUCCESS;
}

Operation about(Rank& r, Comm& c, Op op, int root = 0) {
  Operation o;
  o.op = op;
  o.args = r.args(c);
  o.args.root = root;
  return o;
}

Bytes packed(const void* at, int64_t count, const Type& type) {
  return Buffer{at == MPI_BOTTOM ? nullptr : const_cast<void*>(at), static_cast<int>(count), type}.packed();
}
void unpack(const Bytes& data, void* at, int64_t count, const Type& type) {
  Buffer{at == MPI_BOTTOM ? nullptr : at, static_cast<int>(count), type}.unpack(data);
}

std::vector<int64_t> sizes(const int* counts, const Type& type, int n) {
  std::vector<int64_t> all;
  for (int i = 0; i < n; ++i) all.push_back(type.size * counts[i]);
  return all;
}

int barrier(Rank& r, Comm& c, MPI_Request* request) {
  Operation o = about(r, c, Op::Barrier);
  return carry_out(r, c, o, {}, request);
}

int bcast(Rank& r, Comm& c, void* at, int count, Type type, int root, MPI_Request* request) {
  Operation o = about(r, c, Op::Bcast, root);
  o.args.bytes = type.size * count;
  std::vector<Bytes> mine;
  if (c.me == root)
    mine.push_back(packed(at, count, type));
  else
    o.take = [=, &c](Given& g) { unpack(block(g, root), at, count, type); };
  return carry_out(r, c, o, std::move(mine), request);
}

int gather(Rank& r, Comm& c, bool vector, const void* out, int out_count, MPI_Datatype named_out_type, void* in, int in_count, const int* counts,
           const int* places, MPI_Datatype named_in_type, int root, MPI_Request* request) {
  const bool at_root = c.me == root;
  // An argument that is not significant need not be a datatype.
  const Type out_type = at_root && out == MPI_IN_PLACE ? MPI_DATATYPE_NULL : named_out_type, in_type = at_root ? named_in_type : MPI_DATATYPE_NULL;
  Operation o = about(r, c, vector ? Op::Gatherv : Op::Gather, root);
  const bool in_place = at_root && out == MPI_IN_PLACE;
  if (at_root) o.args.bytes_in = vector ? 0 : in_type.size * in_count;
  if (at_root && vector) o.in = sizes(counts, in_type, c.n);
  o.args.bytes = !in_place ? out_type.size * out_count : vector ? o.in[static_cast<size_t>(root)] : o.args.bytes_in;
  std::vector<Bytes> mine;
  if (!in_place) mine.push_back(packed(out, out_count, out_type));
  if (at_root) {
    // The arrays of displacements may be gone when a non-blocking call completes.
    std::vector<int> n(static_cast<size_t>(c.n), in_count), at(n);
    for (int i = 0; i < c.n; ++i) {
      if (vector) n[static_cast<size_t>(i)] = counts[i];
      at[static_cast<size_t>(i)] = vector ? places[i] : i * in_count;
    }
    o.take = [=, &c](Given& g) {
      for (int i = 0; i < c.n; ++i)
        if (!(in_place && i == c.me)) unpack(block(g, i), moved(in, at[static_cast<size_t>(i)], in_type), n[static_cast<size_t>(i)], in_type);
    };
  }
  return carry_out(r, c, o, std::move(mine), request);
}

int scatter(Rank& r, Comm& c, bool vector, const void* out, int out_count, const int* counts, const int* places, MPI_Datatype named_out_type,
            void* in, int in_count, MPI_Datatype named_in_type, int root, MPI_Request* request) {
  const bool at_root = c.me == root, in_place = at_root && in == MPI_IN_PLACE;
  const Type out_type = at_root ? named_out_type : MPI_DATATYPE_NULL, in_type = in_place ? MPI_DATATYPE_NULL : named_in_type;
  Operation o = about(r, c, vector ? Op::Scatterv : Op::Scatter, root);
  std::vector<Bytes> mine;
  if (at_root) {
    if (vector)
      o.out = sizes(counts, out_type, c.n);
    else
      o.args.bytes = out_type.size * out_count;
    for (int i = 0; i < c.n; ++i)
      mine.push_back(packed(moved(out, vector ? places[i] : int64_t{i} * out_count, out_type), vector ? counts[i] : out_count, out_type));
  }
  o.args.bytes_in = !in_place ? in_type.size * in_count : vector ? o.out[static_cast<size_t>(root)] : o.args.bytes;
  if (!in_place) o.take = [=, &c](Given& g) { unpack(block(g, root, c.me), in, in_count, in_type); };
  return carry_out(r, c, o, std::move(mine), request);
}

int allgather(Rank& r, Comm& c, const void* out, int out_count, MPI_Datatype named_out_type, void* in, int in_count, const int* counts,
              const int* places, Type in_type, MPI_Request* request) {
  const bool vector = counts != nullptr, in_place = out == MPI_IN_PLACE;
  const Type out_type = in_place ? MPI_DATATYPE_NULL : named_out_type;
  Operation o = about(r, c, vector ? Op::Allgatherv : Op::Allgather);
  std::vector<int> n(static_cast<size_t>(c.n), in_count), at(n);
  for (int i = 0; i < c.n; ++i) {
    if (vector) n[static_cast<size_t>(i)] = counts[i];
    at[static_cast<size_t>(i)] = vector ? places[i] : i * in_count;
  }
  const auto me = static_cast<size_t>(c.me);
  const Bytes own = in_place ? packed(moved(in, at[me], in_type), n[me], in_type) : packed(out, out_count, out_type);
  o.args.bytes = static_cast<int64_t>(own.size());
  if (vector)
    o.in = sizes(counts, in_type, c.n);
  else
    o.args.bytes_in = o.args.bytes;
  o.take = [=, &c](Given& g) {
    for (int i = 0; i < c.n; ++i)
      if (!(in_place && i == c.me)) unpack(block(g, i), moved(in, at[static_cast<size_t>(i)], in_type), n[static_cast<size_t>(i)], in_type);
  };
  return carry_out(r, c, o, {own}, request);
}

/// The three alltoalls: each block has a place, a count and a type.
struct Blocks {
  std::vector<char*> at;
  std::vector<int> count;
  std::vector<Type> type;
  [[nodiscard]] std::vector<Bytes> data() const {
    std::vector<Bytes> all;
    for (size_t i = 0; i < at.size(); ++i) all.push_back(packed(at[i], count[i], type[i]));
    return all;
  }
  [[nodiscard]] std::vector<int64_t> bytes() const {
    std::vector<int64_t> all;
    for (size_t i = 0; i < at.size(); ++i) all.push_back(type[i].size * count[i]);
    return all;
  }
};
Blocks equal(const void* base, int count, const Type& type, int n) {
  Blocks b;
  for (int i = 0; i < n; ++i) {
    b.at.push_back(static_cast<char*>(moved(base, int64_t{i} * count, type)));
    b.count.push_back(count);
    b.type.push_back(type);
  }
  return b;
}
Blocks various(const void* base, const int* counts, const int* places, const Type& type, int n) {
  Blocks b;
  for (int i = 0; i < n; ++i) {
    b.at.push_back(static_cast<char*>(moved(base, places[i], type)));
    b.count.push_back(counts[i]);
    b.type.push_back(type);
  }
  return b;
}
Blocks different(const void* base, const int* counts, const int* places, const MPI_Datatype* types, int n) {
  Blocks b;
  for (int i = 0; i < n; ++i) {
    b.at.push_back(static_cast<char*>(const_cast<void*>(base)) + places[i]);
    b.count.push_back(counts[i]);
    b.type.push_back(types[i]);
  }
  return b;
}

int alltoall(Rank& r, Comm& c, Op op, const Blocks& out, const Blocks& in, MPI_Request* request) {
  Operation o = about(r, c, op);
  std::vector<Bytes> mine = out.data();
  if (op == Op::Alltoall) {
    o.args.bytes = out.bytes().front();
    o.args.bytes_in = in.bytes().front();
  } else {
    o.out = out.bytes();
    o.in = in.bytes();
  }
  o.take = [in, &c](Given& g) {
    for (int i = 0; i < c.n; ++i) {
      const auto n = static_cast<size_t>(i);
      unpack(block(g, i, c.me), in.at[n], in.count[n], in.type[n]);
    }
  };
  return carry_out(r, c, o, std::move(mine), request);
}

int reduce(Rank& r, Comm& c, Op op, const void* out, void* in, int count, Type type, Kept<MPI_Op> how, int root, MPI_Request* request) {
  Operation o = about(r, c, op, root);
  o.args.bytes = type.size * count;
  Vector v = memory(out == MPI_IN_PLACE ? in : out, count, type);
  if (op == Op::Allreduce || (op == Op::Reduce && c.me == root))
    o.take = [=, &c](Given& g) { lay(all_combined(g, c.n, count, type, how), in, type); };
  if (op == Op::Scan) o.take = [=, &c](Given& g) { lay(combined(g, 0, c.me, count, type, how), in, type); };
  if (op == Op::Exscan && c.me > 0) o.take = [=, &c](Given& g) { lay(combined(g, 0, c.me - 1, count, type, how), in, type); };
  return carry_out(r, c, o, {std::move(v.bytes)}, request);
}

int reduce_scatter(Rank& r, Comm& c, Op op, const void* out, void* in, const std::vector<int>& counts, Type type, Kept<MPI_Op> how,
                   MPI_Request* request) {
  Operation o = about(r, c, op);
  int all = 0, before = 0;
  for (int i = 0; i < c.n; ++i) {
    if (i < c.me) before += counts[static_cast<size_t>(i)];
    all += counts[static_cast<size_t>(i)];
  }
  if (op == Op::ReduceScatter)
    o.in = sizes(counts.data(), type, c.n);
  else
    o.args.bytes = o.args.bytes_in = type.size * counts[0];
  Vector v = memory(out == MPI_IN_PLACE ? in : out, all, type);
  const MPI_Aint extent = type.extent;
  const int mine = counts[static_cast<size_t>(c.me)];
  // A member that receives nothing may finish before the others have called.
  if (mine > 0)
    o.take = [=, &c](Given& g) {
      Bytes sum = all_combined(g, c.n, all, type, how);
      sum.resize(static_cast<size_t>((before + mine) * extent));
      lay(sum, in, type, static_cast<size_t>(before * extent));
    };
  return carry_out(r, c, o, {std::move(v.bytes)}, request);
}

}  // namespace

// Each operation twice: the blocking call, and the one that returns a request. Intercommunicators are left to SimGrid.
#define LIST(...) __VA_ARGS__
#define BOTH(name, begins, params, arguments, ours)                                      \
  DEFINE(name, (LIST params MPI_Comm comm)) {                                            \
    const Call r("MPI_" #name);                                                          \
    if (!r || between_groups(comm)) return NATIVE(name)(LIST arguments comm);            \
    MPI_Request* const request = nullptr;                                                \
    Comm& c = r->comm(comm);                                                             \
    return ours;                                                                         \
  }                                                                                      \
  DEFINE(begins, (LIST params MPI_Comm comm, MPI_Request * request)) {                   \
    const Call r("MPI_" #begins);                                                        \
    if (!r || between_groups(comm)) return NATIVE(begins)(LIST arguments comm, request); \
    Comm& c = r->comm(comm);                                                             \
    return ours;                                                                         \
  }

namespace {
bool between_groups(MPI_Comm comm) {
  int inter = 0;
  NATIVE(Comm_test_inter)(comm, &inter);
  return inter != 0;
}
}  // namespace

DEFINE(Barrier, (MPI_Comm comm)) {
  const Call r("MPI_Barrier");
  return r && !between_groups(comm) ? barrier(*r, r->comm(comm), nullptr) : NATIVE(Barrier)(comm);
}
DEFINE(Ibarrier, (MPI_Comm comm, MPI_Request* request)) {
  const Call r("MPI_Ibarrier");
  return r && !between_groups(comm) ? barrier(*r, r->comm(comm), request) : NATIVE(Ibarrier)(comm, request);
}

BOTH(Bcast, Ibcast, (void* at, int count, MPI_Datatype type, int root, ), (at, count, type, root, ), bcast(*r, c, at, count, type, root, request))
BOTH(Gather, Igather, (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, int root, ),
     (out, out_count, out_type, in, in_count, in_type, root, ),
     gather(*r, c, false, out, out_count, out_type, in, in_count, nullptr, nullptr, in_type, root, request))
BOTH(Gatherv, Igatherv,
     (const void* out, int out_count, MPI_Datatype out_type, void* in, const int* counts, const int* places, MPI_Datatype in_type, int root, ),
     (out, out_count, out_type, in, counts, places, in_type, root, ),
     gather(*r, c, true, out, out_count, out_type, in, 0, counts, places, in_type, root, request))
BOTH(Scatter, Iscatter, (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, int root, ),
     (out, out_count, out_type, in, in_count, in_type, root, ),
     scatter(*r, c, false, out, out_count, nullptr, nullptr, out_type, in, in_count, in_type, root, request))
BOTH(Scatterv, Iscatterv,
     (const void* out, const int* counts, const int* places, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, int root, ),
     (out, counts, places, out_type, in, in_count, in_type, root, ),
     scatter(*r, c, true, out, 0, counts, places, out_type, in, in_count, in_type, root, request))
BOTH(Allgather, Iallgather, (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, ),
     (out, out_count, out_type, in, in_count, in_type, ),
     allgather(*r, c, out, out_count, out_type, in, in_count, nullptr, nullptr, in_type, request))
BOTH(Allgatherv, Iallgatherv,
     (const void* out, int out_count, MPI_Datatype out_type, void* in, const int* counts, const int* places, MPI_Datatype in_type, ),
     (out, out_count, out_type, in, counts, places, in_type, ), allgather(*r, c, out, out_count, out_type, in, 0, counts, places, in_type, request))
BOTH(Alltoall, Ialltoall, (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type, ),
     (out, out_count, out_type, in, in_count, in_type, ),
     alltoall(*r, c, Op::Alltoall, out == MPI_IN_PLACE ? equal(in, in_count, in_type, c.n) : equal(out, out_count, out_type, c.n),
              equal(in, in_count, in_type, c.n), request))
BOTH(Alltoallv, Ialltoallv,
     (const void* out, const int* out_counts, const int* out_places, MPI_Datatype out_type, void* in, const int* in_counts, const int* in_places,
      MPI_Datatype in_type, ),
     (out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, ),
     alltoall(*r, c, Op::Alltoallv,
              out == MPI_IN_PLACE ? various(in, in_counts, in_places, in_type, c.n) : various(out, out_counts, out_places, out_type, c.n),
              various(in, in_counts, in_places, in_type, c.n), request))
BOTH(Alltoallw, Ialltoallw,
     (const void* out, const int* out_counts, const int* out_places, const MPI_Datatype* out_types, void* in, const int* in_counts,
      const int* in_places, const MPI_Datatype* in_types, ),
     (out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, ),
     alltoall(*r, c, Op::Alltoallw,
              out == MPI_IN_PLACE ? different(in, in_counts, in_places, in_types, c.n) : different(out, out_counts, out_places, out_types, c.n),
              different(in, in_counts, in_places, in_types, c.n), request))
BOTH(Reduce, Ireduce, (const void* out, void* in, int count, MPI_Datatype type, MPI_Op how, int root, ), (out, in, count, type, how, root, ),
     reduce(*r, c, Op::Reduce, out, in, count, type, how, root, request))
BOTH(Allreduce, Iallreduce, (const void* out, void* in, int count, MPI_Datatype type, MPI_Op how, ), (out, in, count, type, how, ),
     reduce(*r, c, Op::Allreduce, out, in, count, type, how, 0, request))
BOTH(Scan, Iscan, (const void* out, void* in, int count, MPI_Datatype type, MPI_Op how, ), (out, in, count, type, how, ),
     reduce(*r, c, Op::Scan, out, in, count, type, how, 0, request))
BOTH(Exscan, Iexscan, (const void* out, void* in, int count, MPI_Datatype type, MPI_Op how, ), (out, in, count, type, how, ),
     reduce(*r, c, Op::Exscan, out, in, count, type, how, 0, request))
BOTH(Reduce_scatter, Ireduce_scatter, (const void* out, void* in, const int* counts, MPI_Datatype type, MPI_Op how, ), (out, in, counts, type, how, ),
     reduce_scatter(*r, c, Op::ReduceScatter, out, in, {counts, counts + c.n}, type, how, request))
BOTH(Reduce_scatter_block, Ireduce_scatter_block, (const void* out, void* in, int count, MPI_Datatype type, MPI_Op how, ),
     (out, in, count, type, how, ),
     reduce_scatter(*r, c, Op::ReduceScatterBlock, out, in, std::vector<int>(static_cast<size_t>(c.n), count), type, how, request))

}  // namespace retrompi::online
