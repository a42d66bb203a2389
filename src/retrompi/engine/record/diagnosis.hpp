// Why a run did not complete: who waits for whom and in which cycle, what was nearly right, and what filled a resource.
#pragma once
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mpi/rank.hpp"

namespace retrompi {

/// A row of a table, in the order of its columns.
using Row = std::vector<std::pair<const char*, std::variant<int64_t, double, bool, std::string>>>;

struct Diagnosis {
  std::string summary;            // one line; empty when there is nothing to say beyond the outcome
  std::vector<std::string> told;  // further lines
  std::vector<Row> cycle;         // the processes of a wait-for cycle, or the longest chain to whom everybody waits for
  bool closed = false;            // the former
  std::vector<Row> collectives;   // who has not come to a collective in which others wait, or is in another one
  std::vector<Row> near_misses;   // messages that almost fit a receive, receives that almost fit a message
  std::vector<Row> unreceived;    // messages sent and not received, oldest first
  int64_t unreceived_total = 0;
  std::string resource;          // that had no room
  std::vector<Row> held, pairs;  // the messages that fill it, largest first; the same by source and destination
  int64_t held_total = 0;
};

/// `end`: how it ended, if by an Abort. Called while the world still stands.
Diagnosis diagnose(const World& world, const Job& job, const std::vector<const Chan*>& chans, const Abort* end);

}  // namespace retrompi
