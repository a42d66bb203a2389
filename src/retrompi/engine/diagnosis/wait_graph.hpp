// The wait-for graph of a run that has ended, and the cycle or chain in which all waiting ends.
#pragma once
#include "diagnosis/run_view.hpp"

namespace retrompi {

class WaitGraph {
 public:
  struct Edge {
    const Proc* to;
    std::string what;
  };
  struct Wait {
    bool any = false;  // one of the edges suffices (OR)
    size_t of = 0;     // number of alternatives, if not all are kept
    std::vector<Edge> edges;
    std::string what;  // when it is the same for all edges
  };

  explicit WaitGraph(RunView& view);
  /// The cycle of the graph, or the longest chain, in a sentence and a table.
  void describe_cycle(Diagnosis& d) const;
  [[nodiscard]] bool waits(const Proc* p) const { return waits_.contains(p); }

 private:
  using Path = std::vector<std::pair<const Proc*, const Edge*>>;
  Wait wait_of(const Proc& p);

  void of_rank(const Rank& r, Wait& w);

  void in_collective(const Rank& r, const Awaited& x, Wait& w);
  void taken(const Rank& r, const Awaited& x, const char* how, Wait& w);
  void receive(const Rank& r, int32_t peer, int32_t tag, int32_t ctx, const char* how, Wait& w);
  /// A message that has been sent but not fully received: the process that blocks it on its path, otherwise its sender.
  void arriving(const Message& m, const char* how, Wait& w);
  void send(const Message& m, const char* how, Wait& w);
  /// The first process between two ranks that is dead or out of buffer space.
  [[nodiscard]] const Proc* obstacle(int32_t src, int32_t dst) const;
  /// A cycle of edges, by depth-first search from every process in turn; without `alternatives` through necessary edges only.
  [[nodiscard]] Path search(bool alternatives) const;

  /// Without a cycle all waiting ends at a process that does not wait: finds the one that most others wait for, and a chain to it.
  [[nodiscard]] Path chain(const Proc*& last) const;
  [[nodiscard]] std::string doing(const Proc& p, const Edge& e) const;
  [[nodiscard]] static size_t alternatives(const Wait& w) { return w.any ? std::max(w.of, w.edges.size()) : 1; }
  [[nodiscard]] std::string node(const Proc& p, const Edge& e) const { return p.thread.name() + " (" + doing(p, e) + ")"; }
  [[nodiscard]] Row row(const Proc& p, const Edge& e) const;

  RunView& v_;
  std::map<const Proc*, Wait> waits_;
};

}  // namespace retrompi
