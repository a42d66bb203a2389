// Why a run did not complete: the wait-for graph and its cycle, near-matches of messages and receives, and the occupants of a full resource.
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
  std::string summary;            // one line; empty if there is nothing to add to the outcome
  std::vector<std::string> told;  // further lines
  std::vector<Row> cycle;         // the processes of a wait-for cycle, or of the longest chain to the process that all wait for
  bool closed = false;            // it is a cycle
  std::vector<Row> collectives;   // ranks that have not reached a collective in which others wait, or are in another one
  std::vector<Row> near_misses;   // messages that almost match a receive and vice versa
  std::vector<Row> unreceived;    // messages sent and not received, oldest first
  int64_t unreceived_total = 0;
  std::string resource;          // the resource that was full
  std::vector<Row> held, pairs;  // the messages that fill it, largest first; the same by source and destination
  int64_t held_total = 0;
};

/// `end`: how it ended, if by an Abort. Called while the World still exists.
Diagnosis diagnose(const World& world, const Job& job, const std::vector<const Chan*>& chans, const Abort* end);

}  // namespace retrompi
