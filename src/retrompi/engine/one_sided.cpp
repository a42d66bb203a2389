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
      co_await barrier(job_.group(a.comm));
  }
}

}  // namespace retrompi
