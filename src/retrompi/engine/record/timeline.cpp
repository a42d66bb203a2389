#include "record/timeline.hpp"

#include <algorithm>

#include "trace/flat_action.hpp"
#include "trace/trace.hpp"

namespace retrompi {

namespace {
constexpr Ps kFirstResolution = 1024;  // about a nanosecond: the first precision to be given up
}

std::string state_name(size_t state) {
  const auto wait = static_cast<size_t>(Stage::Wait);
  if (state < wait) return stage_name(static_cast<Stage>(state));
  return std::string("wait: ") + wait_name(static_cast<WaitFor>(state - wait));
}

void Timeline::segment(int thread, Ps begin, Ps end, uint8_t state) {
  if (static_cast<size_t>(thread) >= processes.size()) return;  // of another job
  Process& p = processes[static_cast<size_t>(thread)];
  p.totals[state] += end - begin;
  begin = std::max(begin, spec_.from);
  end = std::min(end, spec_.until);
  if (end <= begin) return;
  ++states_seen_;
  put(p, begin, end, state, false);
  if (kept_ > spec_.limit && !coarsest()) coarsen();
}

void Timeline::put(Process& p, Ps begin, Ps end, uint8_t state, bool merged) {
  if (!p.any) {
    p.any = true;
    p.end = begin;
  }
  const bool same = !p.states.empty() && !p.small_open_ && p.states.back().state == state;
  if (same && p.states.back().merged == merged) {
    p.end = end;
    return;
  }
  if (end - begin >= resolution_) {
    flush(p);
    p.states.push_back({begin, state, merged});
    ++kept_;
    p.end = end;
    return;
  }
  if (!p.small_open_) {
    p.small_open_ = true;
    p.small_merged_ = false;
    p.small_begin_ = begin;
    p.small_.fill(0);
  }
  p.small_[state] += end - begin;
  p.small_merged_ |= merged;
  p.end = end;
  if (end - p.small_begin_ >= resolution_) flush(p);
}

void Timeline::flush(Process& p) {
  if (!p.small_open_) return;
  p.small_open_ = false;
  const bool merged = p.small_merged_ || std::count_if(p.small_.begin(), p.small_.end(), [](Ps t) { return t > 0; }) > 1;
  Ps at = p.small_begin_;
  for (size_t s = 0; s < kStates; ++s) {
    if (p.small_[s] == 0) continue;
    const auto state = static_cast<uint8_t>(s);
    if (p.states.empty() || p.states.back().state != state || p.states.back().merged != merged) {
      p.states.push_back({at, state, merged});
      ++kept_;
    }
    at += p.small_[s];
  }
}

void Timeline::coarsen() {
  for (Process& p : processes) flush(p);
  // More processes than the limit has states: in the end one state of each is left.
  while (kept_ > spec_.limit / 2) {
    if (!coarsest()) resolution_ = resolution_ > 0 ? 2 * resolution_ : kFirstResolution;
    kept_ = 0;
    for (Process& p : processes) {
      const auto old = std::move(p.states);
      const Ps last = p.end;
      p.states.clear();
      p.any = false;
      for (size_t i = 0; i < old.size(); ++i) put(p, old[i].begin, i + 1 < old.size() ? old[i + 1].begin : last, old[i].state, old[i].merged);
      flush(p);
    }
    if (coarsest()) return;
  }
}

void Timeline::end_call(int32_t rank, const Action& a, Ps now, bool open) {
  const Ps begin = open_[static_cast<size_t>(rank)];
  if (a.op == Op::Mark || now < spec_.from || begin >= spec_.until) return;
  const uint64_t nth = nth_[static_cast<size_t>(rank)]++;
  ++calls_seen_;
  if (nth % static_cast<uint64_t>(every_call_) != 0) return;
  const FlatAction f = flatten(a);
  const bool two = a.kind() == ActionKind::Collective;  // the root, if there is one
  calls.push_back({rank, a.line, static_cast<uint8_t>(a.op), a.comm, two ? f.peer2 : f.peer, f.tag, f.bytes, begin, now, nth, open});
  later_calls_ += nth > 0;
  // The first call of each rank stays, also when there are more ranks than the limit has calls.
  while (static_cast<int64_t>(calls.size()) > spec_.limit && later_calls_ > 0) {
    every_call_ *= 2;
    later_calls_ -= static_cast<int64_t>(std::erase_if(calls, [this](const Call& c) { return c.nth % static_cast<uint64_t>(every_call_) != 0; }));
  }
}

void Timeline::moved(int32_t origin, int32_t target, int64_t bytes) {
  Traffic& t = traffic[{origin, target}];
  ++t.transfers;
  t.transferred += bytes;
}

int64_t Timeline::sent(Message&& m) {
  Traffic& t = traffic[{m.src, m.dst}];
  (m.ctx % 2 != 0 ? t.in_collectives : t.messages) += 1;
  (m.ctx % 2 != 0 ? t.collective_bytes : t.bytes) += m.bytes;
  if (m.sent < spec_.from || m.sent >= spec_.until) return -1;
  const int64_t number = messages_seen_++;
  if (number % every_message_ != 0) return number;
  messages.push_back(std::move(m));
  if (static_cast<int64_t>(messages.size()) > std::max<int64_t>(spec_.limit, 1)) {
    every_message_ *= 2;
    for (size_t i = 0; 2 * i < messages.size(); ++i)
      if (i > 0) messages[i] = std::move(messages[2 * i]);
    messages.resize((messages.size() + 1) / 2);
  }
  return number;
}

void Timeline::hop_in(int64_t message, int process, Ps now) {
  if (Message* m = find(message)) m->hops.push_back({process, now, -1});
}

void Timeline::hop_out(int64_t message, int process, Ps now) {
  if (Message* m = find(message))
    for (Hop& h : m->hops)
      if (h.process == process) h.out = now;
}

void Timeline::received(int64_t message, Ps now, bool rendezvous, uint32_t line) {
  Message* m = find(message);
  if (!m) return;
  m->received = now;
  m->rendezvous = rendezvous;
  m->receive_line = line;
}

void Timeline::finish() {
  for (Process& p : processes) flush(p);
  if (kept_ > spec_.limit) coarsen();
  std::stable_sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) { return a.rank < b.rank; });
}

}  // namespace retrompi
