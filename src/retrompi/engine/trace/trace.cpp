// Operations on a parsed trace: comparing and adding marks. image.cpp transfers it to a worker, write_ti.cpp writes it as text.
#include "trace/trace.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "trace/words.hpp"

namespace retrompi {
namespace {

std::string place(const std::string &file, size_t line) { return line == 0 ? file : file + ":" + std::to_string(line); }

}  // namespace

TraceError::TraceError(std::string file_, size_t line_, std::string message_)
    : std::runtime_error(place(file_, line_) + ": " + message_), file(std::move(file_)), line(line_), message(std::move(message_)) {}

size_t Trace::actions() const {
  size_t n = 0;
  for (const auto &r : ranks) n += static_cast<size_t>(std::count_if(r.begin(), r.end(), [](const Action &a) { return a.op != Op::Mark; }));
  return n;
}

int64_t Trace::bytes_sent() const {
  int64_t sum = 0;
  for (const auto &r : ranks)
    for (const Action &a : r)
      if (const std::optional<Transfer> sent = sent_by(a); sent && sent->peer != PROC_NULL)
        if (__builtin_add_overflow(sum, sent->bytes, &sum)) return std::numeric_limits<int64_t>::max();
  return sum;
}

std::string Trace::where(size_t rank, const Action &a) const { return place(files[rank], a.line); }

Trace Trace::with_marks(std::vector<MarkAt> marks) const {
  Trace out = *this;
  std::stable_sort(marks.begin(), marks.end(), [](const MarkAt &x, const MarkAt &y) {
    return std::pair{x.rank, x.line} < std::pair{y.rank, y.line};
  });
  for (size_t m = 0; m < marks.size();) {
    const size_t rank = marks[m].rank;
    if (rank >= ranks.size())
      throw TraceError(files.empty() ? "trace" : files[0], 0,
                       "a mark for rank " + std::to_string(rank) + ": ranks are 0.." + std::to_string(ranks.size() - 1));
    ActionList merged(static_cast<int32_t>(rank));
    auto next = ranks[rank].begin();
    for (; m < marks.size() && marks[m].rank == rank; ++m) {
      const std::string &label = marks[m].label;
      if (label.empty() || label.front() == ' ' || label.back() == ' ' || !is_text(label))
        throw TraceError(files[rank], marks[m].line, "the label of a mark, " + quoted(label) + ", must be printable UTF-8 without blanks around it");
      for (; next != ranks[rank].end() && next->line < marks[m].line; ++next) merged.push_back(*next);
      const auto found = std::find(out.labels.begin(), out.labels.end(), label);
      Action a(Op::Mark, marks[m].line);
      a.get<action::Mark>().label = static_cast<int32_t>(found - out.labels.begin());
      if (found == out.labels.end()) out.labels.push_back(label);
      merged.push_back(a);
    }
    for (; next != ranks[rank].end(); ++next) merged.push_back(*next);
    merged.seal();
    out.ranks[rank] = std::move(merged);
  }
  return out;
}

Trace Trace::with_outcomes(const std::vector<Match> &matches, const std::vector<Completion> &completions) const {
  Trace out = *this;
  std::map<std::pair<size_t, uint32_t>, const Match *> match_at;
  std::map<std::pair<size_t, uint32_t>, const Completion *> completion_at;
  for (const Match &m : matches) match_at[{m.rank, m.line}] = &m;
  for (const Completion &c : completions) completion_at[{c.rank, c.line}] = &c;
  auto take = [](auto &x, int32_t &source, int32_t &tag, const Match *m, uint8_t &flags) {
    const bool wild = source == ANY_SOURCE || tag == ANY_TAG;
    if (wild) flags = static_cast<uint8_t>(m ? flags | FLAG_MATCHED : flags & ~FLAG_MATCHED);
    x.matched = wild && m ? action::Envelope{m->source, m->tag} : action::Envelope{};
    if (wild || !m) return;
    source = m->source;  // a receive that follows what a probe found
    tag = m->tag;
  };
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ActionList made;
    for (const Action &was : ranks[rank]) {
      Action a = was;
      const auto m = match_at.find({rank, a.line});
      const Match *match = m == match_at.end() || a.op == Op::Mark ? nullptr : m->second;
      const bool receives = a.op == Op::Recv || a.op == Op::Irecv || a.op == Op::Probe || a.op == Op::Iprobe;
      if (receives) {
        auto &x = a.get<action::PointToPoint>();
        take(x, x.peer, x.tag, match, a.flags);
      } else if (a.op == Op::Sendrecv) {
        auto &x = a.get<action::SendReceive>();
        take(x, x.source, x.receive_tag, match, a.flags);
      } else if (a.op == Op::Start && match) {
        a.flags |= FLAG_MATCHED;
        a.get<action::OneRequest>().matched = {match->source, match->tag};
      } else if (match) {
        throw TraceError(files[rank], a.line, std::string(op_name(a.op)) + " receives nothing whose source can be chosen");
      }
      if (match) match_at.erase(m);
      const auto c = completion_at.find({rank, a.line});
      if (c != completion_at.end() && a.op != Op::Mark) {
        const Completion &given = *c->second;
        const bool several = a.op == Op::Waitany || a.op == Op::Waitsome || a.op == Op::Testany || a.op == Op::Testsome;
        if (several && a.get<action::SeveralRequests>().list >= 0) {
          auto &x = a.get<action::SeveralRequests>();
          const auto &had = vec[static_cast<size_t>(x.list)];
          std::vector<int64_t> now(had.begin(), had.begin() + x.count);
          now.insert(now.end(), given.which.begin(), given.which.end());
          x.list = static_cast<int32_t>(out.vec.size());
          x.completed = static_cast<int64_t>(given.which.size());
          out.vec.push_back(std::move(now));
        } else if (several || (a.op != Op::Test && a.op != Op::Testall && a.op != Op::Iprobe)) {
          throw TraceError(files[rank], a.line, std::string(op_name(a.op)) + " has no outcome that can be chosen");
        }
        a.flags = static_cast<uint8_t>((a.flags & ~FLAG_DONE) | FLAG_TOLD | (given.done ? FLAG_DONE : 0));
        completion_at.erase(c);
      }
      made.push_back(a);
    }
    made.seal();
    out.ranks[rank] = std::move(made);
  }
  auto missing = [this](size_t rank, uint32_t line) {
    if (rank >= ranks.size()) throw TraceError(files.empty() ? "trace" : files[0], 0, "there is no rank " + std::to_string(rank));
    throw TraceError(files[rank], line, "rank " + std::to_string(rank) + " makes no call on this line");
  };
  if (!match_at.empty()) missing(match_at.begin()->first.first, match_at.begin()->first.second);
  if (!completion_at.empty()) missing(completion_at.begin()->first.first, completion_at.begin()->first.second);
  return out;
}

