// What a job that completed has left undone: messages that nobody received, receives that nothing matched, requests that no call completed,
// windows and locks that are still open.
#pragma once
#include <string>
#include <vector>

#include "mpi/rank.hpp"

namespace retrompi {

/// One sentence for each kind, with how many there are and the first lines of the trace; empty after a program without such errors.
std::vector<std::string> leftovers(const World& world, const Job& job, const std::vector<const Chan*>& chans);

}  // namespace retrompi
