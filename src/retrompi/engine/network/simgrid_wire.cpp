// The only interface to SimGrid: the reference implementation of the wire.
//
// Events on one host run ahead of SimGrid's clock as long as nothing is on the wire; while a flow is in the air the two clocks advance
// together.
#include <algorithm>
#include <cmath>
#include <map>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include "network/simgrid_api.hpp"
#include "network/wire.hpp"

namespace retrompi {

namespace sg = simgrid::s4u;
namespace api = simgrid_api;
using simgrid::kernel::timer::Timer;

namespace {
/// A stack each, 1 GiB in all: SimGrid ends the process where it gets none.
constexpr size_t kMostFlows = 8192;

/// An actor that carries one flow at a time; idle ones are reused.
struct Carrier {
  sg::SemaphorePtr go;
  int from = 0, to = 0;
  int64_t bytes = 0;
  Callback delivered;
  Ps asked = 0;
  CriticalPath::Point point = 0;
  Cause by;
  bool background = false;
};
struct Impl {
  sg::Engine* engine = nullptr;
  std::vector<sg::Host*> hosts;
  std::vector<std::unique_ptr<Carrier>> carriers;
  std::vector<Carrier*> idle;
  std::vector<Carrier*> pending;         // to start as soon as SimGrid's clock has caught up with ours
  size_t in_flight = 0, background = 0;  // the latter among the former
  Timer* timer = nullptr;
  Ps timer_at = kNever;
  Ps clock = 0;  // SimGrid's clock, rounded once at each event
  sg::SemaphorePtr over;
  bool stopping = false, dead = false;
  std::exception_ptr error;
  const std::function<bool()>* could_act = nullptr;
};

class SimgridWire final : public Wire {
 public:
  SimgridWire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link, const std::string& model)
      : loop_(loop), anatomy_(anatomy) {
    loop_.external_event = 0;  // only SimGrid moves its clock
    begin(model);
    build(positions, link, model.empty());
  }
  void send(int from, int to, int64_t bytes, const Delivery& d) override { set_out(from, to, bytes, d, false); }
  void send_background(int from, int to, int64_t bytes, const Delivery& d) override { set_out(from, to, bytes, d, true); }
  /// By SimGrid's clock, which calls `pump`.
  bool run(Loop& loop, const std::function<bool()>& could_act) override;
  void advance() override {}
  [[nodiscard]] bool under_way() const override { return impl_->in_flight > impl_->background; }

