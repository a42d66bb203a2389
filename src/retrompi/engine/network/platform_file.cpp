#include "network/platform_file.hpp"

#include <array>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <unordered_map>

#include "network/simgrid_api.hpp"

namespace retrompi {

namespace sg = simgrid::s4u;
namespace api = simgrid_api;

namespace {

std::string leaf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

ConfigError only_simgrid(const LinkSpec& link, const std::string& why) {
  return ConfigError(leaf(link.file.front()) + ": " + why + "; --network simgrid carries it");
}

/// Attributes and tags by which a platform file makes something vary during a run.
constexpr std::array kVarying{"bandwidth_file", "latency_file", "state_file", "speed_file", "availability_file", "<trace", "trace_connect"};

void refuse_varying(const LinkSpec& link) {
  std::ifstream in(link.file.front());
  std::stringstream text;
  text << in.rdbuf();
  for (const std::string word : kVarying)
    if (text.str().find(word) != std::string::npos) throw only_simgrid(link, "it changes links or hosts over time ('" + word + "')");
}

/// The engine with the file; a platform has routes between its zones only when it is sealed, as it is when a simulation begins.
const sg::Engine& sealed(const std::string& path) {
  const sg::Engine& engine = api::loaded(path);
  engine.get_netzone_root()->seal();
  return engine;
}

struct Found {
  std::vector<sg::Link*> links;
  double latency = 0;  // s
};
Found route(const std::string& path, const sg::Host* from, const sg::Host* to) {
  Found found;
  std::string why;
  try {
    from->route_to(to, found.links, &found.latency);
  } catch (const std::exception& e) {
    why = std::string(": ") + e.what();
  }
  if (found.links.empty()) throw ConfigError(leaf(path) + ": no route from " + from->get_name() + " to " + to->get_name() + why);
  return found;
}

}  // namespace

PlatformFile read_platform_file(const std::string& path) {
  const auto hosts = sealed(path).get_all_hosts();
  PlatformFile found;
  std::set<std::string> seen;
  const sg::Host* first = hosts.empty() ? nullptr : hosts.front();
  for (const sg::Host* h : hosts) {
    found.hosts.push_back({h->get_name(), h->get_speed(), h->get_core_count()});
    // SimGrid 4.1 lists no links of clusters, so that they are taken from routes.
    for (const auto& [a, b] : {std::pair{first, h}, std::pair{h, first}})
      if (a != b)
        for (const sg::Link* l : route(path, a, b).links)
          if (seen.insert(l->get_name()).second) found.links.push_back({l->get_name(), l->get_bandwidth(), l->get_latency()});
  }
  return found;
}

FileRoutes platform_file_routes(const LinkSpec& link, const std::vector<size_t>& places) {
  refuse_varying(link);
  const std::string& path = link.file.front();
  sealed(path);
  const std::set<size_t> used(places.begin(), places.end());
  FileRoutes out;
  std::unordered_map<const sg::Link*, uint32_t> number;
  for (const size_t from : used)
    for (const size_t to : used) {
      if (from == to) continue;
      const sg::Host *a = api::host(link.file[from + 1]), *b = api::host(link.file[to + 1]);
      const Found found = route(path, a, b);
      auto& way = out.ways[{from, to}];
      double sum = 0;
      for (const sg::Link* l : found.links) {
        const auto [at, added] = number.emplace(l, static_cast<uint32_t>(number.size()));
        if (added) {
          const auto policy = l->get_sharing_policy();
          if (policy != sg::Link::SharingPolicy::SHARED && policy != sg::Link::SharingPolicy::SPLITDUPLEX)
            throw only_simgrid(link, "link '" + l->get_name() + "' is no shared link, which the engine's own networks do not have");
          out.bandwidth.push_back(l->get_bandwidth());
          out.latency.push_back(l->get_latency());
        }
        way.push_back(at->second);
        sum += out.latency[at->second];
      }
      if (std::abs(sum - found.latency) > 1e-12)
        throw only_simgrid(link, "the latency from " + a->get_name() + " to " + b->get_name() + " is not that of its links");
    }
  return out;
}

}  // namespace retrompi
