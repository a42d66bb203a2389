// One-sided operations: the origin's processor moves the data; the target takes no part. A put is over for the origin when the
// data have left, for everybody when they have arrived (flush, fence).
#include "mpi/rank.hpp"

namespace retrompi {

void Rank::bad(const Action& a, const std::string& why) const {
  throw ConfigError(job_.trace.where(static_cast<size_t>(id), a) + ": " + op_name(a.op) + ": " + why);
}

const RmaSpec& Rank::rma(int32_t target) const {
  const bool same = near(target);
  const RmaSpec& s = same ? job_.rma_same : job_.rma_remote;
  if (!s.there) {
    const std::string at = now_at ? job_.trace.where(static_cast<size_t>(id), *now_at) + ": " + op_name(now_at->op) + ": " : "";
    throw ConfigError(at + "this runtime has no one-sided operations between ranks of " + (same ? "one host" : "two hosts"));
  }
  return s;
}

void Rank::on_put_done() {
  assert(puts_open_ > 0);
  --puts_open_;
  thread.signal();
}

void Rank::on_get_done() {
  get_open_ = false;
  thread.signal();
}

/// What a put and a get have in common: the call is counted, and on one host the origin copies the data at once.
Task Rank::origin(const RmaSpec& s, int32_t other, int64_t bytes, int64_t& calls, int64_t& moved) {
  co_await thread.run(host.scaled(s.cpu), Stage::Library);
  ++common.count.messages;
  common.count.bytes += bytes;
  ++common.count.delivered;
  common.count.delivered_bytes += bytes;
  ++calls;
  moved += bytes;
  if (common.timeline) common.timeline->moved(id, other, bytes);
  if (near(other)) co_await thread.run(s.latency + plain_copy(bytes), Stage::Copy);
}

Task Rank::put(int32_t target, int64_t bytes) {
  const RmaSpec& s = rma(target);
  co_await origin(s, target, bytes, sends, bytes_sent);
  if (near(target)) co_return;
  ++puts_open_;
  co_await thread.run(s.latency, Stage::Nic);
  const size_t there = job_.ranks[static_cast<size_t>(target)]->host_index;
  const Ps left = world.net->burst(common, host_index, there, std::max<int64_t>(bytes, 1), s.put_rate, s.piece, delivery<&Rank::on_put_done>(*this));
  co_await thread.run(left - world.loop.now, Stage::Nic);
}

void Rank::on_requested_get_done(size_t slot) {
  open_gets_[slot]->done = true;
  open_gets_[slot] = nullptr;
  --gets_open_;
  thread.signal();
}

/// `later`: the request that is complete when the data have come; without one the caller waits for them.
Task Rank::get(int32_t target, int64_t bytes, Request* later) {
  const RmaSpec& s = rma(target);
  co_await origin(s, target, bytes, receives, bytes_received);
  if (near(target)) {
    if (later) later->done = true;
    co_return;
  }
  co_await thread.run(s.latency, Stage::Nic);
  // The target's memory answers without its processor; the data come back over the same wires.
  const size_t there = job_.ranks[static_cast<size_t>(target)]->host_index;
  const int64_t moved = std::max<int64_t>(bytes, 1);
  if (later) {
    ++gets_open_;
    const auto slot = static_cast<size_t>(std::find(open_gets_.begin(), open_gets_.end(), nullptr) - open_gets_.begin());
    if (slot == open_gets_.size()) open_gets_.push_back(nullptr);
    open_gets_[slot] = later;
    world.net->burst(common, there, host_index, moved, s.get_rate, s.piece, delivery<&Rank::on_requested_get_done>(*this, slot));
    co_return;
  }
  get_open_ = true;
  world.net->burst(common, there, host_index, moved, s.get_rate, s.piece, delivery<&Rank::on_get_done>(*this));
  co_await until([this] { return !get_open_; }, spec_.recv_wait, false);
}

Task Rank::flush() {
  co_await until([this] { return puts_open_ == 0 && gets_open_ == 0; }, spec_.send_wait, true);
}

Task Rank::one_sided(const Action& a) {
  const auto* x = a.get_if<action::Rma>();
  if (x == nullptr) {
    co_await window(a);
    co_return;
  }
  if (x->target == PROC_NULL) {
    if (a.request == 0) co_return;
    Request& none = make(Request::OneSided);
    none.done = true;
    file(none, a.request);
    co_return;
  }
  Request* later = nullptr;
  if (a.nonblocking()) {
    later = &make(Request::OneSided);
    file(*later, a.request);
  }
  switch (a.op) {
    case Op::Put:
      co_await put(x->target, x->bytes);
      break;
    case Op::Get:
      co_await get(x->target, x->bytes, later);
      later = nullptr;
      break;
    default:  // Accumulate, GetAccumulate, FetchOp, CompareSwap
      // Read, combine, write back: the data cross twice, and what was read is what the fetching ones return.
      co_await get(x->target, x->bytes);
      co_await put(x->target, x->bytes);
  }
  if (later) later->done = true;  // the data have left, and the caller's buffer is free
}

namespace {
constexpr int32_t kPost = 1, kComplete = 2;  // tags in a window's context
constexpr int64_t kWord = 8;                 // a lock is a word in the target's memory
}  // namespace

Task Rank::to_each(std::span<const int64_t> ranks, int32_t ctx, int32_t tag) {
  std::vector<Request*> sent;
  for (const int64_t r : ranks) {
    sent.push_back(&make(Request::Send));
    co_await isend(static_cast<int32_t>(r), tag, ctx, 0, Op::Isend, *sent.back());
  }
  for (Request* r : sent) {
    co_await wait(*r);
    drop(*r);
  }
}

Task Rank::from_each(std::span<const int64_t> ranks, int32_t ctx, int32_t tag) {
  std::vector<Request*> posted;
  for (const int64_t r : ranks) {
    posted.push_back(&make(Request::Recv));
    co_await irecv(static_cast<int32_t>(r), tag, ctx, 0, *posted.back());
  }
  for (Request* r : posted) {
    co_await wait(*r);
    drop(*r);
  }
}

// A word is read and changed in one; if it does not allow the lock, the origin looks again when somebody has let go.
Task Rank::lock(int32_t window, Rank& target, bool exclusive) {
  while (true) {
    co_await get(target.id, kWord);
    Epoch& e = target.windows_[window];
    if (!e.exclusive && (!exclusive || e.shared == 0)) {
      if (exclusive)
        e.exclusive = true;
      else
        ++e.shared;
      break;
    }
    e.wanted.push_back(this);
    lock_of_ = &target;
    co_await until([this, &e] { return std::find(e.wanted.begin(), e.wanted.end(), this) == e.wanted.end(); }, spec_.recv_wait, true);
    lock_of_ = nullptr;
  }
}

Task Rank::unlock(int32_t window, Rank& target, bool exclusive) {
  co_await put(target.id, kWord);
  co_await flush();
  Epoch& e = target.windows_[window];
  if (exclusive)
    e.exclusive = false;
  else
    --e.shared;
  if (e.exclusive || e.shared > 0) co_return;
  const std::vector<Rank*> wanted = std::move(e.wanted);
  e.wanted.clear();
  for (Rank* r : wanted) r->thread.signal();
}

Task Rank::make_or_free_window(const Action& a) {
  if (a.op == Op::WinNew) {
    // Everybody learns where everybody's memory lies (code: MPICH2, src/mpid/ch3/src/ch3u_rma_ops.c: three addresses each), in a context
    // of its own.
    constexpr int64_t kAddresses = 24;
    co_await internal(a.comm, Op::Allgather, kAddresses);
    co_await follow(coll::agree_on_context(own_args(a.comm)), a.comm);
    co_return;
  }
  co_await flush();
  co_await barrier(a.comm);
  windows_.erase(a.get<action::NewWindow>().window);
}

Task Rank::window(const Action& a) {
  if (a.kind() == ActionKind::NewWindow) {
    co_await make_or_free_window(a);
    co_return;
  }
  const auto& x = a.get<action::WindowSync>();
  const int32_t win = x.window, ctx = window_context(win);
  auto rank = [this](int32_t r) -> Rank& { return *job_.ranks[static_cast<size_t>(r)]; };
  auto group = [this, &x] {
    const auto& list = job_.trace.vec[static_cast<size_t>(x.ranks)];
    return std::vector<int64_t>(list.begin(), list.end());
  };
  Epoch& mine = windows_[win];
  switch (a.op) {
    case Op::Flush:
    case Op::FlushLocal:  // all that the hardware has is to wait until everything has arrived
      co_await flush();
      break;
    case Op::Fence:  // own operations first, then everybody's
      co_await flush();
      co_await barrier(a.comm);
      break;
    case Op::Lock:
      mine.locked[x.target] = x.exclusive;
      co_await lock(win, rank(x.target), x.exclusive);
      break;
    case Op::Unlock: {
      co_await flush();
      const auto held = mine.locked.find(x.target);
      if (held == mine.locked.end()) bad(a, "rank " + std::to_string(id) + " holds no lock on rank " + std::to_string(x.target));
      const bool exclusive = held->second;
      mine.locked.erase(held);
      co_await unlock(win, rank(x.target), exclusive);
      break;
    }
    case Op::LockAll:
    case Op::UnlockAll: {
      const Member& m = member(a.comm);
      if (a.op == Op::UnlockAll) co_await flush();
      for (int32_t r = 0; r < m.group->n; ++r) {
        Rank& target = rank(m.group->of_world(r));
        if (a.op == Op::LockAll)
          co_await lock(win, target, false);
        else
          co_await unlock(win, target, false);
      }
      break;
    }
    // A window is exposed and done with by empty messages (code: MPICH2, src/mpid/ch3/src/ch3u_rma_sync.c).
    case Op::WinPost:
      mine.exposed_to = group();
      co_await to_each(mine.exposed_to, ctx, kPost);
      break;
    case Op::WinStart:
      mine.access_to = group();
      co_await from_each(mine.access_to, ctx, kPost);
      break;
    case Op::WinComplete:
      co_await flush();
      co_await to_each(mine.access_to, ctx, kComplete);
      break;
    default:  // WinWait
      co_await from_each(mine.exposed_to, ctx, kComplete);
  }
}

}  // namespace retrompi
