#include "diagnosis/run_view.hpp"

namespace retrompi {

bool is_collective_call(const Action& a) {
  if (a.op == Op::CommNew) {
    const CommHow how = a.get<action::NewComm>().how;
    return how != CommHow::CreateGroup && how != CommHow::IntercommCreate;
  }
  return is(a.op, Trait::Joint) && a.op != Op::CommFree;
}

RunView::RunView(const World& w, const Job& j, const std::vector<const Chan*>& channels) : world(w), job(j), trace(j.trace) {
  for (const Rank* r : job.ranks) rank_of_[r] = r;
  to_.resize(job.ranks.size());
  from_.resize(job.ranks.size());
  for (const Message& m : job.messages())
    if (!(m.delivered && m.send_complete) && m.line > 0) {
      to_[static_cast<size_t>(m.dst)].emplace_back(m);
      from_[static_cast<size_t>(m.src)].emplace_back(m);
    }
  for (const Chan* c : channels)
    if (c->full()) {  // of several, always choose the same: the table of channels is unordered
      const Chan*& kept = full[&c->from];
      if (!kept || c->to.thread.log() < kept->to.thread.log()) kept = c;
    }
}

const Rank* RunView::as_rank(const Proc* p) const {
  const auto it = rank_of_.find(p);
  return it == rank_of_.end() ? nullptr : it->second;
}

std::string RunView::describe(const Message& m) const {
  std::string s = "rank " + std::to_string(m.src) + " to rank " + std::to_string(m.dst) + ", ";
  s += of_library(m.ctx) ? "of a collective" : tag_name(m.tag);
  return s + ", " + std::to_string(m.bytes) + " B, sent at " + place(rank(m.src), m.line);
}

void RunView::add_tag(Row& row, const Message& m) const {
  row.push_back({"tag", int64_t{m.tag}});
  row.push_back({"comm", comm_id(m.ctx)});
  row.push_back({"collective", of_library(m.ctx)});
}

int64_t RunView::comm_id(int32_t ctx) const {
  const auto i = static_cast<size_t>(comm_of(ctx));
  return i < trace.comms.size() ? trace.comms[i].id : 0;
}

std::vector<int32_t> RunView::members(int32_t comm) const {
  const auto i = static_cast<size_t>(comm);
  if (comm > 0 && i < trace.comms.size()) {
    std::vector<int32_t> all = trace.comms[i].group;
    all.insert(all.end(), trace.comms[i].remote.begin(), trace.comms[i].remote.end());
    return all;
  }
  std::vector<int32_t> all(job.ranks.size());
  for (size_t r = 0; r < all.size(); ++r) all[r] = static_cast<int32_t>(r);
  return all;
}

std::string RunView::fate(const Proc& p) const {
  const Rank* r = as_rank(&p);
  if (p.thread.dead()) return "was killed";
  if (r && r->finished) return "has finished";
  if (r && r->now_at) return "is at " + place(*r, r->now_at->line) + " in " + op_name(r->now_at->op);
  return "waits for nobody";
}

std::vector<const Rank*> RunView::absent(const Rank& r) {
  const int32_t comm = r.now_at->comm;
  const size_t mine = count(r, comm);
  std::vector<const Rank*> out;
  for (const int32_t m : members(comm))
    if (count(rank(m), comm) < mine) out.push_back(&rank(m));
  return out;
}

size_t RunView::count(const Rank& r, int32_t comm) {
  const auto [it, fresh] = begun_.try_emplace({r.id, comm});
  if (!fresh) return it->second;
  for (const Action& a : trace.ranks[static_cast<size_t>(r.id)]) {
    it->second += is_collective_call(a) && a.comm == comm;
    if (r.now_at && a.line == r.now_at->line) break;
  }
  return it->second;
}

}  // namespace retrompi
