// A platform file of SimGrid (XML), read by SimGrid itself: its hosts, and the links between them as its routing finds them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "generated/specs.hpp"

namespace retrompi {

struct FileHost {
  std::string name;
  double speed;  // flop/s of a core
  int cores;
};
struct FileLink {
  std::string name;
  double bandwidth, latency;  // B/s, s
};
struct PlatformFile {
  std::vector<FileHost> hosts;
  std::vector<FileLink> links;  // those from the first host to all others and back
};
/// Throws ConfigError for a file that SimGrid refuses; some mistakes end the process instead, with SimGrid's reason on standard error.
PlatformFile read_platform_file(const std::string& path);

/// Links by number, and the ways between hosts by their places.
struct FileRoutes {
  std::vector<double> bandwidth, latency;  // B/s, s
  std::map<std::pair<size_t, size_t>, std::vector<uint32_t>> ways;
};
/// The routes between hosts of `link.file` (its path, then the names of the hosts) at these places. Throws ConfigError as above, and for what only
/// SimGrid can carry: links that change over time, that are not shared, or whose rate depends on who sends.
FileRoutes platform_file_routes(const LinkSpec& link, const std::vector<size_t>& places);

}  // namespace retrompi
