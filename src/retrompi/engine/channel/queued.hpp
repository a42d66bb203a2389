// The links of an entry of a matching queue (mpi/matching.hpp).
#pragma once
#include <cstdint>

namespace retrompi {

/// Links that a queue keeps in its members: neighbours in the whole queue and in the chain of their envelope.
template <class T>
struct Queued {
  T *before = nullptr, *after = nullptr;  // in the order in which they came
  T *chain_before = nullptr, *chain_after = nullptr;
  uint64_t order = 0;
};

}  // namespace retrompi
