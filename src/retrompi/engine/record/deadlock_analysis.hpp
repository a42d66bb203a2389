// Why a run did not complete: the wait-for graph of its processes, its cycles, and the messages and receives that did not meet.
#pragma once
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "record/diagnosis.hpp"

namespace retrompi {

constexpr size_t kRows = 20;          // of a table
constexpr size_t kShown = 8;          // of a cycle on one line
constexpr size_t kUnreceived = 50;    // messages
constexpr size_t kAlternatives = 64;  // of a receive from any source that are followed

/// Over all of its communicator.
inline bool is_collective(const Action& a) {
  if (a.op == Op::CommNew) {
    const CommHow how = a.get<action::NewComm>().how;
    return how != CommHow::CreateGroup && how != CommHow::IntercommCreate;
  }
  return (a.op >= Op::Barrier && a.op <= Op::NeighborAlltoallw) || a.op == Op::WinNew || a.op == Op::WinFree;
}
/// Sent by the library for a collective or a window, not by the program.
inline bool of_library(int32_t ctx) { return ctx < 0 || ctx % 2 != 0; }
inline int32_t comm_of(int32_t ctx) { return ctx < 0 ? 0 : ctx / 2; }
inline std::string tag_name(int32_t t) { return t == ANY_TAG ? "any tag" : "tag " + std::to_string(t); }
inline std::string seconds(Ps t) {
  char s[32];
  std::snprintf(s, sizeof s, "%.6g s", to_s(t));
  return s;
}

/// Who waits for whom in a run that did not complete: looks into its ranks, processes and channels.
class DeadlockAnalysis {
 public:
  DeadlockAnalysis(const World& w, const Job& job, const std::vector<const Chan*>& chans) : w_(w), job_(job), t_(job.trace), chans_(chans) {
    for (const Rank* r : job.ranks) rank_of_[r] = r;
    to_.resize(job.ranks.size());
    from_.resize(job.ranks.size());
    for (const Message& m : job_.messages_)
      if (!(m.delivered && m.settled) && m.line > 0) {
        to_[static_cast<size_t>(m.dst)].emplace_back(m);
        from_[static_cast<size_t>(m.src)].emplace_back(m);
      }
    for (const Chan* c : chans)
      if (c->full()) {  // of several, always the same: the table of channels has no order of its own
        const Chan*& kept = full_[&c->from];
        if (!kept || c->to.thread.log() < kept->to.thread.log()) kept = c;
      }
  }

  Diagnosis stuck();
  void fill(Diagnosis& d, const Resource& r);
  [[nodiscard]] Resource unexpected(const Rank& r) const;

 private:
  using Messages = std::vector<std::reference_wrapper<const Message>>;
  struct Edge {
    const Proc* to;
    std::string what;
  };
  struct Wait {
    bool any = false;  // one of the edges would be enough
    size_t of = 0;     // how many there are, where not all are kept
    std::vector<Edge> edges;
    std::string what;  // when it is the same for all edges
  };

  [[nodiscard]] const Rank* as_rank(const Proc* p) const;
  [[nodiscard]] const Rank& rank(int32_t r) const { return *job_.ranks[static_cast<size_t>(r)]; }
  [[nodiscard]] std::string place(const Rank& r, uint32_t line) const { return t_.files[static_cast<size_t>(r.id)] + ":" + std::to_string(line); }
  [[nodiscard]] std::string describe(const Message& m) const;
  void add_tag(Row& row, const Message& m) const;
  [[nodiscard]] int64_t comm_id(int32_t ctx) const;
  [[nodiscard]] std::vector<int32_t> members(int32_t comm) const;
  [[nodiscard]] static bool gone(const Proc& p, const Rank* r) { return p.thread.dead() || (r && r->finished); }

  // ---- who waits for whom (wait_graph.cpp)

  Wait wait_of(const Proc& p);
  void of_rank(const Rank& r, Wait& w);
  void in_collective(const Rank& r, const Awaited& x, Wait& w);
  void taken(const Rank& r, const Awaited& x, const char* how, Wait& w);
  void receive(const Rank& r, int32_t peer, int32_t tag, int32_t ctx, const char* how, Wait& w);
  /// A message that has been sent and is not all there: whoever holds it up on its way, else its sender.
  void arriving(const Message& m, const char* how, Wait& w);
  void send(const Message& m, const char* how, Wait& w);
  /// The first process between two ranks that is dead or has no room.
  [[nodiscard]] const Proc* obstacle(int32_t src, int32_t dst) const;
  [[nodiscard]] const Messages& to(int32_t r) const { return to_[static_cast<size_t>(r)]; }
  [[nodiscard]] const Messages& from(int32_t r) const { return from_[static_cast<size_t>(r)]; }

  // ---- cycles (wait_graph.cpp)

  using Path = std::vector<std::pair<const Proc*, const Edge*>>;

  /// A cycle of edges, by depth-first search from every process in turn; without `alternatives` through necessary edges only.
  [[nodiscard]] Path search(bool alternatives) const;
  void cycle(Diagnosis& d) const;
  /// Without a cycle all waiting ends at somebody who does not wait: the one behind whom most others wait, and a chain to him.
  [[nodiscard]] Path chain(const Proc*& last) const;
  [[nodiscard]] std::string doing(const Proc& p, const Edge& e) const;
  [[nodiscard]] static size_t alternatives(const Wait& w) { return w.any ? std::max(w.of, w.edges.size()) : 1; }
  [[nodiscard]] std::string node(const Proc& p, const Edge& e) const { return p.thread.name() + " (" + doing(p, e) + ")"; }
  [[nodiscard]] Row row(const Proc& p, const Edge& e) const;
  [[nodiscard]] std::string fate(const Proc& p) const;

  // ---- collectives (deadlock_tables.cpp)

  /// Who has not come to the collective in which `r` waits.
  [[nodiscard]] std::vector<const Rank*> absent(const Rank& r);
  /// How many collectives of a communicator a rank has begun. A trace in which they differ in kind is refused when it is read.
  size_t count(const Rank& r, int32_t comm);
  void collectives(Diagnosis& d);

  // ---- messages and receives that do not meet (deadlock_tables.cpp)

  void near_misses(Diagnosis& d) const;
  void lost(Diagnosis& d) const;
  void unreceived(Diagnosis& d) const;

  const World& w_;
  const Job& job_;
  const Trace& t_;
  const std::vector<const Chan*>& chans_;
  std::map<const Proc*, const Rank*> rank_of_;
  std::map<const Proc*, const Chan*> full_;  // who waits for room, and where
  std::map<const Proc*, Wait> waits_;
  std::vector<Messages> to_, from_;                      // by rank: neither delivered nor forgotten by the sender
  std::map<std::pair<int32_t, int32_t>, size_t> begun_;  // rank, communicator -> collectives
};

}  // namespace retrompi
