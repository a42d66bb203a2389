// What a program is to run in: the file that `retrompi smpi export` writes (docs/smpi.md has its grammar).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "channel/curve_law.hpp"
#include "host/host_spec.hpp"
#include "mpi/coll.hpp"

namespace retrompi::online {

/// What holds for pairs of ranks of one host, or of two.
struct PairKind {
  Ps connect = 0;
  struct Range {
    int64_t from = 0, to = 0;
    bool asks = false;  // the receiver first
  };
  std::vector<Range> protocol;
  std::vector<CurveTable> curves;
  std::map<std::pair<int, int>, int> of;  // classes of sender and receiver -> curve
  /// A one-sided put: what it costs its origin, and when all of it has arrived, both from its begin.
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
  Ps test = 0;  // a call that only looks, on the reference host
  int64_t unexpected_limit = 0;
  coll::Table collectives;
  std::vector<std::pair<std::string, std::string>> settings;  // of SimGrid
  [[nodiscard]] bool together(int a, int b) const { return ranks[static_cast<size_t>(a)].host == ranks[static_cast<size_t>(b)].host; }
  [[nodiscard]] const PairKind& pair(int a, int b) const { return together(a, b) ? same : remote; }
  [[nodiscard]] const HostSpec& host_of(int rank) const { return hosts[static_cast<size_t>(ranks[static_cast<size_t>(rank)].host)]; }
  [[nodiscard]] bool asks(int from, int to, int64_t bytes) const;
};

/// Of this process, read when it is first asked for from $RETROMPI_SMPI_EXPORT. Ends the program with one line when it cannot be read.
Environment& environment();

[[noreturn]] void refuse(const std::string& why);

}  // namespace retrompi::online
