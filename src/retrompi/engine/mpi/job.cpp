#include "mpi/job.hpp"

#include "mpi/rank.hpp"

namespace retrompi {

Message& Job::new_message() {
  if (free_messages_.empty()) return messages_.emplace_back();
  Message& m = *free_messages_.back();
  free_messages_.pop_back();
  auto in_pool = std::move(m.in_pool);  // keeps its capacity
  in_pool.clear();
  m = Message{};
  m.in_pool = std::move(in_pool);
  return m;
}

Request& Job::new_request(Request::Kind kind) {
  if (free_requests_.empty()) {
    Request& fresh = requests_.emplace_back();
    fresh.kind = kind;
    return fresh;
  }
  Request& r = *free_requests_.back();
  free_requests_.pop_back();
  r = Request{};
  r.kind = kind;
  return r;
}

bool Job::may_begin(int32_t r, uint32_t line) const {
  if (order.over || (order.now.begun && order.now.rank == r && order.now.line == line)) return true;
  const auto next = std::find_if(order.calls.begin(), order.calls.end(), [r](const CallOrder::Call& c) { return c.rank == r && !c.begun; });
  return next != order.calls.end() && next->line > line;
}

bool Job::next_call() {
  if (order.over) return false;
  for (CallOrder::Call& c : order.calls) {
    if (c.begun || !rank(c.rank).at_gate(c.line)) continue;
    c.begun = true;
    order.now = c;
    rank(c.rank).thread.signal();
    return true;
  }
  order.over = true;
  for (const Rank* r : ranks)
    if (r->at_gate()) r->thread.signal();
  return true;
}

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

double Job::kernel_seconds(size_t host, const action::Kernel& x) const {
  const std::string& name = trace.labels[static_cast<size_t>(x.label)];
  for (const KernelRow& k : kernels_)
    if (k.n == x.length && k.name == name && host < k.seconds.size()) return k.seconds[host];
  throw ConfigError("nobody has said what kernel '" + name + "' takes at length " + std::to_string(x.length));
}

}  // namespace retrompi
