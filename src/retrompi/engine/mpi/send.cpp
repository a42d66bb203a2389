#include "mpi/send.hpp"

#include "mpi/rank.hpp"

namespace retrompi {

Task SendSide::isend(int32_t dst, int32_t tag, int32_t ctx, int64_t bytes, Op mode, Request& r) {
  r.kind = Request::Send;
  r.peer = dst;
  r.tag = tag;
  r.ctx = ctx;
  r.bytes = bytes;
  r.mode = mode;
  r.done = false;
  r.m = nullptr;
  if (dst == PROC_NULL) {
    r.done = true;
    return {};
  }
  Message& m = rank_.job.new_message();
  m.src = rank_.id;
  m.dst = dst;
  m.tag = tag;
  m.ctx = ctx;
  m.bytes = bytes;
  m.sync = is(mode, Trait::Synchronous);
  if (dst != rank_.id) {
    m.packed = rank_.staging(dst).packs(bytes);
    m.unpacked = rank_.staging(dst).unpacks(bytes);
  }
  m.sreq = &r;
  r.m = &m;
  m.line = r.line = rank_.now_at ? rank_.now_at->line : 0;
  m.at = rank_.world.loop.now;
  // Messages of windows belong to the library, like those of collectives.
  if (rank_.common.timeline)
    m.number = rank_.common.timeline->sent({rank_.id, dst, tag, ctx < 0 ? collective_context(0) : ctx, bytes, m.line, m.at, -1, false, {}});
  ++rank_.common.count.messages;
  rank_.common.count.bytes = checked_sum(rank_.common.count.bytes, bytes);  // no other counter of bytes is larger
  if (ctx % 2 == 0) rank_.common.count.own_bytes += bytes;                  // program_context
  ++rank_.count.sent;
  rank_.count.bytes_sent += bytes;
  ++open_;
  const bool buffered = is(mode, Trait::Buffered);
  if (buffered || dst == rank_.id || rank_.spec.lock.some() || rank_.spec.send_cpu.some() || rank_.staging(dst).packs(bytes))
    return isend_with_work(m, buffered);
  return depart(m);
}

void SendSide::state(State& s) const {
  const auto& [rank_, open_, bulk_] = *this;
  s.put(open_);
  for (const auto& [to, bulk] : bulk_) {
    const auto& [waiting, active] = bulk;
    if (active || !waiting.empty()) s.refuse();
  }
}

Task SendSide::isend_with_work(Message& m, bool buffered) {
  const SiteOf here([&](State& s) {
    put_message(s, &m);
    s.put(buffered);
  });
  co_await Task::At{here};
  co_await rank_.library_call(rank_number::send_cpu);
  if (buffered) {
    // MPI 1.1, 3.4: a buffered send is complete once the user's data is in the attached buffer.
    co_await rank_.thread.run(rank_.plain_copy(m.bytes));
    m.sreq->done = true;
    m.sreq->m = nullptr;
    m.sreq = nullptr;
  }
  if (m.dst == rank_.id) {
    co_await to_self(m);
    co_return;
  }
  if (const Staging& own = rank_.staging(m.dst); own.packs(m.bytes)) co_await rank_.stage(m, own.packed(m.bytes), own.byte);
  co_await depart(m);
}

Task SendSide::depart(Message& m) {
  const auto kind = protocol(m.dst, m.bytes);
  m.rendezvous = kind != ProtocolRow::Eager;
  m.direct = kind == ProtocolRow::Direct;
  if (!m.rendezvous) return push_data(m);
  m.asked = m.direct ? 0 : std::min(m.bytes, rank_.staging(m.dst).ask);
  return rank_.post(*rank_.out[static_cast<size_t>(m.dst)],
                    {.m = &m, .bytes = m.asked, .from = rank_.id, .to = m.dst, .kind = Packet::Rts, .first = true, .last = true});
}

Task SendSide::push_data(Message& m) {
  const auto to = static_cast<size_t>(m.dst);
  Chan& c = m.rendezvous && rank_.bulk[to] ? *rank_.bulk[to] : *rank_.out[to];
  const int64_t packet = c.packet_of(m);
  if (const int64_t left = m.bytes - m.asked; left <= c.first_of(m, packet) && rank_.conversion(m.dst, left) == 0)
    return rank_.post(c, {.m = &m, .bytes = left, .from = rank_.id, .to = m.dst, .kind = Packet::Data, .first = true, .last = true});
  return push_packets(m, c, packet);
}

Task SendSide::push_packets(Message& m, Chan& c, int64_t packet) {
  int64_t left = m.bytes - m.asked;
  bool first = true;
  const SiteOf here([&](State& s) {
    put_message(s, &m);
    s.put(static_cast<const void*>(&c));
    s.put(packet);
    s.put(left);
    s.put(first);
  });
  co_await Task::At{here};
  do {
    const int64_t n = std::min(left, first ? c.first_of(m, packet) : packet);
    co_await rank_.thread.run(rank_.conversion(m.dst, n), Stage::Library);
    left -= n;
    Packet p{.m = &m, .bytes = n, .from = rank_.id, .to = m.dst, .kind = Packet::Data, .first = first, .last = left == 0};
    first = false;
    co_await rank_.post(c, p);
  } while (left > 0);
}

Task SendSide::push_bulk(Message& m) {
  // One message at a time goes through a pair's copy buffer; messages that become ready meanwhile wait for their turn.
  Bulk& b = bulk_[m.dst];
  b.waiting.push_back(&m);
  if (b.active) co_return;
  b.active = true;
  while (!b.waiting.empty()) {
    Message& next = *b.waiting.front();
    b.waiting.pop_front();
    co_await push_data(next);
  }
  b.active = false;
}

Task SendSide::to_self(Message& m) {
  co_await rank_.library_call(rank_number::recv_cpu);
  m.sent_all = true;
  co_await rank_.receiver.from_self(m);
}

void SendSide::sent(Message& m) {
  m.sent_all = true;
  try_complete(m);
}

void SendSide::try_complete(Message& m) {
  if (m.send_complete || !m.sent_all || (m.sync && !m.rendezvous && !m.acked)) return;
  m.send_complete = true;
  --open_;
  if (m.sreq) {
    m.sreq->done = true;
    m.sreq->m = nullptr;
    if (m.sreq->detached) rank_.job.free_request(*m.sreq);
    m.sreq = nullptr;
  }
  if (m.delivered) rank_.job.free_message(m);
}

ProtocolRow::Kind SendSide::protocol(int32_t dst, int64_t bytes) const {
  const bool same = rank_.near(dst);
  for (const ProtocolRow& row : same ? rank_.spec.same : rank_.spec.remote)
    if (bytes >= row.from && bytes < row.to) return row.kind;
  throw ConfigError("the model states no protocol for a message of " + std::to_string(bytes) + " B between " +
                    (same ? "ranks of one host" : "hosts"));
}

Task SendSide::cleared(Message& m) { return rank_.bulk[static_cast<size_t>(m.dst)] ? push_bulk(m) : push_data(m); }

}  // namespace retrompi
