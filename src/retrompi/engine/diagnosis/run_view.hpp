// A run that has ended, as seen by its diagnosis: messages in flight, full channels, which ranks have begun which collective, and how all
// these are named in sentences and tables.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/diagnosis.hpp"
#include "mpi/rank.hpp"

namespace retrompi {

/// Whether the library sent it for a collective or a window, rather than the program.
inline bool of_library(int32_t ctx) { return ctx < 0 || ctx % 2 != 0; }
inline int32_t comm_of(int32_t ctx) { return ctx < 0 ? 0 : ctx / 2; }
inline std::string tag_name(int32_t t) { return t == ANY_TAG ? "any tag" : "tag " + std::to_string(t); }
/// Over all of its communicator.
bool is_collective_call(const Action& a);

class RunView {
 public:
  using Messages = std::vector<std::reference_wrapper<const Message>>;
  RunView(const World& w, const Job& job, const std::vector<const Chan*>& channels);

  [[nodiscard]] const Rank* as_rank(const Proc* p) const;
  [[nodiscard]] const Rank& rank(int32_t r) const { return *job.ranks[static_cast<size_t>(r)]; }
  [[nodiscard]] std::string place(const Rank& r, uint32_t line) const { return trace.files[static_cast<size_t>(r.id)] + ":" + std::to_string(line); }
  [[nodiscard]] std::string describe(const Message& m) const;
  void add_tag(Row& row, const Message& m) const;
  [[nodiscard]] int64_t comm_id(int32_t ctx) const;
  [[nodiscard]] std::vector<int32_t> members(int32_t comm) const;
  [[nodiscard]] static bool gone(const Proc& p, const Rank* r) { return p.thread.dead() || (r && r->finished); }

  [[nodiscard]] const std::vector<Messages>& messages() const { return to_; }  // in flight, by receiver
  [[nodiscard]] const Messages& to(int32_t r) const { return to_[static_cast<size_t>(r)]; }
  [[nodiscard]] const Messages& from(int32_t r) const { return from_[static_cast<size_t>(r)]; }

  [[nodiscard]] std::string fate(const Proc& p) const;
  /// The ranks that have not reached the collective in which `r` waits.
  [[nodiscard]] std::vector<const Rank*> absent(const Rank& r);
  /// How many collectives of a communicator a rank has begun. A trace in which they differ in kind is rejected by the parser.
  size_t count(const Rank& r, int32_t comm);

  const World& world;
  const Job& job;
  const Trace& trace;
  std::map<const Proc*, const Chan*> full;  // processes waiting for space, and the channel

 private:
  std::map<const Proc*, const Rank*> rank_of_;
  std::vector<Messages> to_, from_;                      // by rank: messages not delivered yet, or not released by the sender
  std::map<std::pair<int32_t, int32_t>, size_t> begun_;  // rank, communicator -> collectives
};

}  // namespace retrompi
