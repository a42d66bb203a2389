// Names that differ between SimGrid's versions: 3.32 (Debian 12) creates zones by functions, 4.1 by methods of a root zone that always
// exists, and it deprecates the older names. Versions between the two have the older names.
#pragma once
#include <array>
#include <functional>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "event/core.hpp"

// clang-format off: not self-contained in 3.32, it needs what s4u.hpp includes
#include <simgrid/version.h>
// clang-format on

namespace retrompi::simgrid_api {

namespace sg = simgrid::s4u;

#if SIMGRID_VERSION >= 40000
inline constexpr const char* kTimePrecision = "precision/timing";
#else
inline constexpr const char* kTimePrecision = "surf/precision";
#endif

/// SimGrid's own network models of this version, as its programs list them (`--help-models`); Constant is left out, which refuses links, and ns-3,
/// which most builds lack.
#if SIMGRID_VERSION >= 40000
inline constexpr std::array kNetworkModels{"CM02", "LV08", "SMPI", "raw"};
#else
inline constexpr std::array kNetworkModels{"CM02", "IB", "LV08", "SMPI"};
#endif

/// Creates the host of one place of a torus or a tree.
using MakeHost = std::function<sg::Host*(sg::NetZone*, unsigned long)>;

#if SIMGRID_VERSION >= 40100
inline sg::NetZone* root_zone(sg::Engine& engine) { return engine.get_netzone_root(); }
inline sg::Host* add_host(sg::NetZone* zone, const std::string& name) { return zone->add_host(name, 1e9); }
inline sg::Link* add_link(sg::NetZone* zone, const std::string& name, double bandwidth) { return zone->add_link(name, bandwidth); }
inline void add_route(sg::NetZone* zone, const sg::Host* a, const sg::Host* b, const std::vector<sg::LinkInRoute>& over) {
  zone->add_route(a, b, over, false);
}
template <class F>
sg::ActorPtr add_actor(sg::Host* host, const std::string& name, F code) {
  return host->add_actor(name, std::move(code));
}
inline sg::NetZone* with_hosts(sg::NetZone* zone, const MakeHost& make) {
  return zone->set_host_cb([make](sg::NetZone* z, const std::vector<unsigned long>&, unsigned long id) { return make(z, id); });
}
inline sg::NetZone* add_torus(sg::NetZone* root, const std::string& name, const std::vector<unsigned long>& shape, const MakeHost& make,
                              double bandwidth, double latency) {
  return with_hosts(root->add_netzone_torus(name, shape, bandwidth, latency, sg::Link::SharingPolicy::SPLITDUPLEX), make);
}
inline sg::NetZone* add_fat_tree(sg::NetZone* root, const std::string& name, const std::vector<unsigned>& down, const std::vector<unsigned>& up,
                                 const std::vector<unsigned>& count, const MakeHost& make, double bandwidth, double latency) {
  const auto levels = static_cast<unsigned>(down.size());
  return with_hosts(root->add_netzone_fatTree(name, levels, down, up, count, bandwidth, latency, sg::Link::SharingPolicy::SPLITDUPLEX), make);
}
#else
inline sg::NetZone* root_zone(sg::Engine&) { return sg::create_full_zone("room"); }
inline sg::Host* add_host(sg::NetZone* zone, const std::string& name) { return zone->create_host(name, 1e9); }
inline sg::Link* add_link(sg::NetZone* zone, const std::string& name, double bandwidth) { return zone->create_link(name, bandwidth); }
inline void add_route(sg::NetZone* zone, const sg::Host* a, const sg::Host* b, const std::vector<sg::LinkInRoute>& over) {
  zone->add_route(a->get_netpoint(), b->get_netpoint(), nullptr, nullptr, over, false);
}
template <class F>
sg::ActorPtr add_actor(sg::Host* host, const std::string& name, F code) {
  return sg::Actor::create(name, host, std::move(code));
}
inline sg::ClusterCallbacks with_hosts(const MakeHost& make) {
  return sg::ClusterCallbacks([make](sg::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    return std::make_pair(make(zone, id)->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  });
}
inline sg::NetZone* add_torus(sg::NetZone* root, const std::string& name, const std::vector<unsigned long>& shape, const MakeHost& make,
                              double bandwidth, double latency) {
  return sg::create_torus_zone(name, root, shape, with_hosts(make), bandwidth, latency, sg::Link::SharingPolicy::SPLITDUPLEX);
}
inline sg::NetZone* add_fat_tree(sg::NetZone* root, const std::string& name, const std::vector<unsigned>& down, const std::vector<unsigned>& up,
                                 const std::vector<unsigned>& count, const MakeHost& make, double bandwidth, double latency) {
  const sg::FatTreeParams tree(static_cast<unsigned>(down.size()), down, up, count);
  return sg::create_fatTree_zone(name, root, tree, with_hosts(make), bandwidth, latency, sg::Link::SharingPolicy::SPLITDUPLEX);
}
#endif

/// The engine, which is made once in the life of a process.
inline sg::Engine& engine() {
  static char name[] = "retrompi";
  static char quiet[] = "--log=root.thres:critical";
  static char* argv[] = {name, quiet, nullptr};
  static int argc = 2;
  static sg::Engine made(&argc, argv);
  return made;
}

/// The engine with a platform file, the only one of the process.
inline sg::Engine& loaded(const std::string& path) {
  static std::string known;
  sg::Engine& e = engine();
  if (known == path) return e;
  if (!known.empty()) throw ConfigError("SimGrid reads one platform file in the life of a process");
  try {
    e.load_platform(path);
  } catch (const std::exception& error) {
    throw ConfigError("SimGrid refuses " + path.substr(path.rfind('/') + 1) + ": " + error.what());
  }
  known = path;
  return e;
}

inline sg::Host* host(const std::string& name) {
  sg::Host* h = sg::Host::by_name_or_null(name);
  if (h == nullptr) throw ConfigError("the platform file has no host '" + name + "'");
  return h;
}

}  // namespace retrompi::simgrid_api
