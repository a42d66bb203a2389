// The curves of a job below the mechanism level of detail.
#pragma once
#include "channel/curve_law.hpp"

namespace retrompi {

/// The curves between the ranks of one job: the classes of the two ranks determine which one a pair follows.
struct CurveSet {
  std::vector<size_t> classes;           // rank -> class
  std::vector<std::vector<int32_t>> of;  // class of the sender, class of the receiver -> table, -1: none
  std::vector<CurveTable> tables;
  bool rank_ports = false;  // a port for every rank (LogGP's processors); else one for every host
};

}  // namespace retrompi
