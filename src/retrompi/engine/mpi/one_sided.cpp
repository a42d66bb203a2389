#include "mpi/one_sided.hpp"

#include "mpi/rank.hpp"

namespace retrompi {

const RmaSpec& OneSided::rma(int32_t target) const {
  const bool same = rank_.near(target);
  const RmaSpec& s = same ? rank_.job.rma_same : rank_.job.rma_remote;
  if (!s.there) {
    const std::string at =
        rank_.now_at ? rank_.job.trace.where(static_cast<size_t>(rank_.id), *rank_.now_at) + ": " + op_name(rank_.now_at->op) + ": " : "";
    throw ConfigError(at + "this runtime has no one-sided operations between ranks of " + (same ? "one host" : "two hosts"));
  }
  return s;
}

/// Common to put and get: the transfer is counted at both ends, so that what all ranks sent is what all received, and on one host the origin
/// copies the data at once.
Task OneSided::origin(const RmaSpec& s, int32_t other, int64_t bytes, bool put) {
  const int64_t fragments = put && s.fragment > 0 ? (bytes + s.fragment - 1) / s.fragment : 0;
  co_await rank_.thread.run(rank_.host.time(s.cpu + fragments * s.fragment_cpu), Stage::Library);
  ++rank_.common.count.messages;
  rank_.common.count.bytes = checked_sum(rank_.common.count.bytes, bytes);
  ++rank_.common.count.delivered;
  rank_.common.count.delivered_bytes += bytes;
  Rank &from = put ? rank_ : rank_.job.rank(other), &to = put ? rank_.job.rank(other) : rank_;
  ++from.count.sent;
  from.count.bytes_sent += bytes;
  ++to.count.received;
  to.count.bytes_received += bytes;
  if (rank_.common.timeline) rank_.common.timeline->moved(rank_.id, other, bytes);
  if (!rank_.near(other)) co_return;
  co_await rank_.thread.run(s.latency, Stage::Nic);
  co_await rank_.thread.run(rank_.plain_copy(bytes));
}

Task OneSided::put(int32_t target, int64_t bytes) {
  const RmaSpec& s = rma(target);
  co_await origin(s, target, bytes, true);
  if (rank_.near(target)) co_return;
  ++puts_open_;
  co_await rank_.thread.run(s.latency, Stage::Nic);
  const size_t there = rank_.job.rank(target).host_index;
  const Ps left = rank_.world.net->burst(rank_.common, rank_.host_index, there, std::max<int64_t>(bytes, 1), s.put_rate, s.piece,
                                         delivery<&OneSided::put_arrived>(*this));
  co_await rank_.thread.run(left - rank_.world.loop.now, Stage::Nic);
}

void OneSided::put_arrived() {
  RETROMPI_ASSERT(puts_open_ > 0);
  --puts_open_;
  rank_.thread.signal();
}

void OneSided::get_arrived() {
  RETROMPI_ASSERT(get_open_);
  get_open_ = false;
  rank_.thread.signal();
}

void OneSided::requested_get_arrived(uint64_t number) {
  const auto get = gets_open_.find(number);
  RETROMPI_ASSERT(get != gets_open_.end());
  get->second->done = true;
  gets_open_.erase(get);
  rank_.thread.signal();
}

Task OneSided::get(int32_t target, int64_t bytes, Request* later) {
  const RmaSpec& s = rma(target);
  co_await origin(s, target, bytes, false);
  if (rank_.near(target)) {
    if (later) later->done = true;
    co_return;
  }
  co_await rank_.thread.run(s.latency, Stage::Nic);
  // The target's memory answers without its processor; the data come back over the same wires.
  const size_t there = rank_.job.rank(target).host_index;
  const int64_t moved = std::max<int64_t>(bytes, 1);
  if (later) {
    const uint64_t number = ++gets_;
    gets_open_.emplace(number, later);
    rank_.world.net->burst(rank_.common, there, rank_.host_index, moved, s.get_rate, s.piece,
                           delivery<&OneSided::requested_get_arrived>(*this, number));
    co_return;
  }
  get_open_ = true;
  rank_.world.net->burst(rank_.common, there, rank_.host_index, moved, s.get_rate, s.piece, delivery<&OneSided::get_arrived>(*this));
  co_await rank_.until([this] { return !get_open_; }, rank_.spec.recv_wait, false);
}

Task OneSided::flush() {
  co_await rank_.until([this] { return puts_open_ == 0 && gets_open_.empty(); }, rank_.spec.send_wait, true);
}

Task OneSided::execute(const Action& a) {
  if (const auto* x = a.get_if<action::Rma>()) return access(a, *x);
  if (const auto* x = a.get_if<action::WindowSync>()) return synchronise(a, *x);
  return make_or_free(a);
}

Task OneSided::access(const Action& a, const action::Rma& x) {
  Request* later = nullptr;
  if (a.request != 0 && (a.nonblocking() || x.target == PROC_NULL)) {
    later = &rank_.job.new_request(Request::OneSided);
    later->line = a.line;
    rank_.requests.file(*later, a.request);
  }
  if (x.target == PROC_NULL) {
    if (later) later->done = true;
    co_return;
  }
  switch (a.op) {
    case Op::Put:
      co_await put(x.target, x.bytes);
      break;
    case Op::Get:
      co_await get(x.target, x.bytes, later);
      co_return;
    default:  // Accumulate, GetAccumulate, FetchOp, CompareSwap
      // Read, combine, write back: the data cross twice, and fetching operations return the value read.
      co_await get(x.target, x.bytes);
      co_await put(x.target, x.bytes);
  }
  if (later) later->done = true;  // the data have left, and the caller's buffer is free
}

namespace {
constexpr int32_t kPost = 1, kComplete = 2;  // tags in a window's context
constexpr int64_t kWord = 8;                 // a lock is a word in the target's memory
}  // namespace

Task OneSided::send_to_each(std::span<const int64_t> ranks, int32_t ctx, int32_t tag) {
  std::vector<Request*> sent;
  for (const int64_t r : ranks) {
    sent.push_back(&rank_.job.new_request(Request::Send));
    co_await rank_.sender.isend(static_cast<int32_t>(r), tag, ctx, 0, Op::Isend, *sent.back());
  }
  for (Request* r : sent) {
    co_await rank_.wait(*r);
    rank_.job.free_request(*r);
  }
}

Task OneSided::receive_from_each(std::span<const int64_t> ranks, int32_t ctx, int32_t tag) {
  std::vector<Request*> posted;
  for (const int64_t r : ranks) {
    posted.push_back(&rank_.job.new_request(Request::Recv));
    co_await rank_.receiver.irecv(static_cast<int32_t>(r), tag, ctx, 0, *posted.back());
  }
  for (Request* r : posted) {
    co_await rank_.wait(*r);
    rank_.job.free_request(*r);
  }
}

// A word is read and modified atomically; if it does not allow the lock, the origin checks again after a release.
Task OneSided::lock(int32_t window, Rank& target, bool exclusive) {
  while (true) {
    co_await get(target.id, kWord);
    Epoch& e = target.one_sided.windows_[window];
    if (!e.exclusive && (!exclusive || e.shared == 0)) {
      if (exclusive)
        e.exclusive = true;
      else
        ++e.shared;
      break;
    }
    e.wanted.push_back(&rank_);
    lock_of_ = &target;
    co_await rank_.until([this, &e] { return std::find(e.wanted.begin(), e.wanted.end(), &rank_) == e.wanted.end(); }, rank_.spec.recv_wait, true);
    lock_of_ = nullptr;
  }
}

Task OneSided::unlock(int32_t window, Rank& target, bool exclusive) {
  co_await put(target.id, kWord);
  co_await flush();
  Epoch& e = target.one_sided.windows_[window];
  if (exclusive)
    e.exclusive = false;
  else
    --e.shared;
  if (e.exclusive || e.shared > 0) co_return;
  const std::vector<Rank*> wanted = std::move(e.wanted);
  e.wanted.clear();
  for (Rank* r : wanted) r->thread.signal();
}

Task OneSided::make_or_free(const Action& a) {
  if (a.op == Op::WinNew) {
    // Every member learns the addresses of every member's memory (code: MPICH2, src/mpid/ch3/src/ch3u_rma_ops.c: three each), in a context
    // of its own.
    constexpr int64_t kAddresses = 24;
    co_await rank_.collectives.internal(a.comm, Op::Allgather, kAddresses);
    co_await rank_.collectives.follow(coll::agree_on_context(rank_.collectives.own_args(a.comm)), a.comm);
    open_[a.get<action::NewWindow>().window] = a.line;
    co_return;
  }
  co_await flush();
  co_await rank_.collectives.barrier(a.comm);
  windows_.erase(a.get<action::NewWindow>().window);
  open_.erase(a.get<action::NewWindow>().window);
}

std::vector<std::pair<int32_t, int32_t>> OneSided::locks_held() const {
  std::vector<std::pair<int32_t, int32_t>> held;
  for (const auto& [window, epoch] : windows_)
    for (const auto& [target, exclusive] : epoch.locked) held.emplace_back(window, target);
  std::sort(held.begin(), held.end());
  return held;
}

bool OneSided::holds_lock(int32_t window, int32_t target) const {
  const auto it = windows_.find(window);
  return it != windows_.end() && it->second.locked.contains(target);
}

Task OneSided::lock_all(const Action& a, const action::WindowSync& x) {
  const Collectives::Member& m = rank_.collectives.member(a.comm);
  if (a.op == Op::UnlockAll) co_await flush();
  for (int32_t r = 0; r < m.group->n; ++r) {
    Rank& target = rank_.job.rank(m.group->of_world(r));
    if (a.op == Op::LockAll)
      co_await lock(x.window, target, false);
    else
      co_await unlock(x.window, target, false);
  }
}

Task OneSided::synchronise(const Action& a, const action::WindowSync& x) {
  const int32_t win = x.window, ctx = window_context(win);
  Epoch& mine = windows_[win];
  switch (a.op) {
    case Op::Flush:
    case Op::FlushLocal:  // the hardware can only wait until everything has arrived
      co_await flush();
      break;
    case Op::Fence:  // own operations first, then those of all members
      co_await flush();
      co_await rank_.collectives.barrier(a.comm);
      break;
    case Op::Lock:
      mine.locked[x.target] = x.exclusive;
      co_await lock(win, rank_.job.rank(x.target), x.exclusive);
      break;
    case Op::Unlock: {
      co_await flush();
      const auto held = mine.locked.find(x.target);
      if (held == mine.locked.end()) rank_.fail(a, "rank " + std::to_string(rank_.id) + " holds no lock on rank " + std::to_string(x.target));
      const bool exclusive = held->second;
      mine.locked.erase(held);
      co_await unlock(win, rank_.job.rank(x.target), exclusive);
      break;
    }
    case Op::LockAll:
    case Op::UnlockAll:
      co_await lock_all(a, x);
      break;
    // A window's exposure is opened and closed by empty messages (code: MPICH2, src/mpid/ch3/src/ch3u_rma_sync.c).
    case Op::WinPost:
      mine.exposed_to = rank_.job.vector(x.ranks);
      co_await send_to_each(mine.exposed_to, ctx, kPost);
      break;
    case Op::WinStart:
      mine.access_to = rank_.job.vector(x.ranks);
      co_await receive_from_each(mine.access_to, ctx, kPost);
      break;
    case Op::WinComplete:
      co_await flush();
      co_await send_to_each(mine.access_to, ctx, kComplete);
      break;
    default:  // WinWait
      co_await receive_from_each(mine.exposed_to, ctx, kComplete);
  }
}

}  // namespace retrompi
