#include "record/critical_path.hpp"

#include <algorithm>

namespace retrompi {

std::vector<CriticalPath::Piece> CriticalPath::to(Point end) const {
  std::vector<Piece> pieces;
  for (Point p = end; p != 0; p = points_[p].from) {
    const At& at = points_[p];
    const Ps begin = points_[at.from].t;
    if (!pieces.empty() && pieces.back().s == at.s && pieces.back().who == at.who)
      pieces.back().begin = begin;
    else
      pieces.push_back({begin, at.t, at.s, at.who});
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace retrompi
