#include "record/critical_path.hpp"

#include <algorithm>

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

CriticalPath::Bill CriticalPath::bill(std::initializer_list<Term> terms) { return bill(std::vector<Term>(terms)); }

CriticalPath::Bill CriticalPath::bill(std::vector<Term> terms) {
  std::erase_if(terms, [](const Term& t) { return t.times == 0; });
  if (terms.empty()) return 0;
  const auto [it, fresh] = known_bills_.emplace(std::move(terms), static_cast<Bill>(bills_.size()));
  if (fresh) bills_.push_back(it->first);
  return it->second;
}

CriticalPath::Bill CriticalPath::scaled(Bill of, double times) {
  if (of == 0 || times == 1) return of;
  std::vector<Term> terms = bills_[of];
  for (Term& t : terms) t.times *= times;
  return bill(std::move(terms));
}

CriticalPath::Bill CriticalPath::joined(Bill a, Bill b) {
  if (a == 0 || b == 0) return a == 0 ? b : a;
  std::vector<Term> terms = bills_[a];
  terms.insert(terms.end(), bills_[b].begin(), bills_[b].end());
  return bill(std::move(terms));
}

}  // namespace retrompi
