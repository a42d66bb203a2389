// The only door to SimGrid: the reference for what crosses a wire.
//
// Events on one host run ahead of SimGrid's clock as long as nothing is on the wire; while a flow is in the air the two clocks advance
// together.
#include <cmath>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

// clang-format off: not self-contained in 3.32, it needs what s4u.hpp includes
#include <simgrid/version.h>
// clang-format on

#include "wire.hpp"

namespace retrompi {

namespace sg = simgrid::s4u;
using simgrid::kernel::timer::Timer;

namespace {
/// An actor that carries one flow at a time; idle ones are reused.
struct Carrier {
  sg::SemaphorePtr go;
  int from = 0, to = 0;
  int64_t bytes = 0;
  Loop::Fn done = nullptr;
  void* obj = nullptr;
  uint64_t arg = 0;
  Ps asked = 0;
  Cause by;
};
struct Impl {
  std::unique_ptr<sg::Engine> engine;
  std::vector<sg::Host*> hosts;
  std::vector<std::unique_ptr<Carrier>> carriers;
  std::vector<Carrier*> idle;
  std::vector<Carrier*> pending;  // to start as soon as SimGrid's clock has caught up with ours
  size_t in_flight = 0;
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
  SimgridWire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link) : loop_(loop), anatomy_(anatomy) {
    loop_.outside = 0;  // SimGrid's clock is not ours to move
    build(positions, link);
  }
  void send(int from, int to, int64_t bytes, Loop::Fn done, void* obj, uint64_t arg) override;
  bool run(const std::function<bool()>& could_act) override;

 private:
  void build(const std::vector<size_t>& positions, const LinkSpec& link);
  void build_torus(const std::vector<size_t>& positions, const LinkSpec& link);
  [[nodiscard]] bool dead_end() const { return loop_.empty() || (loop_.only_passive() && !(*impl_->could_act)()); }
  void pump();
  Loop& loop_;
  Anatomy& anatomy_;
  std::unique_ptr<Impl> impl_;
};

void SimgridWire::build(const std::vector<size_t>& positions, const LinkSpec& link) {
  const size_t n = positions.size();
  impl_ = std::make_unique<Impl>();
  static char name[] = "retrompi";
  static char quiet[] = "--log=root.thres:critical";
  static char* argv[] = {name, quiet, nullptr};
  int argc = 2;
  impl_->engine = std::make_unique<sg::Engine>(&argc, argv);
  // Plain flows: the published wire rates are already net, and TCP is simulated by us, so SimGrid's own TCP corrections
  // (fitted on another cluster) are switched off. Its max-min solver adds up the reciprocals of latencies, 1e7 and more, and must
  // take what is left of such a sum for nothing, or it looks for flows where there are none and crashes.
  for (const char* c : {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "network/bandwidth-factor:1",
                        "network/latency-factor:1", "network/weight-S:0", "maxmin/precision:1e-7"})
    sg::Engine::set_config(std::string(c));
#if SIMGRID_VERSION >= 40000
  sg::Engine::set_config(std::string("precision/timing:1e-12"));  // latencies here start at 240 ns
#else
  sg::Engine::set_config(std::string("surf/precision:1e-12"));  // its name before 4.0
#endif
  if (link.kind == "torus") {
    build_torus(positions, link);
    impl_->over = sg::Semaphore::create(0);
    sg::Actor::create("keeper", impl_->hosts[0], [this] { impl_->over->acquire(); });
    return;
  }
  auto* zone = sg::create_full_zone("room");
  for (size_t i = 0; i < n; ++i) impl_->hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9));
  auto make = [&](const std::string& id) {
    auto* l = zone->create_link(id, link.bandwidth)->set_latency(link.latency);
    l->seal();
    return l;
  };
  auto route = [&](size_t a, size_t b, const std::vector<sg::LinkInRoute>& over) {
    zone->add_route(impl_->hosts[a]->get_netpoint(), impl_->hosts[b]->get_netpoint(), nullptr, nullptr, over, false);
  };
  if (link.kind == "hub") {
    auto* l = make("hub");
    for (size_t a = 0; a < n; ++a)
      for (size_t b = 0; b < n; ++b)
        if (a != b) route(a, b, {sg::LinkInRoute(l)});
  } else {
    std::vector<sg::Link*> up, down;
    for (size_t a = 0; a < n; ++a) {
      up.push_back(make("up" + std::to_string(a)));
      down.push_back(make("down" + std::to_string(a)));
    }
    for (size_t a = 0; a < n; ++a)
      for (size_t b = 0; b < n; ++b) {
        if (a == b) continue;
        if (link.kind == "cable")
          route(a, b, {sg::LinkInRoute(up[a])});
        else
          route(a, b, {sg::LinkInRoute(up[a]), sg::LinkInRoute(down[b])});
      }
  }
  zone->seal();
  impl_->over = sg::Semaphore::create(0);
  sg::Actor::create("keeper", impl_->hosts[0], [this] { impl_->over->acquire(); });
}

