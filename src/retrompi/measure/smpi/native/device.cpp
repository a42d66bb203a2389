#include "device.hpp"

#include <algorithm>

namespace retrompi::online {

namespace {
std::vector<Rank*>& by_actor() {
  static std::vector<Rank*> all;
  return all;
}
std::vector<Rank*>& by_rank() {
  static std::vector<Rank*> all(environment().ranks.size());
  return all;
}
}  // namespace

Rank* self() {
  const auto n = static_cast<size_t>(actor());
  return n < by_actor().size() ? by_actor()[n] : nullptr;
}

Rank& enrol(int world_rank) {
  const auto n = static_cast<size_t>(actor());
  if (static_cast<size_t>(world_rank) >= by_rank().size())
    refuse("the export places " + std::to_string(by_rank().size()) + " ranks, the program has one of number " + std::to_string(world_rank));
  if (n >= by_actor().size()) by_actor().resize(n + 1);
  auto* r = new Rank(world_rank);
  by_actor()[n] = by_rank()[static_cast<size_t>(world_rank)] = r;
  return *r;
}

Rank& rank(int world_rank) {
  Rank* r = by_rank()[static_cast<size_t>(world_rank)];
  if (!r) refuse("rank " + std::to_string(world_rank) + " has not called MPI_Init");
  return *r;
}

const std::vector<Rank*>& everybody() { return by_rank(); }

Counters& counters() {
  static Counters all;
  return all;
}

// ---------------------------------------------------------------- time

Rank::Rank(int n) : id(n), host(environment().host_of(n)) {
  const Environment& e = environment();
  const int where = e.ranks[static_cast<size_t>(n)].host;
  const auto ranks = std::count_if(e.ranks.begin(), e.ranks.end(), [where](const Environment::Place& p) { return p.host == where; });
  if (ranks <= host.cores) return;
  static std::map<int, std::unique_ptr<Processors>> crowded;
  auto& processors = crowded[where];
  if (!processors) processors = std::make_unique<Processors>(host);
  thread_ = std::make_unique<Thread>(*processors, sleeper_);
}

void Rank::start() {
  if (thread_) thread_->start();
}

void Rank::end() {
  finished = true;
  if (thread_) thread_->end();
  simulated().go_on();
}

void Rank::run(Ps ps) {
  if (ps <= 0) return;
  if (thread_) return thread_->run(ps);
  bool over = false;
  simulated().at(simulated().now() + ps, [this, &over] {
    over = true;
    sleeper_.wake();
  });
  // A computing rank is not woken by arrivals.
  while (!over) sleeper_.stop();
}

void Rank::use(double flops) {
  double left = flops / host.flops;
  while (left > 0) {  // in slices, as in the engine
    const double part = std::min(left, 1e5);
    left -= part;
    run(to_ps(part));
  }
}

void Rank::nap(double seconds) {
  const Ps tick = host.next_tick(simulated().now() + to_ps(seconds));
  if (thread_) return thread_->sleep_until(tick);
  run(tick - simulated().now());
}

void Rank::doze() {
  dozing_ = true;
  if (thread_) return thread_->doze();
  while (dozing_) sleeper_.stop();
}

void Rank::signal() {
  if (!dozing_) return;
  dozing_ = false;
  if (thread_) return thread_->wake();
  simulated().at(simulated().now(), [this] { sleeper_.wake(); });
}

// ---------------------------------------------------------------- sending

Request::~Request() {
  if (message) message->origin = nullptr;
}

void Rank::send(Request& r) {
  r.done = r.cancelled = false;
  if (r.peer == MPI_PROC_NULL) {
    r.done = true;
    return;
  }
  auto* m = new Message;
  m->from = id;
  m->to = r.peer;
  m->tag = r.tag;
  m->context = r.context;
  m->bytes = r.bytes;
  m->sync = r.mode == Request::Synchronous;
  m->sender = m->origin = &r;
  if (r.message) r.message->origin = nullptr;
  r.message = m;
  if (r.comm) m->data = r.buffer.packed();
  ++counters().messages;
  counters().bytes += m->bytes;
  ++open_sends;
  if (r.mode == Request::Buffered) {  // complete once the data are in the attached buffer
    run(copy_cost(m->bytes));
    r.done = true;
    m->sender = nullptr;
  }
  if (m->to != id) return depart(*m);
  m->arrived = m->stashed = m->sent = true;
  unexpected_bytes_ += m->bytes;
  meet(*m);
  if (!m->sync) settle(*m);
  if (m->receiver) matched(*m);
}

void Rank::depart(Message& m) {
  m.asks = environment().asks(id, m.to, m.bytes);
  if (m.asks) return push({Packet::Ask, &m, id, m.to, 0});
  push({Packet::Data, &m, id, m.to, m.bytes});
  sent(m);
}

void Rank::push(const Packet& p) {
  Channel& c = law().channel(p.from, p.to);
  if (p.kind == Packet::Answer) return rank(p.to).arrive(p);  // included in its message's sampled time
  if (p.kind == Packet::Ask) return fly(c, p, c.arrival(simulated().now()));
  run(c.opened());
  if (const std::string why = c.table.refusal(p.bytes, p.from); !why.empty()) abort_run(Outcome::Aborted, why, 1);
  const CurvePoint at = c.point(p.bytes);
  run(at.send);
  fly(c, p, c.depart(simulated().now(), at).end);
}

void Rank::fly(Channel& c, const Packet& p, Ps end) {
  if (end == simulated().now() && c.flying == 0) return rank(p.to).arrive(p);
  ++c.flying;
  simulated().at(end, [p, &c] {
    --c.flying;
    rank(p.to).arrive(p);
  });
}

void Rank::sent(Message& m) {
  m.sent = true;
  settle(m);
}

void Rank::settle(Message& m) {
  if (m.settled || !m.sent || (m.sync && !m.asks && !m.acknowledged)) return;
  m.settled = true;
  --open_sends;
  if (Request* r = m.sender) {
    r->done = true;
    if (r->detached) delete r;
    m.sender = nullptr;
  }
  if (m.delivered) drop(m);
}

void Rank::drop(Message& m) {
  if (m.origin) m.origin->message = nullptr;
  delete &m;
}

// ---------------------------------------------------------------- receiving

bool Rank::fits(const Request& r, const Message& m) {
  return r.context == m.context && (r.peer == m.from || r.peer == MPI_ANY_SOURCE) && (r.tag == m.tag || r.tag == MPI_ANY_TAG);
}

void Rank::receive(Request& r) {
  r.done = r.cancelled = false;
  if (r.peer == MPI_PROC_NULL) {
    r.done = true;
    r.source = MPI_PROC_NULL;
    r.found_tag = MPI_ANY_TAG;
    r.received = 0;
    return;
  }
  const auto m = std::find_if(unexpected_.begin(), unexpected_.end(), [&r](const Message* each) { return fits(r, *each); });
  if (m == unexpected_.end()) {
    posted_.push_back(&r);
    return;
  }
  Message& found = **m;
  unexpected_.erase(m);
  found.receiver = &r;
  matched(found);
}

const Message* Rank::unexpected(const Request& wanted) const {
  const auto m = std::find_if(unexpected_.begin(), unexpected_.end(), [&wanted](const Message* each) { return fits(wanted, *each); });
  return m == unexpected_.end() ? nullptr : *m;
}

/// Takes a message back that no receive has matched: out of the target's queue, or out of the network when it arrives.
void Rank::withdraw(Request& r) {
  Message* const m = r.message;
  if (!m || m->receiver || m->delivered) return;
  r.done = r.cancelled = true;
  if (!m->settled) --open_sends;
  m->sender = nullptr;
  if (!m->seen) {
    m->settled = m->withdrawn = true;
    m->origin = nullptr;
    r.message = nullptr;
    return;
  }
  Rank& target = rank(m->to);
  target.unexpected_.remove(m);
  if (m->stashed) target.unexpected_bytes_ -= m->bytes;
  drop(*m);
}

void Rank::cancel(Request& r) {
  if (r.kind == Request::Send) return withdraw(r);
  const auto at = std::find(posted_.begin(), posted_.end(), &r);
  if (r.kind != Request::Recv || at == posted_.end()) return;
  posted_.erase(at);
  r.cancelled = r.done = true;
}

void Rank::meet(Message& m) {
  m.seen = true;
  const auto r = std::find_if(posted_.begin(), posted_.end(), [&m](const Request* each) { return fits(*each, m); });
  if (r == posted_.end()) {
    unexpected_.push_back(&m);
    return;
  }
  m.receiver = *r;
  posted_.erase(r);
}

void Rank::matched(Message& m) {
  if (m.bytes > m.receiver->bytes)
    abort_run(Outcome::Aborted,
              "message of " + std::to_string(m.bytes) + " B from rank " + std::to_string(m.from) + " to rank " + std::to_string(m.to) + " (tag " +
                  std::to_string(m.tag) + ") is longer than the receive buffer of " + std::to_string(m.receiver->bytes) + " B (MPI_ERR_TRUNCATE)",
              1);
  if (m.asks) return push({Packet::Answer, &m, id, m.from, 0});
  if (m.stashed || (m.sync && !m.answered)) return take_in(m);
  if (m.arrived && !m.delivered) finish_receive(m);
}

void Rank::take_in(Message& m) {
  if (m.stashed) {  // one more copy: from the library's buffer to the user's
    m.stashed = false;
    unexpected_bytes_ -= m.bytes;
    run(copy_cost(m.bytes));
  }
  if (m.sync && !m.answered) {
    m.answered = true;
    if (m.from == id) {
      m.acknowledged = true;
      settle(m);
    } else {
      push({Packet::Taken, &m, id, m.from, 0});
    }
  }
  if (m.arrived && !m.delivered) finish_receive(m);
}

void Rank::finish_receive(Message& m) {
  m.delivered = true;
  Request& r = *m.receiver;
  r.done = true;
  r.source = m.from;
  r.found_tag = m.tag;
  r.received = m.bytes;
  if (r.comm) r.buffer.unpack(m.data);
  if (r.detached) delete &r;
  m.receiver = nullptr;
  if (m.settled) drop(m);
}

void Rank::arrive(const Packet& p) {
  inbox_.push_back(p);
  signal();
}

void Rank::absorb() {
  const Packet p = inbox_.front();
  inbox_.pop_front();
  if (p.kind == Packet::Data || p.kind == Packet::Taken) run(law().channel(p.from, p.to).point(p.bytes).recv);
  handle(p);
}

void Rank::handle(const Packet& p) {
  Message& m = *p.message;
  if (m.withdrawn) return drop(m);
  switch (p.kind) {
    case Packet::Ask:
      meet(m);
      if (m.receiver) matched(m);
      break;
    case Packet::Answer:
      push({Packet::Data, &m, id, m.to, m.bytes});
      sent(m);
      break;
    case Packet::Taken:
      m.acknowledged = true;
      settle(m);
      break;
    case Packet::Data: {
      if (!m.seen) meet(m);
      m.arrived = true;
      const int64_t limit = environment().unexpected_limit;
      if (!m.receiver) {
        m.stashed = true;
        unexpected_bytes_ += m.bytes;
        if (limit > 0 && unexpected_bytes_ > limit)
          abort_run(Outcome::Aborted,
                    "the fixed buffer of rank " + std::to_string(id) + " for unexpected messages (" + std::to_string(limit) +
                        " B) overflows with a message of " + std::to_string(m.bytes) + " B from rank " + std::to_string(m.from),
                    1);
      } else if (m.sync && !m.answered && !m.asks) {
        matched(m);
      } else if (m.bytes > m.receiver->bytes) {
        matched(m);  // reports the truncation
      } else {
        finish_receive(m);
      }
      break;
    }
  }
}

void Rank::progress() {
  while (true) {
    if (!inbox_.empty())
      absorb();
    else if (can_drive())
      drive();
    else
      return;
  }
}

void Rank::wait(Request& r) {
  if (r.done) return;
  awaited_ = &r;
  if (!running_.empty()) until([&r] { return r.done; });
  while (!r.done) {
    if (inbox_.empty())
      doze();
    else
      absorb();
  }
  awaited_ = nullptr;
}

void Rank::put(int target, int64_t bytes) {
  const CurveTable& c = environment().pair(id, target).put;
  if (c.points.empty())
    abort_run(Outcome::Aborted, "this runtime has no one-sided operations between rank " + std::to_string(id) + " and rank " + std::to_string(target),
              1);
  const CurvePoint at = c.at(bytes);
  const Ps begin = simulated().now();
  put_until_ = std::max(put_until_, begin + at.transit);
  run(at.send);
  // Until all puts have arrived, possibly earlier ones too; whatever arrives meanwhile is processed.
  simulated().at(put_until_, [this] { signal(); });
  until([this] { return simulated().now() >= put_until_; });
}

std::string Rank::waits_for() const {
  const Request* r = awaited_;
  if (!r) return "the other ranks";
  auto who = [](int peer) { return peer == MPI_ANY_SOURCE ? std::string("any source") : "rank " + std::to_string(peer); };
  auto tag = [](int t) { return t == MPI_ANY_TAG ? std::string("any tag") : "tag " + std::to_string(t); };
  if (r->context % 2 != 0) return "the other ranks in the collective: " + who(r->peer);
  if (r->kind == Request::Recv) return "a message from " + who(r->peer) + ", " + tag(r->tag);
  if (r->kind == Request::Send) return who(r->peer) + " to take a message of " + std::to_string(r->bytes) + " B, " + tag(r->tag);
  return "the other ranks in the collective";
}

}  // namespace retrompi::online
