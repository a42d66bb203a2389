#include "mpi/recurrence.hpp"

#include "channel/stream.hpp"
#include "mpi/rank.hpp"

namespace retrompi {

// Lines of the trace and times of calls are for reports: of what is under way at the end they are those of its own period, which is simulated.
void put_message(State& s, const Message* m) {
  if (!s.put_met(m)) return;
  for (const int32_t n : {m->src, m->dst, m->tag, m->ctx}) s.put(n);
  for (const bool is : {m->rendezvous, m->sync, m->packed, m->unpacked, m->direct, m->envelope_known, m->ack_sent, m->acked, m->send_complete,
                        m->sent_all, m->delivered, m->lost})
    s.put(is);
  for (const int64_t n : {m->bytes, m->asked, m->arrived, m->unexpected_bytes}) s.put(n);
  if (!m->in_pool.empty()) s.refuse();
  put_request(s, m->sreq);
  put_request(s, m->rreq);
}

void put_request(State& s, const Request* r) {
  if (!s.put_met(r)) return;
  s.put(r->kind);
  s.put(r->mode);
  for (const int32_t n : {r->peer, r->tag, r->ctx, r->src, r->dst}) s.put(n);
  s.put(r->bytes);
  for (const bool is : {r->done, r->persistent, r->active, r->detached}) s.put(is);
  put_message(s, r->m);
}

void put_packet(State& s, const Packet& p) {
  put_message(s, p.m);
  s.put(p.bytes);
  s.put(p.from);
  s.put(p.to);
  s.put(p.kind);
  for (const bool is : {p.first, p.last, p.held}) s.put(is);
}

namespace {

State::Call describe(const Callback& c, State& s) {
  for (const State::Describe each :
       {&Thread::describe, &Host::describe, &Net::describe, &TcpConnection::describe, &Credits::describe, &describe_stream, &describe_datagram})
    if (const State::Call told = each(c, s); told != State::Call::Unknown) return told;
  return State::Call::Unknown;
}

/// Actions whose effect on a rank is all in its state.
bool plain(const Action& a) {
  switch (a.op) {
    case Op::Send:
    case Op::Ssend:
    case Op::Rsend:
    case Op::Recv:
    case Op::Sendrecv:
    case Op::Compute:
    case Op::Isend:
    case Op::Issend:
    case Op::Irsend:
    case Op::Irecv:
    case Op::Wait:
    case Op::Waitall:
      return true;
    default:
      return false;
  }
}
bool same(const Action& a, const Action& b) {
  if (a.op != b.op || a.comm != b.comm || a.flags != b.flags || a.request != b.request) return false;
  switch (a.kind()) {
    case ActionKind::Compute:
      return a.get<action::Compute>() == b.get<action::Compute>();
    case ActionKind::SendReceive:
      return a.get<action::SendReceive>() == b.get<action::SendReceive>();
    case ActionKind::OneRequest:
      return a.get<action::OneRequest>() == b.get<action::OneRequest>();
    case ActionKind::SeveralRequests:
      return a.get<action::SeveralRequests>() == b.get<action::SeveralRequests>();
    default:
      return a.get<action::PointToPoint>() == b.get<action::PointToPoint>();
  }
}

/// x += n * (b - a)
template <class T>
void grow(T& x, T a, T b, int64_t n) {
  x += (b - a) * n;
}

}  // namespace

/// Puts the state; false where it cannot be told.
bool Recurrence::told(Rank& rank, const void* coroutine, State& s) {
  s.put(&rank);
  s.put(coroutine != nullptr);
  if (coroutine) {
    s.put_time(rank.call_began);
    rank.thread.sites(s, coroutine);
  }
  s.put(job_.rng.state());
  for (const auto& h : w_.hosts) h->state(s);
  for (const Proc* p : processes_) p->state(s);
  for (const Lock& lock : job_.pool_locks)
    if (lock.held) s.refuse();
  if (!s.refused()) channels_(s);
  if (s.refused()) return false;
  if (w_.net) w_.net->state(s);
  w_.wire->state(s);
  w_.loop.state(s);
  return !s.refused();
}

/// Whether it is at a call like that of the last look, or that has not come again for long.
bool Recurrence::anchored(const Rank& rank, const void* coroutine) const {
  return w_.loop.executed() >= anchor_.until || ((coroutine != nullptr) == anchor_.waits && same(rank.action(), anchor_.action));
}

bool Recurrence::look_at_call(Rank& rank) {
  const int64_t n = ++at_calls_.looks;
  until_next_call_ = n < kSoon ? 1 : std::min(kRarest, n - kSoon + 1);
  return quiet(rank) && look(rank, nullptr, at_calls_) == Found::Repetition;
}

// A look costs a tenth of the events since the last one, and ever less in a program that never comes back to the same state.
bool Recurrence::look_at_anchor(Rank& rank, const void* coroutine) {
  if (!plain(rank.action()) || !anchored(rank, coroutine) || !quiet(rank)) return false;
  const int64_t n = at_anchor_.looks++;
  const Found found = look(rank, coroutine, at_anchor_);
  if (found == Found::Repetition) return true;
  const uint64_t now = w_.loop.executed(), events = size_ * static_cast<uint64_t>(8 + n) / 16;
  next_look_ = now + events;
  if (found == Found::State) anchor_ = {&rank, rank.action(), coroutine != nullptr, now + events + std::max<uint64_t>(events, size_)};
  return false;
}

Recurrence::Found Recurrence::look(Rank& rank, const void* coroutine, Series& series) {
  State s(w_.loop.now, describe);
  const bool told = this->told(rank, coroutine, s);
  std::vector<int64_t> words = s.words();
  size_ = words.size();
  if (!told || s.refused()) return Found::Nothing;
  const Instant now = instant(rank, std::move(words));
  for (const Instant& before : series.instants) {
    if (before.rank != &rank || before.words != now.words) continue;
    if (before.tick_uses != now.tick_uses && !at_ticks(now.now - before.now)) continue;
    const int64_t n = repetitions(before, now);
    if (n <= 0) return Found::State;
    leave_out(n, before, now);
    at_calls_ = at_anchor_ = {};
    until_next_call_ = 1;
    next_look_ = anchor_.until = 0;
    return Found::Repetition;
  }
  if (series.instants.size() < kInstants)
    series.instants.push_back(now);
  else
    series.instants[series.next++ % kInstants] = now;
  return Found::State;
}

/// All others wait; looked at first, as it is seldom so where many compute.
bool Recurrence::quiet(const Rank& rank) const {
  return std::all_of(processes_.begin(), processes_.end(), [&](const Proc* p) { return p == &rank || p->thread.waiting(); });
}

Recurrence::Instant Recurrence::instant(const Rank& rank, std::vector<int64_t> words) const {
  Instant i{&rank, w_.loop.now, w_.loop.tick_uses, std::move(words), {}};
  i.sums.count = job_.count;
  i.sums.contended = w_.wire->contended();
  for (const Rank* r : job_.ranks) i.sums.ranks.push_back({r->place(), r->mpi, r->compute, r->sends, r->receives, r->bytes_sent, r->bytes_received});
  for (const Proc* p : processes_) i.sums.used.push_back(p->thread.used());
  return i;
}

bool Recurrence::at_ticks(Ps period) const {
  return std::all_of(w_.hosts.begin(), w_.hosts.end(), [period](const auto& h) { return period % h->spec.tick == 0; });
}

/// How many more periods follow of which it is known that they are like the last; one of these is left to be simulated, so that what is under way at
/// the end belongs to its own actions.
int64_t Recurrence::repetitions(const Instant& a, const Instant& b) const {
  const Ps period = b.now - a.now;
  if (period <= 0) return 0;
  constexpr Ps kHorizon = kNever / 4;
  int64_t n = std::max<int64_t>(0, (std::min(w_.loop.limit, kHorizon - w_.loop.time()) - w_.loop.now) / period - 1);
  for (size_t r = 0; r < job_.ranks.size() && n > 0; ++r) {
    const size_t from = a.sums.ranks[r].place, actions = b.sums.ranks[r].place - from;
    if (actions > 0) n = std::min(n, repeated(*job_.ranks[r], from, actions));
  }
  return n;
}

int64_t Recurrence::repeated(const Rank& rank, size_t from, size_t period) const {
  const ActionList& all = job_.trace.ranks[static_cast<size_t>(rank.id)];
  if (from + period >= all.size()) return 0;
  auto a = all.from(from), b = all.from(from + period);
  size_t alike = 0;
  for (; b != all.end() && plain(*a) && same(*a, *b); ++a, ++b) ++alike;
  return alike == 0 ? 0 : static_cast<int64_t>((alike - 1) / period) - 1;
}

void Recurrence::leave_out(int64_t n, const Instant& a, const Instant& b) {
  const Ps time = (b.now - a.now) * n;
  w_.loop.skip(time);
  for (const auto& h : w_.hosts) h->skip(time);
  w_.wire->add_contended((b.sums.contended - a.sums.contended) * static_cast<uint64_t>(n));
  job_.count.repeat(a.sums.count, b.sums.count, n);
  for (size_t i = 0; i < job_.ranks.size(); ++i) {
    Rank& r = *job_.ranks[i];
    const Sums::OfRank &x = a.sums.ranks[i], &y = b.sums.ranks[i];
    grow(r.mpi, x.mpi, y.mpi, n);
    grow(r.compute, x.compute, y.compute, n);
    grow(r.sends, x.sends, y.sends, n);
    grow(r.receives, x.receives, y.receives, n);
    grow(r.bytes_sent, x.bytes_sent, y.bytes_sent, n);
    grow(r.bytes_received, x.bytes_received, y.bytes_received, n);
    r.leave_out((y.place - x.place) * static_cast<size_t>(n));
  }
  for (size_t i = 0; i < processes_.size(); ++i) processes_[i]->thread.add_used((b.sums.used[i] - a.sums.used[i]) * n);
}

}  // namespace retrompi
