// The calls of all ranks, summed by call, size and section, like a profiler's output. Recording does not change the times of a run.
#pragma once
#include <unordered_map>
#include <vector>

#include "event/core.hpp"

namespace retrompi {

struct Action;
struct Trace;

class CallProfile {
 public:
  struct Key {
    const char* call;  // action_name: one pointer per name
    int64_t bytes;     // bytes sent, or received if it sends none; 0 for calls without data
    int32_t section;   // of MPI_Pcontrol, -1: outside
    bool operator==(const Key&) const = default;
  };
  struct Sum {
    int64_t count = 0;
    Ps time = 0;
  };

  CallProfile(const Trace& trace, size_t ranks);
  /// An action of a rank, or a mark, has ended.
  void ended(int32_t rank, const Action& a, Ps begin, Ps end);

  struct Hash {
    size_t operator()(const Key& k) const {
      return (reinterpret_cast<size_t>(k.call) >> 3) * 31 + static_cast<size_t>(k.bytes) * 0x9E3779B97F4A7C15u + static_cast<size_t>(k.section + 1);
    }
  };
  std::unordered_map<Key, Sum, Hash> rows;
  std::vector<Ps> finalized;  // rank -> when its MPI_Finalize began; -1: never

 private:
  std::vector<int32_t> level_;    // label -> level of MPI_Pcontrol; kNone for other marks
  std::vector<int32_t> section_;  // rank -> the open one
  std::vector<bool> alone_;       // communicator -> whether it has a single rank
};

}  // namespace retrompi
