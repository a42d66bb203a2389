#include "network/platform_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
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

}  // namespace

PlatformFile read_platform_file(const std::string& path) {
  const sg::Engine& engine = api::loaded(path);
  PlatformFile found;
  for (const sg::Host* h : engine.get_all_hosts()) found.hosts.push_back({h->get_name(), h->get_speed(), h->get_core_count()});
  for (const sg::Link* l : engine.get_all_links())
    if (l->get_name() != "__loopback__") found.links.push_back({l->get_name(), l->get_bandwidth(), l->get_latency()});
  return found;
}

FileRoutes platform_file_routes(const LinkSpec& link) {
  refuse_varying(link);
  const sg::Engine& engine = api::loaded(link.file.front());
  FileRoutes out;
  std::unordered_map<const sg::Link*, uint32_t> number;
  for (const sg::Link* l : engine.get_all_links()) {
    number.emplace(l, static_cast<uint32_t>(number.size()));
    out.bandwidth.push_back(l->get_bandwidth());
    out.latency.push_back(l->get_latency());
  }
  std::vector<const sg::Host*> hosts;
  for (size_t i = 1; i < link.file.size(); ++i) hosts.push_back(api::host(link.file[i]));
  out.way = [link, hosts, number = std::move(number), latency = out.latency](size_t from, size_t to) {
    std::vector<sg::Link*> links;
    double whole = 0;
    try {
      hosts[from]->route_to(hosts[to], links, &whole);
    } catch (const std::exception& e) {
      throw ConfigError(leaf(link.file.front()) + ": no route from " + hosts[from]->get_name() + " to " + hosts[to]->get_name() + ": " + e.what());
    }
    if (links.empty()) throw ConfigError(leaf(link.file.front()) + ": no route from " + hosts[from]->get_name() + " to " + hosts[to]->get_name());
    std::vector<uint32_t> way;
    double sum = 0;
    for (const sg::Link* l : links) {
      const auto policy = l->get_sharing_policy();
      if (policy != sg::Link::SharingPolicy::SHARED && policy != sg::Link::SharingPolicy::SPLITDUPLEX)
        throw only_simgrid(link, "link '" + l->get_name() + "' is no shared link, which the engine's own networks do not have");
      way.push_back(number.at(l));
      sum += latency[way.back()];
    }
    if (std::abs(sum - whole) > 1e-12)
      throw only_simgrid(link, "the latency from " + hosts[from]->get_name() + " to " + hosts[to]->get_name() + " is not that of its links");
    return way;
  };
  return out;
}

}  // namespace retrompi
