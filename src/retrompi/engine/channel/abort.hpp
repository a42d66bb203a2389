// How a simulated run ends early.
#pragma once
#include <string>

namespace retrompi {

class Chan;
class Rank;
/// The simulated run ended badly (pool exhausted, retries used up): a result, not a defect.
struct Abort {
  std::string reason;
  const Chan* full = nullptr;      // the channel that was full
  const Rank* overflow = nullptr;  // the rank whose memory for unexpected messages was full
};

}  // namespace retrompi
