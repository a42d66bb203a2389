#include "mpi/receive.hpp"

#include "mpi/rank.hpp"

namespace retrompi {

Task ReceiveSide::irecv(int32_t src, int32_t tag, int32_t ctx, int64_t bytes, Request& r) {
  r.kind = Request::Recv;
  r.peer = src;
  r.tag = tag;
  r.ctx = ctx;
  r.bytes = bytes;
  r.done = false;
  r.m = nullptr;
  r.line = rank_.now_at ? rank_.now_at->line : 0;
  if (src == PROC_NULL) {
    r.done = true;
    return {};
  }
  const bool exact = src != ANY_SOURCE && tag != ANY_TAG;
  if (Message* m = unexpected_.empty() ? nullptr : unexpected_.find(ctx, src, tag, exact, [&r](const Message& each) { return matches(r, each); })) {
    unexpected_.erase(m);
    m->rreq = &r;
    r.m = m;
    return on_match(*m);
  }
  posted_.push_back(&r);
  return {};
}

void ReceiveSide::arrive(Message& m) {
  m.envelope_known = true;
  if (Request* r = posted_.empty() ? nullptr : posted_.find(m.ctx, m.src, m.tag, true, [&m](const Request& each) { return matches(each, m); })) {
    posted_.erase(r);
    m.rreq = r;
    r->m = &m;
    return;
  }
  unexpected_.push_back(&m);
}

Task ReceiveSide::on_match(Message& m) {
  if (too_long(m)) truncated(m);
  if (m.direct) return copy_directly(m);
  if (m.rendezvous) return clear_to_send(m);
  if (!m.in_pool.empty() || m.unexpected_bytes > 0 || (m.sync && !m.ack_sent)) return take_unexpected(m);
  if (m.arrived == m.bytes && !m.delivered) return finish(m);
  return {};
}

void ReceiveSide::on_request(Message& m, int64_t bytes) {
  m.arrived += bytes;
  if (bytes > 0 && !m.rreq) buffer_unexpected(m, bytes);
}

Task ReceiveSide::clear_to_send(Message& m) {
  if (const int64_t n = m.unexpected_bytes; n > 0) {  // of its request
    m.unexpected_bytes = 0;
    unexpected_bytes_ -= n;
    if (!unpacks(m)) co_await rank_.thread.run(rank_.plain_copy(n));
  }
  co_await rank_.post(*rank_.out[static_cast<size_t>(m.src)],
                      {.m = &m, .from = rank_.id, .to = m.src, .kind = Packet::Cts, .first = true, .last = true});
}

Task ReceiveSide::take_unexpected(Message& m) {
  while (!m.in_pool.empty()) {
    const Message::PoolPacket h = m.in_pool.front();
    m.in_pool.erase(m.in_pool.begin());
    co_await h.chan->fetch(m, h);
    m.arrived += h.bytes;
  }
  if (m.unexpected_bytes > 0 && unpacks(m)) {  // it stays there until it is complete, as every message
    unexpected_bytes_ -= m.unexpected_bytes;
    m.unexpected_bytes = 0;
  } else if (m.unexpected_bytes > 0) {  // one copy more: from the library's buffer to the user's
    const int64_t n = m.unexpected_bytes;
    m.unexpected_bytes = 0;
    unexpected_bytes_ -= n;
    co_await rank_.thread.run(rank_.plain_copy(n));
  }
  if (m.sync && !m.ack_sent) {
    m.ack_sent = true;
    if (m.src == rank_.id) {
      m.acked = true;
      rank_.sender.try_complete(m);
    } else {
      Packet p{.m = &m, .from = rank_.id, .to = m.src, .kind = Packet::SyncAck, .first = true, .last = true};
      co_await rank_.post(*rank_.out[static_cast<size_t>(m.src)], p);
    }
  }
  if (m.arrived == m.bytes && m.in_pool.empty() && !m.delivered) co_await finish(m);
}

bool ReceiveSide::unpacks(const Message& m) const { return m.src != rank_.id && rank_.staging(m.src).unpacks(m.bytes); }

Task ReceiveSide::finish(Message& m) {
  if (unpacks(m)) return unpack(m);
  complete(m);
  return {};
}

Task ReceiveSide::unpack(Message& m) {
  const Staging& own = rank_.staging(m.src);
  co_await rank_.stage(m, own.unpacked(m.bytes), own.byte);
  complete(m);
}

Task ReceiveSide::copy_directly(Message& m) {
  const Rank& sender = rank_.job.rank(m.src);
  const auto n = static_cast<double>(m.bytes);
  // The envelope that announced the message passes through the first-level cache as well.
  const double near = 2 * n + static_cast<double>(rank_.out[static_cast<size_t>(m.src)]->spec.header);
  const CopySide source{.near = near, .set = 2 * n, .held = CopySide::Clean}, target{.near = near, .set = 2 * n};
  MessagePath& path = rank_.world.anatomy.path;
  int32_t transit = -1;
  if (path.on) {
    const Ps now = rank_.world.loop.now;
    transit = path.add(PacketTransit{-1, sender.thread.log(), rank_.thread.log(), m.src, m.dst, Packet::Data, true, true, m.at, m.bytes, m.bytes, now,
                                     now, now, now});
  }
  co_await rank_.thread.run(rank_.host.spec.syscall + rank_.host.time(rank_.spec.direct_call), Stage::Syscall);
  co_await rank_.copy(rank_.host.copy_cost(m.bytes, source, target, rank_.host.kinship(rank_.core, sender.core)), sender.core);
  path.copy_out_ends(transit, rank_.world.loop.now);
  m.arrived = m.bytes;
  Packet p{.m = &m, .from = rank_.id, .to = m.src, .kind = Packet::Done, .first = true, .last = true};
  co_await rank_.post(*rank_.out[static_cast<size_t>(m.src)], p);
  complete(m);
}

void ReceiveSide::complete(Message& m) {
  m.delivered = true;
  m.rreq->done = true;
  m.rreq->src = m.src;
  m.rreq->m = nullptr;
  const uint32_t line = m.rreq->line;
  if (m.rreq->detached) rank_.job.free_request(*m.rreq);
  m.rreq = nullptr;
  ++rank_.count.received;
  rank_.count.bytes_received += m.bytes;
  if (m.number >= 0) rank_.common.timeline->received(m.number, rank_.world.loop.now, m.rendezvous, line);
  ++rank_.common.count.delivered;
  rank_.common.count.delivered_bytes += m.bytes;
  if (m.send_complete) rank_.job.free_message(m);
}

bool ReceiveSide::leave_in_pool(const Packet& p) {
  if (p.kind != Packet::Data) return false;
  if (!p.m->envelope_known) arrive(*p.m);
  return p.m->rreq == nullptr;
}

Task ReceiveSide::on_data(Message& m, const Packet& p) {
  if (!m.envelope_known) arrive(m);
  if (p.held) return {};
  m.arrived += p.bytes;
  if (!m.rreq) {
    buffer_unexpected(m, p.bytes);
    return {};
  }
  if (too_long(m)) truncated(m);
  if (m.sync && !m.ack_sent && !m.rendezvous) return on_match(m);
  if (m.arrived == m.bytes) return finish(m);
  return {};
}

Task ReceiveSide::from_self(Message& m) {
  m.arrived = m.bytes;
  m.unexpected_bytes = m.bytes;
  unexpected_bytes_ += m.bytes;
  arrive(m);
  if (!m.sync) rank_.sender.try_complete(m);
  if (m.rreq) return on_match(m);
  return {};
}

void ReceiveSide::buffer_unexpected(Message& m, int64_t bytes) {
  if (m.unexpected_bytes == 0) m.unexpected_since = rank_.world.loop.now;
  m.unexpected_bytes += bytes;
  unexpected_bytes_ += bytes;
  const int64_t limit = rank_.common.unexpected_limit;
  if (limit > 0 && unexpected_bytes_ > limit)
    throw Abort{"the fixed buffer of rank " + std::to_string(rank_.id) + " for unexpected messages (" + std::to_string(limit) +
                    " B) overflows with a message of " + std::to_string(m.bytes) + " B from rank " + std::to_string(m.src),
                nullptr, &rank_};
}

bool ReceiveSide::too_long(const Message& m) { return m.rreq->bytes >= 0 && m.bytes > m.rreq->bytes; }

void ReceiveSide::truncated(const Message& m) {
  throw Abort{"message of " + std::to_string(m.bytes) + " B from rank " + std::to_string(m.src) + " to rank " + std::to_string(m.dst) + " (tag " +
              std::to_string(m.tag) + ") is longer than the receive buffer of " + std::to_string(m.rreq->bytes) + " B (MPI_ERR_TRUNCATE)"};
}

}  // namespace retrompi