void SimgridWire::build_torus(const std::vector<size_t>& positions, const LinkSpec& link) {
  size_t places = 1;
  for (const unsigned long d : link.shape) places *= d;
  std::vector<sg::Host*> all(places);
  // A router's link carries one direction; both of a pair exist. Dimension-order routing is SimGrid's and the T3E's default.
  sg::ClusterCallbacks calls([&all](sg::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    all[id] = zone->create_host("h" + std::to_string(id), 1e9);
    return std::make_pair(all[id]->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  });
  auto* zone = sg::create_torus_zone("room", nullptr, link.shape, calls, link.bandwidth, link.latency, sg::Link::SharingPolicy::SPLITDUPLEX);
  zone->seal();
  for (const size_t p : positions) impl_->hosts.push_back(all[p]);
}

void SimgridWire::send(int from, int to, int64_t bytes, Loop::Fn done, void* obj, uint64_t arg) {
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
  c->done = done;
  c->obj = obj;
  c->arg = arg;
  c->asked = loop_.now;
  c->by = anatomy_.current;
  ++m.in_flight;
  m.pending.push_back(c);
}

void SimgridWire::pump() {
  Impl& m = *impl_;
  m.timer = nullptr;
  m.timer_at = kNever;
  m.clock = std::max(m.clock, static_cast<Ps>(std::llround(sg::Engine::get_clock() * kPsPerSecond)));
  try {
    while (!m.stopping) {
      if (!m.pending.empty() && m.pending.front()->asked <= m.clock) {
        for (Carrier* c : m.pending) {
          if (c->go) {
            c->go->release();
            continue;
          }
          c->go = sg::Semaphore::create(1);
          sg::Actor::create("carrier", m.hosts[static_cast<size_t>(c->from)], [this, c] {
            while (true) {
              c->go->acquire();
              sg::Comm::sendto(impl_->hosts[static_cast<size_t>(c->from)], impl_->hosts[static_cast<size_t>(c->to)], static_cast<uint64_t>(c->bytes));
              const Ps now = std::max(loop_.now, static_cast<Ps>(std::llround(sg::Engine::get_clock() * kPsPerSecond)));
              if (anatomy_.on) {
                const Cause before = anatomy_.current;
                anatomy_.current = c->by;
                anatomy_.current = anatomy_.of(anatomy_.record("wire", Stage::Wire, c->asked, c->asked, now));
                loop_.now = now;
                c->done(c->obj, c->arg);
                anatomy_.current = before;
              } else {
                loop_.now = now;
                c->done(c->obj, c->arg);
              }
              --impl_->in_flight;
              impl_->idle.push_back(c);
              if (impl_->timer) impl_->timer->remove();
              impl_->timer = Timer::set(sg::Engine::get_clock(), [this] { pump(); });
            }
          })->daemonize();
        }
        m.pending.clear();
      }
      if (loop_.finished()) break;
      const Ps t = loop_.next_time();
      if (m.in_flight == 0) {
        if (dead_end()) {
          m.dead = true;
          break;
        }
        loop_.step();
        continue;
      }
      if (t <= m.clock) {
        loop_.step();
        continue;
      }
      const Ps until = m.pending.empty() ? t : std::min(t, m.pending.front()->asked);
      if (until == kNever) return;  // only the wire can go on
      m.timer_at = until;
      m.timer = Timer::set(to_s(until), [this] {
        impl_->clock = std::max(impl_->clock, impl_->timer_at);
        pump();
      });
      return;
    }
  } catch (...) {
    m.error = std::current_exception();
  }
  if (!m.stopping) {
    m.stopping = true;
    m.over->release();
  }
}

bool SimgridWire::run(const std::function<bool()>& could_act) {
  impl_->could_act = &could_act;
  impl_->timer = Timer::set(0.0, [this] { pump(); });
  impl_->engine->run();
  if (impl_->error) std::rethrow_exception(impl_->error);
  return impl_->dead;
}

}  // namespace

std::unique_ptr<Wire> simgrid_wire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link) {
  check_link(positions, link);
  return std::make_unique<SimgridWire>(loop, anatomy, positions, link);
}

std::string simgrid_version() {
  int a = 0, b = 0, c = 0;
  sg_version_get(&a, &b, &c);
  return std::to_string(a) + "." + std::to_string(b) + (c ? "." + std::to_string(c) : "");
}

}  // namespace retrompi
