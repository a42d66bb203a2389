// Which algorithm a collective uses: the registry of algorithms, and a model's table.
#include <algorithm>
#include <bit>
#include <numeric>

#include "coll/nodes.hpp"

namespace retrompi::coll {

const Algorithm* find(Op op, std::string_view name) {
  for (const Algorithm* a = Algorithm::first; a; a = a->next)
    if (a->op == op && name == a->name) return a;
  return nullptr;
}

std::vector<std::string_view> names(Op op) {
  std::vector<std::string_view> out;
  for (const Algorithm* a = Algorithm::first; a; a = a->next)
    if (a->op == op) out.emplace_back(a->name);
  std::sort(out.begin(), out.end());
  return out;
}

int64_t volume(Op op, const Args& a) {
  auto all = [&a](std::span<const int64_t> each, int64_t one) {
    return each.empty() ? one * a.n : std::accumulate(each.begin(), each.end(), int64_t{0});
  };
  switch (op) {
    case Op::Gather:
    case Op::Gatherv:
      return a.me == a.root ? all(a.in, a.bytes_in) : a.bytes * a.n;
    case Op::Scatter:
    case Op::Scatterv:
      return a.me == a.root ? all(a.out, a.bytes) : a.bytes_in * a.n;
    case Op::Allgather:
      return a.bytes * a.n;
    case Op::Allgatherv:
    case Op::ReduceScatter:
    case Op::ReduceScatterBlock:
      return all(a.in, a.bytes_in);
    case Op::Alltoallv:
    case Op::Alltoallw:
      return all(a.out, a.bytes);
    default:
      return a.bytes;
  }
}

Table::Table() : rows_(OP_COUNT) {
  // code: MPICH 1.0.12 and 1.1, src/coll/intra_fns.c (alltoall, scan and reduce_scatter as there; the vector forms are its own
  // functions, the exclusive scan and what MPI-2 and MPI-3 added follow their nearest relatives)
  for (const auto& [op, name] : {std::pair<Op, const char*>{Op::Barrier, "dissemination"},
                                 {Op::Bcast, "binomial"},
                                 {Op::Reduce, "binomial"},
                                 {Op::Allreduce, "reduce_bcast"},
                                 {Op::Scan, "linear"},
                                 {Op::Exscan, "linear"},
                                 {Op::ReduceScatter, "reduce_scatterv"},
                                 {Op::ReduceScatterBlock, "reduce_scatterv"},
                                 {Op::Gather, "linear"},
                                 {Op::Gatherv, "linear"},
                                 {Op::Scatter, "linear"},
                                 {Op::Scatterv, "linear"},
                                 {Op::Allgather, "ring"},
                                 {Op::Allgatherv, "ring"},
                                 {Op::Alltoall, "posted"},
                                 {Op::Alltoallv, "posted"},
                                 {Op::Alltoallw, "posted"},
                                 {Op::NeighborAllgather, "posted"},
                                 {Op::NeighborAllgatherv, "posted"},
                                 {Op::NeighborAlltoall, "posted"},
                                 {Op::NeighborAlltoallv, "posted"},
                                 {Op::NeighborAlltoallw, "posted"}})
    prefer(op, {Row{.algorithm = find(op, name)}});
}

void Table::prefer(Op op, std::vector<Row> rows) {
  auto& mine = rows_[static_cast<size_t>(op)];
  mine.insert(mine.begin(), rows.begin(), rows.end());
}

std::vector<Table::Used> Table::used() const {
  std::vector<Used> out;
  for (size_t op = 0; op < rows_.size(); ++op)
    for (const Row& r : rows_[op]) {
      if (r.calls == 0) continue;
      const auto same = std::find_if(out.begin(), out.end(), [&r](const Used& u) { return u.algorithm == r.algorithm; });
      if (same == out.end())
        out.push_back({static_cast<Op>(op), r.algorithm, r.calls});
      else
        same->calls += r.calls;
    }
  return out;
}

const Algorithm& Table::choose(Op op, const Args& a, bool nonblocking) const {
  const int64_t bytes = volume(op, a);
  const bool power = std::has_single_bit(static_cast<uint32_t>(a.n));
  for (const Row& r : rows_[static_cast<size_t>(op)]) {
    if (bytes < r.from || bytes >= r.to || a.n < r.ranks_from || a.n > r.ranks_to || !(nonblocking ? r.nonblocking : r.blocking)) continue;
    if (nonblocking && r.algorithm->needs == Algorithm::Blocking) continue;
    if (r.algorithm->needs == Algorithm::Hosts && a.host.empty()) continue;
    if (r.nodes && !shared_hosts(a)) continue;
    if (r.count != Row::Any && power != (r.count == Row::PowerOfTwo)) continue;
    ++r.calls;
    return *r.algorithm;
  }
  throw ConfigError(std::string("the model states no algorithm for ") + op_name(op) + " of " + std::to_string(bytes) + " B on " +
                    std::to_string(a.n) + " ranks");
}

Ps Cost::at(int64_t bytes) const {
  if (points.empty()) return 0;
  if (points.size() == 1 || bytes <= points.front().first) return points.front().second;
  auto above = std::lower_bound(points.begin(), points.end(), bytes, [](const auto& p, int64_t b) { return p.first < b; });
  if (above == points.end()) --above;
  const auto& [x0, y0] = *(above - 1);
  const auto& [x1, y1] = *above;
  const double found =
      static_cast<double>(y0) + static_cast<double>(y1 - y0) * (static_cast<double>(bytes - x0) / static_cast<double>(x1 - x0)) + 0.5;
  return found > 0 ? static_cast<Ps>(found) : 0;
}

const Cost* Work::of(Op op) const {
  const auto at = std::find_if(call.begin(), call.end(), [op](const auto& c) { return c.first == op; });
  return at == call.end() ? nullptr : &at->second;
}

Ps Table::temporary(const Args& a, int32_t buffers, int64_t bytes, int64_t filled) const {
  const int32_t held = std::min(a.buffers + buffers, 2);
  if (bytes <= 0 || held <= 0) return 0;
  const double share = static_cast<double>(filled) / static_cast<double>(held * bytes);
  return static_cast<Ps>(share * static_cast<double>(work.buffers[static_cast<size_t>(held - 1)].at(bytes)));
}

namespace {

/// Where a member's own block does not move, it is not copied either: then only the constant part of the cost counts.
int64_t own_block(Op op, const Args& a, const Cost& cost) {
  auto at_root = [&](int64_t bytes) {
    if (a.me == a.root) return bytes;
    const auto least = std::find_if(cost.points.begin(), cost.points.end(), [](const auto& p) { return p.first > 0; });
    return least == cost.points.end() ? bytes : std::min(bytes, least->first);
  };
  switch (op) {
    case Op::Gather:
      return at_root(a.bytes);
    case Op::Scatter:
      return at_root(a.bytes_in);
    case Op::Alltoall:
      return a.to(a.me);
    default:
      return a.bytes;
  }
}

Steps after_work(Steps rest, Ps ps, int32_t me) {
  if (ps > 0) co_yield work(ps);
  while (rest.next()) {
    const Step& s = rest.step();
    if ((s.kind == Step::Isend || s.kind == Step::Irecv) && s.peer == me) continue;
    if (s.kind == Step::Copy && s.slot == kOwnBlock) continue;
    co_yield s;
  }
}

}  // namespace

Steps Table::call(Op op, const Args& a) const {
  const Cost* cost = work.of(op);
  if (!cost) return make(op, a);
  return after_work(make(op, a), cost->at(own_block(op, a, *cost)), a.me);
}

}  // namespace retrompi::coll
