#include "record/anatomy.hpp"

#include <algorithm>

#include "record/timeline.hpp"

namespace retrompi {

void Anatomy::keep(int thread, Ps begin, Ps end, Stage s, WaitFor why) {
  if (on) threads_[static_cast<size_t>(thread)].segs.push_back({begin, end, s, why});
  if (timeline) timeline->segment(thread, begin, end, state_of(s, why));
}

template <class F>
void Anatomy::walk(int thread, Ps begin, Ps end, F add) const {
  Cause cur{Cause::Thread, thread};
  Ps t = end;
  Ps last = end;
  int stuck = 0;  // causes at one instant can refer to each other; the walk must still go back in time
  while (t > begin) {
    stuck = t == last ? stuck + 1 : 0;
    last = t;
    if (cur.kind == Cause::Record) {
      const Rec& r = records_[static_cast<size_t>(cur.id)];
      add(r.s, cur, std::min(r.start, t), t);
      add(r.before, cur, std::min(r.asked, t), std::min(r.start, t));
      t = std::min(t, r.asked);
      cur = r.by;
      continue;
    }
    if (cur.kind == Cause::None) {  // no cause: started by the clock
      add(Stage::Tick, Cause{}, begin, t);
      break;
    }
    const ThreadLog& log = threads_[static_cast<size_t>(cur.id)];
    // The last interval that begins before t.
    auto it = std::lower_bound(log.segs.begin(), log.segs.end(), t, [](const Seg& s, Ps v) { return s.begin < v; });
    if (it == log.segs.begin()) {
      add(Stage::Library, cur, begin, t);
      break;
    }
    --it;
    if (it->end < t) {  // a gap of no recorded work: instructions that cost nothing in the model
      add(Stage::Library, cur, it->end, t);
      t = it->end;
      continue;
    }
    if (it->s != Stage::Wait) {
      add(it->s, cur, it->begin, t);
      t = it->begin;
      continue;
    }
    // Waiting: continue with the cause that ended the wait, from that moment.
    auto sg = std::upper_bound(log.signals.begin(), log.signals.end(), t, [](Ps v, const Signal& s) { return v < s.t; });
    if (stuck > 64 || sg == log.signals.begin() || (sg - 1)->t < it->begin || ((sg - 1)->by.kind == Cause::Thread && (sg - 1)->by.id == cur.id)) {
      add(Stage::Queueing, cur, it->begin, t);
      t = it->begin;
      continue;
    }
    --sg;
    add(Stage::Queueing, cur, sg->t, t);
    t = std::min(t, sg->t);
    cur = sg->by;
    if (cur.kind == Cause::None) {
      add(Stage::Tick, Cause{}, it->begin, t);
      t = it->begin;
      cur = {Cause::Thread, static_cast<int32_t>(&log - threads_.data())};
    }
  }
}

std::vector<Anatomy::Link> Anatomy::chain(int thread, Ps begin, Ps end) const {
  std::vector<Link> links;
  walk(thread, begin, end, [&](Stage s, const Cause& by, Ps from, Ps to) {
    from = std::max(from, begin);
    if (to > from) links.push_back({from, to, s, by});
  });
  std::reverse(links.begin(), links.end());
  return links;
}

std::vector<Anatomy::Row> Anatomy::split(int thread, Ps begin, Ps end) const {
  std::map<std::pair<std::string, std::string>, Ps> sum;
  std::vector<std::pair<std::string, std::string>> order;
  const std::vector<Link> links = chain(thread, begin, end);
  for (auto l = links.rbegin(); l != links.rend(); ++l) {
    const auto key = std::make_pair(std::string(stage_name(l->s)), name(l->by));
    if (!sum.contains(key)) order.push_back(key);
    sum[key] += l->end - l->begin;
  }
  std::vector<Row> rows;
  for (auto k = order.rbegin(); k != order.rend(); ++k) rows.push_back({k->first, k->second, sum[*k]});
  return rows;
}

}  // namespace retrompi
