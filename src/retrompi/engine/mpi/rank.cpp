#include "mpi/rank.hpp"

namespace retrompi {

Message& Job::new_message() {
  if (free_messages_.empty()) return messages_.emplace_back();
  Message& m = *free_messages_.back();
  free_messages_.pop_back();
  auto held = std::move(m.held);  // keeps its capacity
  held.clear();
  m = Message{};
  m.held = std::move(held);
  return m;
}

Request& Job::new_request() {
  if (free_requests_.empty()) return requests_.emplace_back();
  Request& r = *free_requests_.back();
  free_requests_.pop_back();
  r = Request{};
  return r;
}

Rank::Rank(Job& job, World& w, Host& h, size_t host_index, int32_t n, const RankSpec& spec)
    : Proc(w, job, h, "rank " + std::to_string(n) + job.suffix, host_index), id(n), job_(job), spec_(spec) {
  idle = spec.recv_wait;
}

Request& Rank::make(Request::Kind k) {
  Request& r = job_.new_request();
  r.kind = k;
  return r;
}

void Rank::drop(Request& r) { job_.free_request(r); }

bool Rank::near(int32_t other) const { return job_.ranks[static_cast<size_t>(other)]->host_index == host_index; }

ProtocolRow::Kind Rank::protocol(int32_t dst, int64_t bytes) const {
  const bool same = near(dst);
  for (const ProtocolRow& row : same ? spec_.same : spec_.remote)
    if (bytes >= row.from && bytes < row.to) return row.kind;
  throw ConfigError("the model states no protocol for a message of " + std::to_string(bytes) + " B between " +
                    (same ? "ranks of one host" : "hosts"));
}

Ps Rank::conversion(int32_t peer, int64_t bytes) const {
  if (spec_.convert_buffer <= 0 || job_.ranks[static_cast<size_t>(peer)]->host.spec.byte_order == host.spec.byte_order) return 0;
  const int64_t buffers = (bytes + spec_.convert_buffer - 1) / spec_.convert_buffer;
  return host.scaled(static_cast<Ps>(spec_.convert_byte * static_cast<double>(bytes)) + buffers * spec_.convert_call);
}

bool Rank::fits(const Request& r, const Message& m) {
  return r.ctx == m.ctx && (r.peer == m.src || r.peer == ANY_SOURCE) && (r.tag == m.tag || r.tag == ANY_TAG);
}

// ---------------------------------------------------------------- sending

Task Rank::isend(int32_t dst, int32_t tag, int32_t ctx, int64_t bytes, Op mode, Request& r) {
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
  Message& m = job_.new_message();
  m.src = id;
  m.dst = dst;
  m.tag = tag;
  m.ctx = ctx;
  m.bytes = bytes;
  m.sync = mode == Op::Ssend || mode == Op::Issend || mode == Op::SsendInit;
  m.sreq = &r;
  r.m = &m;
  m.line = r.line = now_at ? now_at->line : 0;
  m.at = world.loop.now;
  // What windows send is the library's own, as what collectives send.
  if (common.timeline) m.number = common.timeline->sent({id, dst, tag, ctx < 0 ? collective_context(0) : ctx, bytes, m.line, m.at, -1, false, {}});
  ++common.count.messages;
  common.count.bytes += bytes;
  if (ctx % 2 == 0) common.count.own_bytes += bytes;  // program_context
  ++sends;
  bytes_sent += bytes;
  ++open_sends_;
  const bool buffered = mode == Op::Bsend || mode == Op::Ibsend || mode == Op::BsendInit;
  if (buffered || dst == id || spec_.lock > 0 || spec_.send_cpu > 0) return isend_working(m, buffered);
  return depart(m);
}

Task Rank::isend_working(Message& m, bool buffered) {
  co_await library_call(spec_.send_cpu);
  if (buffered) {
    // MPI 1.1, 3.4: a buffered send is complete once the user's data is in the attached buffer.
    co_await thread.run(plain_copy(m.bytes), Stage::Copy);
    m.sreq->done = true;
    m.sreq->m = nullptr;
    m.sreq = nullptr;
  }
  if (m.dst == id)
    co_await to_self(m);
  else
    co_await depart(m);
}

Task Rank::depart(Message& m) {
  const auto kind = protocol(m.dst, m.bytes);
  m.rendezvous = kind != ProtocolRow::Eager;
  m.direct = kind == ProtocolRow::Direct;
  if (!m.rendezvous) return push_data(m);
  return post(*out[static_cast<size_t>(m.dst)], {.m = &m, .from = id, .to = m.dst, .kind = Packet::Rts, .first = true, .last = true});
}

Task Rank::push_data(Message& m) {
  const auto to = static_cast<size_t>(m.dst);
  Chan& c = m.rendezvous && bulk[to] ? *bulk[to] : *out[to];
  const int64_t packet = c.packet_of(m);
  if (m.bytes <= packet && conversion(m.dst, m.bytes) == 0)
    return post(c, {.m = &m, .bytes = m.bytes, .from = id, .to = m.dst, .kind = Packet::Data, .first = true, .last = true});
  return push_packets(m, c, packet);
}

Task Rank::push_packets(Message& m, Chan& c, int64_t packet) {
  int64_t left = m.bytes;
  bool first = true;
  do {
    const int64_t n = std::min(left, packet);
    co_await thread.run(conversion(m.dst, n), Stage::Library);
    left -= n;
    Packet p{.m = &m, .bytes = n, .from = id, .to = m.dst, .kind = Packet::Data, .first = first, .last = left == 0};
    first = false;
    co_await post(c, p);
  } while (left > 0);
}

Task Rank::push_bulk(Message& m) {
  // One message at a time goes through a pair's copy buffer; those that may go meanwhile wait for their turn.
  Bulk& b = bulk_queue_[m.dst];
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

Task Rank::copy_directly(Message& m) {
  const Rank& sender = *job_.ranks[static_cast<size_t>(m.src)];
  const auto n = static_cast<double>(m.bytes);
  // The envelope that told of the message passes through the first level as well.
  const double near = 2 * n + static_cast<double>(out[static_cast<size_t>(m.src)]->spec.header);
  const CopySide source{.near = near, .set = 2 * n, .held = CopySide::Clean}, target{.near = near, .set = 2 * n};
  MessagePath& path = world.anatomy.path;
  int32_t transit = -1;
  if (path.on) {
    const Ps now = world.loop.now;
    transit = path.add(
        PacketTransit{-1, sender.thread.log(), thread.log(), m.src, m.dst, Packet::Data, true, true, m.at, m.bytes, m.bytes, now, now, now, now});
  }
  co_await thread.run(host.spec.syscall + host.scaled(spec_.direct_call), Stage::Syscall);
  co_await copy(host.copy_cost(m.bytes, source, target, host.kinship(core, sender.core)), sender.core);
  path.copy_out_ends(transit, world.loop.now);
  m.arrived = m.bytes;
  Packet p{.m = &m, .from = id, .to = m.src, .kind = Packet::Done, .first = true, .last = true};
  co_await post(*out[static_cast<size_t>(m.src)], p);
  finish_receive(m);
}

Task Rank::to_self(Message& m) {
  co_await library_call(spec_.recv_cpu);
  m.arrived = m.bytes;
  m.stashed = m.bytes;
  m.sent_all = true;
  unexpected_bytes_ += m.bytes;
  meet(m);
  if (!m.sync) settle_send(m);
  if (m.rreq) co_await matched(m);
}

void Rank::sent(Message& m) {
  m.sent_all = true;
  settle_send(m);
}

void Rank::settle_send(Message& m) {
  if (m.settled || !m.sent_all || (m.sync && !m.rendezvous && !m.acked)) return;
  m.settled = true;
  --open_sends_;
  if (m.sreq) {
    m.sreq->done = true;
    m.sreq->m = nullptr;
    if (m.sreq->detached) drop(*m.sreq);
    m.sreq = nullptr;
  }
  if (m.delivered) recycle(m);
}

void Rank::recycle(Message& m) { job_.free_message(m); }

// ---------------------------------------------------------------- receiving

Task Rank::irecv(int32_t src, int32_t tag, int32_t ctx, int64_t bytes, Request& r) {
  r.kind = Request::Recv;
  r.peer = src;
  r.tag = tag;
  r.ctx = ctx;
  r.bytes = bytes;
  r.done = false;
  r.m = nullptr;
  r.line = now_at ? now_at->line : 0;
  if (src == PROC_NULL) {
    r.done = true;
    return {};
  }
  const bool exact = src != ANY_SOURCE && tag != ANY_TAG;
  if (Message* m = unexpected_.empty() ? nullptr : unexpected_.find(ctx, src, tag, exact, [&r](const Message& each) { return fits(r, each); })) {
    unexpected_.erase(m);
    m->rreq = &r;
    r.m = m;
    return matched(*m);
  }
  posted_.push_back(&r);
  return {};
}

void Rank::meet(Message& m) {
  m.seen = true;
  if (Request* r = posted_.empty() ? nullptr : posted_.find(m.ctx, m.src, m.tag, true, [&m](const Request& each) { return fits(each, m); })) {
    posted_.erase(r);
    m.rreq = r;
    r->m = &m;
    return;
  }
  unexpected_.push_back(&m);
}

Task Rank::matched(Message& m) {
  if (m.rreq->bytes >= 0 && m.bytes > m.rreq->bytes)
    throw Abort{"message of " + std::to_string(m.bytes) + " B from rank " + std::to_string(m.src) + " to rank " + std::to_string(m.dst) + " (tag " +
                std::to_string(m.tag) + ") is longer than the receive buffer of " + std::to_string(m.rreq->bytes) + " B (MPI_ERR_TRUNCATE)"};
  if (m.direct) return copy_directly(m);
  if (m.rendezvous)
    return post(*out[static_cast<size_t>(m.src)], {.m = &m, .from = id, .to = m.src, .kind = Packet::Cts, .first = true, .last = true});
  if (!m.held.empty() || m.stashed > 0 || (m.sync && !m.ack_sent)) return take_in(m);
  if (m.arrived == m.bytes && !m.delivered) finish_receive(m);
  return {};
}

Task Rank::take_in(Message& m) {
  while (!m.held.empty()) {
    const Message::Held h = m.held.front();
    m.held.erase(m.held.begin());
    co_await h.chan->fetch(m, h);
    m.arrived += h.bytes;
  }
  if (m.stashed > 0) {  // one copy more: from the library's buffer to the user's
    const int64_t n = m.stashed;
    m.stashed = 0;
    unexpected_bytes_ -= n;
    co_await thread.run(plain_copy(n), Stage::Copy);
  }
  if (m.sync && !m.ack_sent) {
    m.ack_sent = true;
    if (m.src == id) {
      m.acked = true;
      settle_send(m);
    } else {
      Packet p{.m = &m, .from = id, .to = m.src, .kind = Packet::SyncAck, .first = true, .last = true};
      co_await post(*out[static_cast<size_t>(m.src)], p);
    }
  }
  if (m.arrived == m.bytes && m.held.empty() && !m.delivered) finish_receive(m);
}

void Rank::finish_receive(Message& m) {
  m.delivered = true;
  m.rreq->done = true;
  m.rreq->src = m.src;
  m.rreq->m = nullptr;
  if (m.rreq->detached) drop(*m.rreq);
  m.rreq = nullptr;
  ++receives;
  bytes_received += m.bytes;
  if (m.number >= 0) common.timeline->received(m.number, world.loop.now, m.rendezvous);
  ++common.count.delivered;
  common.count.delivered_bytes += m.bytes;
  if (m.settled) recycle(m);
}

bool Rank::leave_in_pool(const Packet& p) {
  if (p.kind != Packet::Data) return false;
  if (!p.m->seen) meet(*p.m);
  return p.m->rreq == nullptr;
}

Task Rank::handle(Packet p) {
  // Matching and completion are paid when the message shows up, not when its receive is posted: in a PingPong the posting
  // overlaps the wait.
  const bool called = p.first && (p.kind == Packet::Rts || (p.kind == Packet::Data && !p.m->rendezvous)) && (spec_.lock > 0 || spec_.recv_cpu > 0);
  if (called || (p.kind == Packet::Data && !p.held && conversion(p.m->src, p.bytes) > 0)) return handle_working(p, called);
  return handle_now(p);
}

Task Rank::handle_working(Packet p, bool called) {
  if (called) co_await library_call(spec_.recv_cpu);
  if (p.kind == Packet::Data && !p.held) {
    if (!p.m->seen) meet(*p.m);
    co_await thread.run(conversion(p.m->src, p.bytes), Stage::Library);
  }
  co_await handle_now(p);
}

Task Rank::handle_now(const Packet& p) {
  Message& m = *p.m;
  switch (p.kind) {
    case Packet::Rts:
      meet(m);
      if (m.rreq) return matched(m);
      break;
    case Packet::Cts:
      return bulk[static_cast<size_t>(m.dst)] ? push_bulk(m) : push_data(m);
    case Packet::Done:
      sent(m);
      break;
    case Packet::SyncAck:
      m.acked = true;
      settle_send(m);
      break;
    case Packet::Data:
      if (!m.seen) meet(m);
      if (p.held) break;
      m.arrived += p.bytes;
      if (!m.rreq) {
        if (m.stashed == 0) m.kept_at = world.loop.now;
        m.stashed += p.bytes;
        unexpected_bytes_ += p.bytes;
        if (common.unexpected_limit > 0 && unexpected_bytes_ > common.unexpected_limit)
          throw Abort{"the fixed buffer of rank " + std::to_string(id) + " for unexpected messages (" + std::to_string(common.unexpected_limit) +
                          " B) overflows with a message of " + std::to_string(m.bytes) + " B from rank " + std::to_string(m.src),
                      nullptr, this};
      } else if (m.sync && !m.ack_sent && !m.rendezvous) {
        return matched(m);
      } else if (m.rreq->bytes >= 0 && m.bytes > m.rreq->bytes) {
        return matched(m);  // reports the truncation
      } else if (m.arrived == m.bytes) {
        finish_receive(m);
      }
      break;
  }
  return {};
}

Task Rank::library_call(Ps cost) {
  if (spec_.lock <= 0 && cost <= 0) return {};
  return locked_call(cost);
}

Task Rank::locked_call(Ps cost) {
  co_await thread.run(host.scaled(spec_.lock), Stage::Lock);
  co_await thread.run(host.scaled(cost), Stage::Library);
}

Task Rank::progress() {
  // A call that only looks sees shared memory each time, the network each so many times.
  const int every = spec_.recv_wait.look_every;
  const bool look = every <= 1 || ++tests_ % every == 0;
  auto network = [](const Token& t) { return t.chan->medium == Medium::Stream; };
  if (look && every > 1 && std::none_of(inbox.begin(), inbox.end(), network))
    co_await thread.run(host.scaled(spec_.recv_wait.look_cost), Stage::Syscall);
  while (true) {
    const auto it = look ? inbox.begin() : std::find_if_not(inbox.begin(), inbox.end(), network);
    if (it == inbox.end()) {
      if (!can_drive()) co_return;
      co_await drive();
      continue;
    }
    std::rotate(inbox.begin(), it, it + 1);
    co_await absorb();
  }
}

Task Rank::wait(Request& r) {
  if (r.done) return {};
  return wait_open(r);
}

Task Rank::wait_open(Request& r) {
  awaited_ = &r;
  const WaitPolicy& policy = r.kind == Request::Send ? spec_.send_wait : spec_.recv_wait;
  if (!running_.empty()) co_await until([&r] { return r.done; }, policy, true);
  while (!r.done) {
    if (inbox.empty())
      co_await thread.wait(policy);
    else
      co_await absorb();
  }
  awaited_ = nullptr;
}

}  // namespace retrompi