std::vector<double> Trace::section_compute(uint32_t first, uint32_t last) const {
  const auto collective = [](const Action &a) { return is_collective(a.op) && a.comm == 0; };  // those that all ranks call
  size_t before = 0, within = 0;
  std::vector<double> sums(ranks.size(), 0.0);
  if (ranks.empty()) return sums;
  for (const Action &a : ranks[0]) {
    if (a.line > last) break;
    if (collective(a)) ++(a.line < first ? before : within);
    if (a.line >= first && a.op == Op::Compute) sums[0] += a.get<action::Compute>().flops;
  }
  for (size_t r = 1; r < ranks.size(); ++r) {
    size_t seen = 0;
    for (const Action &a : ranks[r]) {
      if (collective(a) && ++seen > before + within) break;
      if (seen >= before && a.op == Op::Compute) sums[r] += a.get<action::Compute>().flops;
    }
  }
  return sums;
}

bool Trace::operator==(const Trace &other) const {
  if (ranks.size() != other.ranks.size() || comms.size() != other.comms.size()) return false;
  // The storage order of communicators, labels and vectors is not part of a trace's content.
  const auto by_id = [](const std::vector<Comm> &list) {
    std::vector<const Comm *> sorted;
    for (const Comm &c : list) sorted.push_back(&c);
    std::sort(sorted.begin(), sorted.end(), [](const Comm *x, const Comm *y) { return x->id < y->id; });
    return sorted;
  };
  const auto own = by_id(comms), others = by_id(other.comms);
  if (!std::equal(own.begin(), own.end(), others.begin(), others.end(), [](const Comm *x, const Comm *y) { return *x == *y; })) return false;
  const auto id = [](const Trace &t, int32_t index) { return index < 0 ? index : t.comms[static_cast<size_t>(index)].id; };
  const auto same = [&](const Action &x, const Action &y) {
    if (x.op != y.op || x.flags != y.flags || x.request != y.request || id(*this, x.comm) != id(other, y.comm)) return false;
    const auto same_label = [&](int32_t a, int32_t b) { return labels[static_cast<size_t>(a)] == other.labels[static_cast<size_t>(b)]; };
    const auto same_vector = [&](int32_t a, int32_t b) {
      return (a < 0) == (b < 0) && (a < 0 || vec[static_cast<size_t>(a)] == other.vec[static_cast<size_t>(b)]);
    };
    return x.visit([&]<class T>(const T &mine) {
      T theirs = y.get<T>();
      if constexpr (std::is_same_v<T, action::Mark> || std::is_same_v<T, action::Kernel>) {
        if (!same_label(mine.label, theirs.label)) return false;
        theirs.label = mine.label;
      } else if constexpr (std::is_same_v<T, action::NewComm>) {
        if (id(*this, mine.made) != id(other, theirs.made)) return false;
        theirs.made = mine.made;
      } else if constexpr (std::is_same_v<T, action::Collective>) {
        if (!same_vector(mine.counts, theirs.counts)) return false;
        theirs.counts = mine.counts;
      } else if constexpr (std::is_same_v<T, action::SeveralRequests>) {
        if (!same_vector(mine.list, theirs.list)) return false;
        theirs.list = mine.list;
      } else if constexpr (std::is_same_v<T, action::WindowSync>) {
        if (!same_vector(mine.ranks, theirs.ranks)) return false;
        theirs.ranks = mine.ranks;
      }
      return mine == theirs;
    });
  };
  for (size_t r = 0; r < ranks.size(); ++r)
    if (!std::equal(ranks[r].begin(), ranks[r].end(), other.ranks[r].begin(), other.ranks[r].end(), same)) return false;
  return true;
}

}  // namespace retrompi