 private:
  void set_out(int from, int to, int64_t bytes, const Delivery& d, bool background);
  void begin(const std::string& model);
  void build(const std::vector<size_t>& positions, const LinkSpec& link, bool plain);
  void build_grid(const std::vector<size_t>& positions, const LinkSpec& link);
  void build_lines(const std::vector<size_t>& positions, const LinkSpec& link);
  [[nodiscard]] bool dead_end() const { return loop_.empty() || (loop_.only_passive() && !(*impl_->could_act)()); }
  void pump();
  bool catch_up();
  void start_pending();
  [[noreturn]] void carry(Carrier& c);
  void arrive(const Carrier& c);
  Loop& loop_;
  Anatomy& anatomy_;
  std::unique_ptr<Impl> impl_;
  /// Seconds that a flow waits before it gets its links, where these have no latency themselves: SimGrid would share by latency.
  std::function<double(int, int)> before_;
};

void SimgridWire::begin(const std::string& model) {
  impl_ = std::make_unique<Impl>();
  impl_->engine = &api::engine();
  // Its max-min solver adds up the reciprocals of latencies, 1e7 and more, and must treat the rounding remainder of such a sum as zero,
  // or it looks for flows where there are none and crashes. A carrier's stack of 8 MiB, SimGrid's default, would end the process where a
  // runtime without a window has a thousand small packets on its way.
  for (const char* c : {"maxmin/precision:1e-7", "contexts/stack-size:128"}) sg::Engine::set_config(std::string(c));
  sg::Engine::set_config(std::string(api::kTimePrecision) + ":1e-12");  // latencies here start at 240 ns
  if (!model.empty()) {
    sg::Engine::set_config("network/model:" + model);
    return;
  }
  // Plain flows: the published wire rates are already net, and the engine simulates TCP, so SimGrid's own TCP corrections
  // (fitted on another cluster) are switched off.
  for (const char* c : {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "network/bandwidth-factor:1",
                        "network/latency-factor:1", "network/weight-S:0"})
    sg::Engine::set_config(std::string(c));
}

void SimgridWire::build(const std::vector<size_t>& positions, const LinkSpec& link, bool plain) {
  const LinkLayout layout = kind_of(link).layout;
  if (layout == LinkLayout::File) {
    api::loaded(link.file.front());
    for (const size_t place : positions) impl_->hosts.push_back(api::host(link.file[place + 1]));
    return;
  }
  // SimGrid defines links and routes itself; under plain flows over a tree and between sites, the latency is waited for beforehand.
  if (plain && (layout == LinkLayout::Tree || layout == LinkLayout::Sites)) {
    const auto routes = std::make_shared<Routes>(positions, link);
    before_ = [routes](int a, int b) { return routes->latency_ps(routes->way(static_cast<size_t>(a), static_cast<size_t>(b))) / kPsPerSecond; };
  }
  if (layout == LinkLayout::Torus || layout == LinkLayout::Tree)
    build_grid(positions, link);
  else
    build_lines(positions, link);
}

/// Cable, hub, switch and sites: a route for every pair of cards.
void SimgridWire::build_lines(const std::vector<size_t>& positions, const LinkSpec& link) {
  const size_t n = positions.size();
  const LinkLayout layout = kind_of(link).layout;
  const bool medium = layout == LinkLayout::Medium;
  auto* zone = api::root_zone(*impl_->engine);
  for (size_t i = 0; i < n; ++i) impl_->hosts.push_back(api::add_host(zone, "h" + std::to_string(i)));
  auto make = [&](const std::string& id, double bandwidth, double latency) {
    auto* l = api::add_link(zone, id, bandwidth)->set_latency(before_ ? 0 : latency);
    l->seal();
    return l;
  };
  std::vector<sg::Link*> up, down, hubs;
  std::map<std::pair<size_t, size_t>, sg::Link*> lines;
  for (size_t rail = 0; medium && rail < link.rails; ++rail) hubs.push_back(make(link.kind + std::to_string(rail), link.bandwidth, link.latency));
  for (size_t a = 0; !medium && a < n; ++a) {
    up.push_back(make("up" + std::to_string(a), link.bandwidth, link.latency));
    down.push_back(make("down" + std::to_string(a), link.bandwidth, link.latency));
  }
  for (size_t a = 0; a < n; ++a)
    for (size_t b = 0; b < n; ++b) {
      if (a == b || a % link.rails != b % link.rails) continue;
      std::vector<sg::LinkInRoute> over;
      if (medium) {
        over.emplace_back(hubs[a % link.rails]);
      } else {
        over.emplace_back(up[a]);
        if (layout == LinkLayout::Sites && link.shape[positions[a]] != link.shape[positions[b]]) {
          const auto [x, y] = std::pair(link.shape[positions[a]], link.shape[positions[b]]);
          auto& line = lines[{x, y}];
          if (!line) line = make(link.kind + std::to_string(x) + "-" + std::to_string(y), link.wan_bandwidth, link.wan_latency);
          over.emplace_back(line);
        }
        if (layout != LinkLayout::Line) over.emplace_back(down[b]);
      }
      api::add_route(zone, impl_->hosts[a], impl_->hosts[b], over);
    }
  zone->seal();
}

/// Torus and fat tree: SimGrid's own zones, one for each rail. Dimension-order routing is SimGrid's and the T3E's default, D-mod-K that of
/// fat trees. A link carries one direction; both of a pair exist.
void SimgridWire::build_grid(const std::vector<size_t>& positions, const LinkSpec& link) {
  const bool torus = kind_of(link).layout == LinkLayout::Torus;
  const size_t dimensions = torus ? link.shape.size() : link.shape.size() / 3;
  size_t places = 1;
  for (size_t i = 0; i < dimensions; ++i) places *= link.shape[i];
  std::vector<std::vector<sg::Host*>> all(link.rails, std::vector<sg::Host*>(places));
  auto* root = api::root_zone(*impl_->engine);
  for (size_t rail = 0; rail < link.rails; ++rail) {
    const std::string name = "rail" + std::to_string(rail);
    const api::MakeHost make = [&all, rail](sg::NetZone* zone, unsigned long id) {
      return all[rail][id] = api::add_host(zone, "h" + std::to_string(rail) + "-" + std::to_string(id));
    };
    sg::NetZone* zone = nullptr;
    if (torus) {
      zone = api::add_torus(root, name, link.shape, make, link.bandwidth, link.latency);
    } else {
      const auto part = [&](size_t i) {
        const auto at = link.shape.begin() + static_cast<std::ptrdiff_t>(i * dimensions);
        return std::vector<unsigned int>(at, at + static_cast<std::ptrdiff_t>(dimensions));
      };
      zone = api::add_fat_tree(root, name, part(0), part(1), part(2), make, link.bandwidth, before_ ? 0 : link.latency);
    }
    zone->seal();
  }
  root->seal();
  for (size_t card = 0; card < positions.size(); ++card) impl_->hosts.push_back(all[card % link.rails][positions[card]]);
}

void SimgridWire::set_out(int from, int to, int64_t bytes, const Delivery& d, bool background) {
  Impl& m = *impl_;
  Carrier* c = nullptr;
  if (m.idle.empty()) {
    m.carriers.push_back(std::make_unique<Carrier>());
    c = m.carriers.back().get();
  } else {
    c = m.idle.back();
    m.idle.pop_back();
  }
  c->from = from;
  c->to = to;
  c->bytes = bytes;
  c->delivered = d.on_delivered();
  c->asked = loop_.now;
  c->by = anatomy_.current;
  c->point = loop_.cause;
  c->background = background;
  ++m.in_flight;
  m.background += background ? 1 : 0;
  m.pending.push_back(c);
}

/// A carrier's life: it takes a flow, brings it to its host and waits for the next.
void SimgridWire::carry(Carrier& c) {
  while (true) {
    c.go->acquire();
    if (before_) sg::this_actor::sleep_for(before_(c.from, c.to));
    sg::Comm::sendto(impl_->hosts[static_cast<size_t>(c.from)], impl_->hosts[static_cast<size_t>(c.to)], static_cast<uint64_t>(c.bytes));
    arrive(c);
    --impl_->in_flight;
    impl_->background -= c.background ? 1 : 0;
    impl_->idle.push_back(&c);
    if (impl_->timer) impl_->timer->remove();
    impl_->timer = Timer::set(sg::Engine::get_clock(), [this] { pump(); });
  }
}

void SimgridWire::arrive(const Carrier& c) {
  const Ps now = std::max(loop_.now, static_cast<Ps>(std::llround(sg::Engine::get_clock() * kPsPerSecond)));
  if (anatomy_.critical.on) {
    anatomy_.critical.unfollowed("links shared fluidly");
    loop_.cause = anatomy_.critical.extend(c.point, now, Stage::Wire, anatomy_.critical.place("wire"));
  }
  loop_.trace(now, c.delivered);
  const bool recorded = anatomy_.on && !c.background;
  const Cause before = anatomy_.current;
  if (recorded) {
    anatomy_.current = c.by;
    anatomy_.current = anatomy_.of(anatomy_.record("wire", Stage::Wire, c.asked, c.asked, now));
  }
  loop_.now = now;
  c.delivered();
  if (recorded) anatomy_.current = before;
}

/// Starts what is to be sent, when SimGrid's clock has caught up with ours.
void SimgridWire::start_pending() {
  Impl& m = *impl_;
  if (m.carriers.size() > kMostFlows)
    throw ConfigError("more than " + std::to_string(kMostFlows) + " packets at once, SimGrid's network carries no more; use the native one");
  if (m.pending.empty() || m.pending.front()->asked > m.clock) return;
  for (Carrier* c : m.pending) {
    if (c->go) {
      c->go->release();
      continue;
    }
    c->go = sg::Semaphore::create(1);
    api::add_actor(m.hosts[static_cast<size_t>(c->from)], "carrier", [this, c] { carry(*c); })->daemonize();
  }
  m.pending.clear();
}

/// Runs our events up to the next instant of SimGrid's. Returns true when the run is over, false when SimGrid goes on first.
bool SimgridWire::catch_up() {
  Impl& m = *impl_;
  while (!m.stopping) {
    start_pending();
    if (loop_.finished()) return true;
    const Ps t = loop_.next_time();
    if (!under_way() && dead_end()) {
      m.dead = true;
      return true;
    }
    if (m.in_flight == 0 || t <= m.clock) {
      if (loop_.ends_before(t)) return true;
      loop_.step();
      continue;
    }
    const Ps until = m.pending.empty() ? t : std::min(t, m.pending.front()->asked);
    if (until == kNever) return false;  // only the wire can make progress
    m.timer_at = until;
    m.timer = Timer::set(to_s(until), [this] {
      impl_->clock = std::max(impl_->clock, impl_->timer_at);
      pump();
    });
    return false;
  }
  return true;
}

void SimgridWire::pump() {
  Impl& m = *impl_;
  m.timer = nullptr;
  m.timer_at = kNever;
  m.clock = std::max(m.clock, static_cast<Ps>(std::llround(sg::Engine::get_clock() * kPsPerSecond)));
  try {
    if (!catch_up()) return;
  } catch (...) {
    m.error = std::current_exception();
  }
  if (m.stopping) return;
  m.stopping = true;
  m.over->release();
}

bool SimgridWire::run(Loop& /*loop*/, const std::function<bool()>& could_act) {
  impl_->could_act = &could_act;
  // Created here and not earlier: from 4.0 on, SimGrid aborts when actors wait to begin and a refused input ends the process.
  impl_->over = sg::Semaphore::create(0);
  api::add_actor(impl_->hosts[0], "keeper", [this] { impl_->over->acquire(); });
  impl_->timer = Timer::set(0.0, [this] { pump(); });
  impl_->engine->run();
  if (impl_->error) std::rethrow_exception(impl_->error);
  return impl_->dead;
}

}  // namespace

std::unique_ptr<Wire> simgrid_wire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link,
                                   const std::string& model) {
  check_link(positions, link);
  const auto own = simgrid_network_models();
  if (!model.empty() && std::find(own.begin(), own.end(), model) == own.end()) {
    std::string names;
    for (const std::string& name : own) names += (names.empty() ? "" : ", ") + name;
    throw ConfigError("SimGrid " + simgrid_version() + " has no network model '" + model + "'; valid: " + names);
  }
  return std::make_unique<SimgridWire>(loop, anatomy, positions, link, model);
}

std::vector<std::string> simgrid_network_models() { return {api::kNetworkModels.begin(), api::kNetworkModels.end()}; }

std::string simgrid_version() {
  int a = 0, b = 0, c = 0;
  sg_version_get(&a, &b, &c);
  return std::to_string(a) + "." + std::to_string(b) + (c ? "." + std::to_string(c) : "");
}

}  // namespace retrompi
