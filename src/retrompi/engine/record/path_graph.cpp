#include "record/path_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "event/time.hpp"
#include "record/anatomy.hpp"

namespace retrompi {

namespace {

constexpr double kOrdered = 0.5;  // ps: delays are rounded to whole picoseconds, so that nothing less tells which of two comes first
constexpr int64_t kNever64 = std::numeric_limits<int64_t>::max();

}  // namespace

PathGraph PathGraph::of(const CriticalPath& path, Point end, const std::function<std::string(CriticalPath::Who)>& name,
                        const std::function<Number(const CriticalPath::Term&)>& number) {
  PathGraph g;
  const auto& points = path.points();
  const size_t n = points.size();
  g.t.reserve(n);
  g.from.reserve(n);
  g.who.reserve(n);
  g.bill.reserve(n);
  g.stage.reserve(n);
  std::map<CriticalPath::Who, uint32_t> known;
  for (const CriticalPath::At& at : points) {
    g.t.push_back(static_cast<int64_t>(at.t));
    g.from.push_back(at.from);
    g.bill.push_back(at.bill);
    g.stage.push_back(static_cast<uint8_t>(static_cast<uint8_t>(at.s) | (at.fixed ? kFixed : 0)));
    if (points[at.from].t == at.t) {  // nobody spends anything
      g.who.push_back(0);
      continue;
    }
    const auto [it, fresh] = known.emplace(at.who, static_cast<uint32_t>(g.names.size()));
    if (fresh) g.names.push_back(name(at.who));
    g.who.push_back(it->second);
  }
  for (const auto& j : path.joins()) g.joins.insert(g.joins.end(), {j.into, j.other});
  for (const auto& r : path.resumed()) g.resumed.insert(g.resumed.end(), {r.at, r.begun, r.ended});
  for (const auto& o : path.orders()) g.orders.insert(g.orders.end(), {o.before, o.after});
  std::map<Number, uint32_t> seen;
  for (const auto& terms : path.bills()) {
    g.bill_begin.push_back(static_cast<uint32_t>(g.term_number.size()));
    for (const CriticalPath::Term& term : terms) {
      const auto [it, fresh] = seen.emplace(number(term), static_cast<uint32_t>(g.numbers.size()));
      if (fresh) g.numbers.push_back(it->first);
      g.term_number.push_back(it->second);
      g.term_times.push_back(term.times);
    }
  }
  g.bill_begin.push_back(static_cast<uint32_t>(g.term_number.size()));
  g.unfollowed.assign(path.unfollowed().begin(), path.unfollowed().end());
  g.end = end;
  return g;
}

void PathGraph::check() const {
  const size_t n = t.size();
  bool good = n > 0 && from.size() == n && who.size() == n && bill.size() == n && stage.size() == n && end < n && joins.size() % 2 == 0 &&
              resumed.size() % 3 == 0 && orders.size() % 2 == 0 && !bill_begin.empty() && term_times.size() == term_number.size() &&
              bill_begin.back() == term_number.size() && std::is_sorted(bill_begin.begin(), bill_begin.end());
  for (size_t i = 1; good && i < n; ++i) good = from[i] < i && bill[i] + 1 < bill_begin.size() && (who[i] < names.size() || t[i] == t[from[i]]);
  for (size_t i = 0; good && i < joins.size(); i += 2) good = joins[i] < n && joins[i + 1] < joins[i] && (i == 0 || joins[i - 2] < joins[i]);
  for (size_t i = 0; good && i < resumed.size(); i += 3)
    good = resumed[i] < n && resumed[i + 1] < resumed[i] && resumed[i + 2] < resumed[i] && (i == 0 || resumed[i - 3] < resumed[i]);
  for (const uint32_t p : orders) good = good && p < n;
  for (const uint32_t k : term_number) good = good && k < numbers.size();
  if (!good) throw std::invalid_argument("these are not the columns of a critical path");
}

std::vector<int64_t> PathGraph::slack_by_point() const {
  std::vector<int64_t> slack(t.size(), kNever64);
  slack[end] = 0;
  auto at_most = [&slack](uint32_t p, int64_t ps) { slack[p] = std::min(slack[p], ps); };
  size_t j = joins.size(), r = resumed.size();
  for (auto p = static_cast<uint32_t>(t.size() - 1); p > 0; --p) {
    const int64_t mine = slack[p];
    const bool joined = j >= 2 && joins[j - 2] == p, again = r >= 3 && resumed[r - 3] == p;
    if (mine != kNever64) {
      // What ends at a fixed instant could have begun as late as that.
      at_most(from[p], (stage[p] & kFixed) != 0 ? mine + t[p] - t[from[p]] : mine);
      if (joined) at_most(joins[j - 1], mine + t[p] - t[joins[j - 1]]);
      if (again) at_most(resumed[r - 2], mine);
    }
    if (joined) j -= 2;
    if (again) r -= 3;
  }
  for (int64_t& s : slack)
    if (s == kNever64) s = -1;
  return slack;
}

std::vector<PathGraph::Slack> PathGraph::slacks() const {
  const std::vector<int64_t> slack = slack_by_point();
  std::vector<bool> on_path(t.size(), false);
  for (uint32_t p = end; p != 0; p = from[p]) on_path[p] = true;
  std::map<std::pair<uint8_t, uint32_t>, Slack> sums;
  for (uint32_t p = 1; p < t.size(); ++p) {
    const int64_t length = t[p] - t[from[p]];
    const auto s = static_cast<uint8_t>(stage[p] & ~kFixed);
    if (length == 0 || s == static_cast<uint8_t>(Stage::Wait)) continue;  // what did not happen
    Slack& sum = sums.try_emplace({s, who[p]}, Slack{s, who[p]}).first->second;
    if (on_path[p]) {
      sum.on_path += length;
      continue;
    }
    sum.beside += length;
    ++sum.parts;
    if (slack[p] >= 0 && (sum.least < 0 || slack[p] < sum.least)) sum.least = slack[p];
  }
  std::vector<Slack> out;
  out.reserve(sums.size());
  for (const auto& [key, sum] : sums) out.push_back(sum);
  return out;
}

std::vector<double> PathGraph::delays(const std::vector<double>& changes) const {
  if (changes.size() != numbers.size()) throw std::invalid_argument("a change is needed of each number of the critical path");
  std::vector<double> by_bill(bill_begin.size() - 1, 0.0);
  for (size_t b = 0; b < by_bill.size(); ++b)
    for (uint32_t i = bill_begin[b]; i < bill_begin[b + 1]; ++i) by_bill[b] += term_times[i] * changes[term_number[i]] * kPsPerSecond;
  return by_bill;
}

double PathGraph::slope(const std::vector<double>& changes) const {
  // The chain alone: of two that came at one instant, the one that the run went on with. The work that was done before an interruption counts too,
  // so this is the sum over all points that the end depends on by delays, each as often as it does.
  const std::vector<double> by_bill = delays(changes);
  std::vector<double> shift(t.size(), 0.0);
  size_t r = 0;
  for (uint32_t p = 1; p < t.size(); ++p) {
    shift[p] = ((stage[p] & kFixed) != 0 ? 0.0 : shift[from[p]]) + by_bill[bill[p]];
    if (r < resumed.size() && resumed[r] == p) {
      shift[p] += shift[resumed[r + 1]] - shift[resumed[r + 2]];
      r += 3;
    }
  }
  return shift[end];
}

PathGraph::Changed PathGraph::shifted(const std::vector<double>& by_bill, double part, std::vector<double>& shift) const {
  size_t j = 0, r = 0;
  for (uint32_t p = 1; p < t.size(); ++p) {
    double s = ((stage[p] & kFixed) != 0 ? 0.0 : shift[from[p]]) + part * by_bill[bill[p]];
    if (r < resumed.size() && resumed[r] == p) {
      s += shift[resumed[r + 1]] - shift[resumed[r + 2]];
      r += 3;
    }
    if (j < joins.size() && joins[j] == p) {
      const uint32_t other = joins[j + 1];
      s = std::max(s, static_cast<double>(t[other] - t[p]) + shift[other]);
      j += 2;
    }
    shift[p] = s;
  }
  bool in_order = true;
  for (size_t i = 0; in_order && i < orders.size(); i += 2) {
    const uint32_t a = orders[i], b = orders[i + 1];
    in_order = static_cast<double>(t[b] - t[a]) + shift[b] - shift[a] > -kOrdered;
  }
  return {shift[end], in_order};
}

PathGraph::Changed PathGraph::changed(const std::vector<double>& changes) const {
  std::vector<double> shift(t.size(), 0.0);
  return shifted(delays(changes), 1, shift);
}

double PathGraph::reach(const std::vector<double>& changes, double agree, double rounding) const {
  const std::vector<double> by_bill = delays(changes);
  const double whole = slope(changes);
  std::vector<double> shift(t.size(), 0.0);
  auto holds = [&](double part) {
    const Changed c = shifted(by_bill, part, shift);
    return c.in_order && std::abs(c.ps - part * whole) <= agree * std::abs(part * whole) + rounding;
  };
  // A change of order is not always one for all larger changes: from the smallest on, to the first that does not hold.
  constexpr double kSmallest = 0x1p-40;
  double good = 0, bad = kSmallest;
  while (holds(bad)) {
    good = bad;
    if (bad >= 1) return 1;
    bad = std::min(1.0, bad * 1.5);
  }
  if (good == 0) return 0;
  for (int i = 0; i < 20; ++i) {
    const double middle = (good + bad) / 2;
    (holds(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace retrompi
