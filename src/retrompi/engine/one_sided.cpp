// One-sided operations: the origin's processor moves the data; the target takes no part. A put is over for the origin when the
// data have left, for everybody when they have arrived (flush, fence).
#include "rank.hpp"

namespace retrompi {

const RmaSpec& Rank::rma(int32_t target) const {
  const bool same = near(target);
  const RmaSpec& s = same ? job_.rma_same : job_.rma_remote;
  if (!s.there) {
    const std::string at = now_at ? job_.trace.where(static_cast<size_t>(id), *now_at) + ": " + op_name(now_at->op) + ": " : "";
    throw ConfigError(at + "this runtime has no one-sided operations between ranks of " + (same ? "one host" : "two hosts"));
  }
  return s;
}

void Rank::on_put_done(void* p, uint64_t get) {
  Rank& r = *static_cast<Rank*>(p);
  if (get != 0)
    r.get_open_ = false;
  else
    --r.puts_open_;
  r.thread.signal();
}

/// What a put and a get have in common: the call is counted, and on one host the origin copies the data at once.
Task Rank::origin(const RmaSpec& s, int32_t other, int64_t bytes, int64_t& calls, int64_t& moved) {
  co_await thread.run(host.scaled(s.cpu), Stage::Library);
  ++world.count.messages;
  world.count.bytes += bytes;
  ++world.count.delivered;
  world.count.delivered_bytes += bytes;
  ++calls;
  moved += bytes;
  if (world.timeline) world.timeline->moved(id, other, bytes);
  if (near(other)) co_await thread.run(s.latency + plain_copy(bytes), Stage::Copy);
}

Task Rank::put(int32_t target, int64_t bytes) {
  const RmaSpec& s = rma(target);
  co_await origin(s, target, bytes, sends, bytes_sent);
  if (near(target)) co_return;
  ++puts_open_;
  co_await thread.run(s.latency, Stage::Nic);
  const size_t there = job_.ranks[static_cast<size_t>(target)]->host_index;
  const Ps left = world.net->burst(host_index, there, std::max<int64_t>(bytes, 1), s.put_rate, s.piece, &Rank::on_put_done, this, 0);
  co_await thread.run(left - world.loop.now, Stage::Nic);
}

Task Rank::get(int32_t target, int64_t bytes) {
  const RmaSpec& s = rma(target);
  co_await origin(s, target, bytes, receives, bytes_received);
  if (near(target)) co_return;
  get_open_ = true;
  co_await thread.run(s.latency, Stage::Nic);
  // The target's memory answers without its processor; the data come back over the same wires.
  const size_t there = job_.ranks[static_cast<size_t>(target)]->host_index;
  world.net->burst(there, host_index, std::max<int64_t>(bytes, 1), s.get_rate, s.piece, &Rank::on_put_done, this, 1);
  co_await until([this] { return !get_open_; }, spec_.recv_wait, false);
}

Task Rank::flush() {
  co_await until([this] { return puts_open_ == 0; }, spec_.send_wait, true);
}

Task Rank::one_sided(const Action& a) {
  switch (a.op) {
    case Op::Put:
      if (a.peer != PROC_NULL) co_await put(a.peer, a.bytes);
      break;
    case Op::Get:
      if (a.peer != PROC_NULL) co_await get(a.peer, a.bytes);
      break;
    case Op::Accumulate:
      // Read, add, write back: the data cross twice.
      if (a.peer != PROC_NULL) {
        co_await get(a.peer, a.bytes);
        co_await put(a.peer, a.bytes);
      }
      break;
    case Op::Flush:
      co_await flush();
      break;
    default:  // Fence: own operations first, then everybody's
      co_await flush();
      coll_tag_ = (coll_tag_ + 1) & 0x3fffffff;
      co_await barrier();
  }
}

Task Rank::put_tree(int32_t root, int64_t bytes) {
  const auto n = static_cast<int32_t>(job_.ranks.size());
  const int32_t me = (id - root + n) % n;
  if (me == 0) co_await thread.run(plain_copy(bytes, job_.bcast.copies_root), Stage::Copy);
  int32_t mask = 1;
  for (; mask < n; mask <<= 1)
    if (me & mask) {
      co_await from_rank((me - mask + root) % n, 0);  // the flag: the data are there
      break;
    }
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (me + mask < n) {
      const int32_t child = (me + mask + root) % n;
      co_await put(child, bytes);
      co_await flush();  // data before flag
      co_await to_rank(child, 0);
    }
  if (me != 0) co_await thread.run(plain_copy(bytes, job_.bcast.copies_leaf), Stage::Copy);
}

Task Rank::by_reference(int32_t root, int64_t bytes) {
  const auto n = static_cast<int32_t>(job_.ranks.size());
  Rank& owner = *job_.ranks[static_cast<size_t>(root)];
  if (id == root) {
    taken_ = 0;
    co_await thread.run(plain_copy(bytes, job_.bcast.copies_root), Stage::Copy);
  }
  co_await binomial(root, 0);  // where the buffer is
  if (id == root) {            // the buffer is not used again before the last receiver has copied
    co_await until([this, n] { return taken_ == n - 1; }, spec_.send_wait, true);
  } else {
    co_await thread.run(plain_copy(bytes, job_.bcast.copies_leaf), Stage::Copy);
    ++owner.taken_;
    owner.thread.signal();
  }
}

}  // namespace retrompi
