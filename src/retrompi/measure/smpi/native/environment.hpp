// The environment a program runs in: the file that `retrompi smpi export` writes (docs/smpi.md has its grammar).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "channel/curve_law.hpp"
#include "coll/coll.hpp"
#include "host/host_spec.hpp"

namespace retrompi::online {

/// Costs between pairs of ranks of one host, or of two.
struct PairKind {
  Ps connect = 0;
  struct Range {
    int64_t from = 0, to = 0;
    bool asks = false;  // rendezvous: the receiver is asked first
  };
  std::vector<Range> protocol;
  std::vector<CurveTable> curves;
  std::map<std::pair<int, int>, int> of;  // (sender class, receiver class) -> curve
  /// A one-sided put: the time it costs its origin, and when all of it has arrived, both from its start.
  CurveTable put;
};

struct Environment {
  std::string model, platform;
  std::vector<HostSpec> hosts;
  struct Place {
    int host = 0, kind = 0;
  };
  std::vector<Place> ranks;
  PairKind same, remote;
  bool rank_ports = false;
  CallCost test;  // one that finds nothing
  int64_t unexpected_limit = 0;
  coll::Table collectives;
  std::vector<std::pair<std::string, std::string>> settings;  // SimGrid's
  [[nodiscard]] bool together(int a, int b) const { return ranks[static_cast<size_t>(a)].host == ranks[static_cast<size_t>(b)].host; }
  [[nodiscard]] const PairKind& pair(int a, int b) const { return together(a, b) ? same : remote; }
  [[nodiscard]] const HostSpec& host_of(int rank) const { return hosts[static_cast<size_t>(ranks[static_cast<size_t>(rank)].host)]; }
  [[nodiscard]] bool asks(int from, int to, int64_t bytes) const;
};

/// The environment of this process, read from $RETROMPI_SMPI_EXPORT on first use. Ends the program with one line when it cannot be read.
Environment& environment();

[[noreturn]] void refuse(const std::string& why);

}  // namespace retrompi::online
