#include "record/critical_path.hpp"

#include <algorithm>
#include <string_view>

namespace retrompi {

std::vector<CriticalPath::Piece> CriticalPath::to(Point end) const {
  std::vector<Piece> pieces;
  for (Point p = end; p != 0; p = points_[p].from) {
    const At& at = points_[p];
    const Ps begin = points_[at.from].t;
    if (begin == at.t) continue;  // states terms only
    if (!pieces.empty() && pieces.back().s == at.s && pieces.back().who == at.who)
      pieces.back().begin = begin;
    else
      pieces.push_back({begin, at.t, at.s, at.who});
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

CriticalPath::Bill CriticalPath::bill(std::initializer_list<Term> terms) {
  const auto [it, fresh] = known_bills_.emplace(std::vector<Term>(terms), static_cast<Bill>(bills_.size()));
  if (fresh) bills_.push_back(it->first);
  return it->second;
}

std::vector<CriticalPath::Term> CriticalPath::terms(Point end) const {
  std::map<Bill, int64_t> times;
  for (Point p = end; p != 0; p = points_[p].from) ++times[points_[p].bill];
  std::map<std::pair<const void*, std::string_view>, Term> sums;
  for (const auto& [bill, n] : times)
    for (const Term& t : bills_[bill]) {
      Term& sum = sums.try_emplace({t.owner, t.field}, Term{t.owner, t.field, 0}).first->second;
      sum.times += static_cast<double>(n) * t.times;
    }
  std::vector<Term> out;
  for (const auto& [key, sum] : sums) out.push_back(sum);
  return out;
}

}  // namespace retrompi
