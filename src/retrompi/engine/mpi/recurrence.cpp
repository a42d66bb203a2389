#include "mpi/recurrence.hpp"

#include "channel/stream.hpp"
#include "mpi/rank.hpp"

namespace retrompi {

// Lines of the trace and times of calls are for reports: of what is under way at the end they are those of its own period, which is simulated.
void put_message(State& s, const Message* m) {
  if (!s.put_met(m)) return;
  // `queued`: the queues put their messages in order.
  const auto& [src, dst, tag, ctx, bytes, rendezvous, sync, packed, unpacked, direct, envelope_known, sreq, rreq, asked, arrived, unexpected_bytes,
               ack_sent, acked, send_complete, sent_all, delivered, lost, line, at, unexpected_since, number, in_pool, queued] = *m;
  for (const int32_t n : {src, dst, tag, ctx}) s.put(n);
  for (const bool is : {rendezvous, sync, packed, unpacked, direct, envelope_known, ack_sent, acked, send_complete, sent_all, delivered, lost})
    s.put(is);
  for (const int64_t n : {bytes, asked, arrived, unexpected_bytes}) s.put(n);
  if (!in_pool.empty()) s.refuse();
  put_request(s, sreq);
  put_request(s, rreq);
}

void put_request(State& s, const Request* r) {
  if (!s.put_met(r)) return;
  const auto& [kind, peer, tag, ctx, bytes, mode, line, done, persistent, active, detached, m, src, dst, queued] = *r;
  s.put(kind);
  s.put(mode);
  for (const int32_t n : {peer, tag, ctx, src, dst}) s.put(n);
  s.put(bytes);
  for (const bool is : {done, persistent, active, detached}) s.put(is);
  put_message(s, m);
}

void put_packet(State& s, const Packet& p) {
  const auto& [m, bytes, from, to, kind, first, last, held, transit] = p;
  put_message(s, m);
  s.put(bytes);
  s.put(from);
  s.put(to);
  s.put(kind);
  for (const bool is : {first, last, held}) s.put(is);
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

}  // namespace

/// Puts the state; false where it cannot be told.
bool Recurrence::put_state(Rank& rank, const void* coroutine, State& s) {
  s.put(&rank);
  s.put(coroutine != nullptr);
  if (coroutine) rank.thread.sites(s, coroutine);
  if (w_.loop.settle) w_.loop.settle();
  job_.state(s);
  for (const Proc* p : processes_) p->state(s);
  if (!s.refused()) channels_(s);
  if (s.refused()) return false;
  const auto& [loop, anatomy, hosts, wire, net, procs, channels] = w_;  // nothing is recorded; the processes are those of the job
  for (const auto& h : hosts) h->state(s);
  if (net) net->state(s);
  wire->state(s);
  loop.state(s);
  return !s.refused();
}

/// Whether it is at a call like that of the last look, or that has not come again for long.
bool Recurrence::anchored(const Rank& rank, const void* coroutine) const {
  return w_.loop.executed() >= anchor_.until || ((coroutine != nullptr) == anchor_.waits && same(rank.action(), anchor_.action));
}

void Recurrence::look_at_call(Rank& rank) {
  const int64_t n = ++at_calls_.looks;
  until_next_call_ = n < kSoon ? 1 : std::min(kRarest, n - kSoon + 1);
  if (quiet(rank)) look(rank, nullptr, at_calls_);
}

// A look costs a tenth of the events since the last one, and ever less in a program that never comes back to the same state.
void Recurrence::look_at_anchor(Rank& rank, const void* coroutine) {
  if (!plain(rank.action()) || !anchored(rank, coroutine) || !quiet(rank)) return;
  const int64_t n = at_anchor_.looks++;
  const bool seen = look(rank, coroutine, at_anchor_);
  const uint64_t now = w_.loop.executed(), events = size_ * static_cast<uint64_t>(8 + n) / 16;
  next_look_ = now + events;
  if (seen) anchor_ = {&rank, rank.action(), coroutine != nullptr, now + events + std::max<uint64_t>(events, size_)};
}

/// Actions of a rank in a period.
size_t Recurrence::moved(const Period& p, const Rank& rank) {
  const auto r = static_cast<size_t>(rank.id);
  return p.end.sums.ranks[r].place - p.begin.sums.ranks[r].place;
}

/// At the end of the first period after those that were left out: whether it was another repetition.
void Recurrence::confirm(Rank& rank, const void* coroutine) {
  if (w_.loop.now < due_) return;
  if (w_.loop.now > due_) {
    distrusted_ = from_.tick_uses == w_.loop.tick_uses;
    w_.loop.stopped = true;
    return;
  }
  if (from_.rank != &rank || !quiet(rank)) return;
  State s(w_.loop.now, describe);
  const bool complete = put_state(rank, coroutine, s);
  const Period next{from_, instant(rank, coroutine, s.words())};
  // Calls that take no time (to no process) leave the state as it is: of several at this time it is the one so many actions on.
  if (!complete || s.refused() || !like(next.begin, next.end) || moved(next, rank) != moved(*repeated_, rank)) return;
  if (!alike(*repeated_, next)) {
    distrusted_ = w_.loop.stopped = true;
    return;
  }
  repeated_.reset();
  at_calls_ = at_anchor_ = {};
  until_next_call_ = 1;
  next_look_ = anchor_.until = 0;
}

/// Whether the state could be told.
bool Recurrence::look(Rank& rank, const void* coroutine, Series& series) {
  State s(w_.loop.now, describe);
  const bool complete = put_state(rank, coroutine, s);
  std::vector<int64_t> words = s.words();
  size_ = words.size();
  if (!complete || s.refused()) return false;
  const Instant now = instant(rank, coroutine, std::move(words));
  for (const Instant& before : series.instants)
    if (like(before, now)) {
      Period period{before, now};
      const int64_t n = repetitions(period);
      if (n <= 0) continue;
      leave_out(n, period);
      repeated_ = std::move(period);
      from_ = instant(rank, coroutine, now.words);
      due_ = now.now + (now.now - before.now);
      return true;
    }
  if (series.instants.size() < kInstants)
    series.instants.push_back(now);
  else
    series.instants[series.next++ % kInstants] = now;
  return true;
}

/// Whether two instants are of the same state, and the clocks' phases, which differ, decided nothing between them or are the same. Calls are as
/// old, or the same one, which lasts through all of it: their time is counted when they return.
bool Recurrence::like(const Instant& a, const Instant& b) const {
  const auto alike = [](const Sums::OfRank& one, const Sums::OfRank& other) { return one.place == other.place || one.age == other.age; };
  return a.rank == b.rank && a.words == b.words && (a.tick_uses == b.tick_uses || at_ticks(b.now - a.now)) &&
         std::equal(a.sums.ranks.begin(), a.sums.ranks.end(), b.sums.ranks.begin(), alike);
}

/// Whether everything grew alike in two periods of the same state, of which one may be several of the other.
bool Recurrence::alike(const Period& one, const Period& other) {
  const auto in = [](const Period& p, auto of) { return static_cast<__int128>(of(p.end)) - static_cast<__int128>(of(p.begin)); };
  const auto time = [](const Instant& i) { return i.now.count(); };
  const auto same_rate = [&](auto of) { return in(one, of) * in(other, time) == in(other, of) * in(one, time); };
  bool same = same_rate([](const Instant& i) { return i.sums.contended; });
  Counters::each([&](const char*, auto field) { same = same && same_rate([field](const Instant& i) { return i.sums.count.*field; }); });
  for (size_t op = 0; op < OP_COUNT; ++op) same = same && same_rate([op](const Instant& i) { return i.sums.count.done[op]; });
  for (size_t r = 0; r < one.end.sums.ranks.size(); ++r) {
    same = same && same_rate([r](const Instant& i) { return i.sums.ranks[r].place; });
    RankCounters::each([&](const char*, auto field) {
      same = same && same_rate([=](const Instant& i) { return static_cast<int64_t>(i.sums.ranks[r].count.*field); });
    });
  }
  for (size_t p = 0; p < one.end.sums.used.size(); ++p) same = same && same_rate([p](const Instant& i) { return i.sums.used[p].count(); });
  return same;
}

/// All others wait; looked at first, as it is seldom so where many compute.
bool Recurrence::quiet(const Rank& rank) const {
  return std::all_of(processes_.begin(), processes_.end(), [&](const Proc* p) { return p == &rank || p->thread.waiting(); });
}

Recurrence::Instant Recurrence::instant(const Rank& rank, const void* coroutine, std::vector<int64_t> words) const {
  Instant i{&rank, w_.loop.now, w_.loop.tick_uses, std::move(words), {}};
  i.sums.count = job_.count;
  i.sums.contended = w_.wire->contended();
  for (const Rank* r : job_.ranks) {
    const bool calls = !r->finished && (r != &rank || coroutine);  // else it is between two calls
    i.sums.ranks.push_back({r->count, r->place(), calls ? w_.loop.time() - r->call_began : Ps(0)});
  }
  for (const Proc* p : processes_) i.sums.used.push_back(p->thread.used());
  i.sums.events = w_.loop.executed();
  return i;
}

bool Recurrence::at_ticks(Ps period) const {
  return std::all_of(w_.hosts.begin(), w_.hosts.end(), [period](const auto& h) { return period % h->spec.tick == 0; });
}

/// How many more periods follow of which it is known that they are like the last; one of these is left to be simulated, so that what is under way at
/// the end belongs to its own actions.
int64_t Recurrence::repetitions(const Period& of) const {
  const Instant &a = of.begin, &b = of.end;
  const Ps period = b.now - a.now;
  if (period <= 0) return 0;
  constexpr Ps kHorizon = kNever / 4;
  int64_t n = std::max<int64_t>((std::min(w_.loop.limit, kHorizon - w_.loop.time()) - w_.loop.now) / period - 1, 0);
  for (size_t r = 0; r < job_.ranks.size() && n > 0; ++r) {
    const size_t from = a.sums.ranks[r].place, actions = b.sums.ranks[r].place - from;
    if (actions > 0) n = std::min(n, repeated(*job_.ranks[r], from, actions, n));
  }
  return n;
}

int64_t Recurrence::repeated(const Rank& rank, size_t from, size_t period, int64_t most) const {
  const ActionList& all = job_.trace.ranks[static_cast<size_t>(rank.id)];
  if (from + period >= all.size()) return 0;
  auto a = all.from(from), b = all.from(from + period);
  size_t alike = 0;
  const size_t enough = static_cast<size_t>(std::min<int64_t>(most, static_cast<int64_t>(all.size() / period)) + 2) * period + 1;
  for (; alike < enough && b != all.end() && plain(*a) && same(*a, *b); ++a, ++b) ++alike;
  return alike == 0 ? 0 : static_cast<int64_t>((alike - 1) / period) - 1;
}

void Recurrence::leave_out(int64_t n, const Period& period) {
  const Instant &a = period.begin, &b = period.end;
  events_left_out_ += (b.sums.events - a.sums.events) * static_cast<uint64_t>(n);
  const Ps time = (b.now - a.now) * n;
  w_.loop.skip(time);
  for (const auto& h : w_.hosts) h->skip(time, a.now);
  w_.wire->add_contended((b.sums.contended - a.sums.contended) * static_cast<uint64_t>(n));
  job_.count.repeat(a.sums.count, b.sums.count, n);
  for (size_t i = 0; i < job_.ranks.size(); ++i) {
    Rank& r = *job_.ranks[i];
    const Sums::OfRank &x = a.sums.ranks[i], &y = b.sums.ranks[i];
    RankCounters::each([&](const char*, auto field) { r.count.*field += (y.count.*field - x.count.*field) * n; });
    if (y.place == x.place) continue;
    r.leave_out((y.place - x.place) * static_cast<size_t>(n));
    r.call_began += time;  // another call, as old
  }
  for (size_t i = 0; i < processes_.size(); ++i) processes_[i]->thread.add_used((b.sums.used[i] - a.sums.used[i]) * n);
}

}  // namespace retrompi
