// Removes noise from captured computation: averages the computation at each place of an iterative program's loop over the
// iterations.
#include <algorithm>

#include "trace/flat_action.hpp"
#include "trace/trace.hpp"

namespace retrompi {
namespace {

struct Call {
  size_t at;     // index of the action
  double gap;    // computation since the call before
  uint64_t key;  // hash of the call's arguments; equal for equal calls
};

bool computes(const Action &a) { return a.op == Op::Compute; }

uint64_t key_of(const Action &a) {
  const FlatAction f = flatten(a);
  uint64_t h = 0x9e3779b97f4a7c15ULL;
  // Excludes identities of requests and matches of receives, which change from one iteration to the next.
  const bool start = a.op == Op::Start || a.op == Op::Startall;
  for (const int64_t part : {static_cast<int64_t>(f.op) | static_cast<int64_t>(f.flags & FLAG_NONBLOCKING) << 8 | static_cast<int64_t>(f.comm) << 16,
                             static_cast<int64_t>(f.peer), static_cast<int64_t>(f.tag), a.matched() && !start ? 0 : static_cast<int64_t>(f.peer2),
                             a.matched() && start ? 0 : f.bytes, a.matched() ? 0 : f.bytes2})
    h = (h ^ static_cast<uint64_t>(part)) * 0xbf58476d1ce4e5b9ULL, h ^= h >> 29;
  return h;
}

/// The smallest period of v (Knuth, Morris, Pratt): v[i] == v[i + period] throughout.
size_t period_of(const std::vector<uint64_t> &v) {
  std::vector<size_t> border(v.size() + 1, 0);
  for (size_t i = 1, k = 0; i < v.size(); ++i) {
    while (k > 0 && v[i] != v[k]) k = border[k];
    if (v[i] == v[k]) ++k;
    border[i + 1] = k;
  }
  return v.size() - border[v.size()];
}

std::vector<Action> smooth(const std::vector<Action> &actions) {
  constexpr size_t kLeastIterations = 8;
  std::vector<Call> calls;
  double gap = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (computes(actions[i])) {
      gap += actions[i].get<action::Compute>().flops;
      continue;
    }
    calls.push_back({i, gap, key_of(actions[i])});
    gap = 0;
  }
  // The loop is most of the program, so the middle half of the calls lies in it and repeats exactly.
  const size_t n = calls.size();
  std::vector<uint64_t> middle;
  for (size_t i = n / 4; i < n - n / 4; ++i) middle.push_back(calls[i].key);
  if (middle.size() < 2 * kLeastIterations) return actions;
  const size_t period = period_of(middle);
  if (period * kLeastIterations > middle.size()) return actions;
  size_t first = n / 4, last = n - n / 4;
  while (first > 0 && calls[first - 1].key == calls[first - 1 + period].key) --first;
  while (last < n && calls[last].key == calls[last - period].key) ++last;
  ++first;  // what precedes the first call of the loop may belong to what came before it

  std::vector<double> sum(period, 0.0);
  std::vector<size_t> times(period, 0);
  for (size_t i = first; i < last; ++i) {
    sum[(i - first) % period] += calls[i].gap;
    ++times[(i - first) % period];
  }
  std::vector<Action> out;
  out.reserve(actions.size());
  out.insert(out.end(), actions.begin(), actions.begin() + static_cast<std::ptrdiff_t>(calls[first - 1].at) + 1);
  for (size_t i = first; i < last; ++i) {
    const size_t phase = (i - first) % period;
    if (const double amount = sum[phase] / static_cast<double>(times[phase]); amount > 0) {
      Action burst(Op::Compute, actions[calls[i - 1].at + 1].line);
      burst.get<action::Compute>().flops = amount;
      out.push_back(burst);
    }
    out.push_back(actions[calls[i].at]);
  }
  out.insert(out.end(), actions.begin() + static_cast<std::ptrdiff_t>(calls[last - 1].at) + 1, actions.end());
  return out;
}

}  // namespace

Trace Trace::scaled(double factor) const {
  Trace out = *this;
  for (auto &r : out.ranks) {
    ActionList scaled(static_cast<int32_t>(&r - out.ranks.data()));
    for (Action a : r) {
      switch (a.kind()) {
        case ActionKind::Compute:
          a.get<action::Compute>().flops *= factor;
          break;
        case ActionKind::Kernel:
          a.get<action::Kernel>().times *= factor;
          break;
        case ActionKind::Collective:
          a.get<action::Collective>().flops *= factor;
          break;
        default:
          break;
      }
      scaled.push_back(a);
    }
    scaled.seal();
    r = std::move(scaled);
  }
  return out;
}

Trace Trace::smoothed() const {
  Trace out = *this;
  for (auto &rank : out.ranks) {
    const std::vector<Action> smoothed = smooth({rank.begin(), rank.end()});
    rank = ActionList(static_cast<int32_t>(&rank - out.ranks.data()));
    for (const Action &a : smoothed) rank.push_back(a);
    rank.seal();
  }
  return out;
}

}  // namespace retrompi
