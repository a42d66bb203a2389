// The platform: one SimGrid host per rank, so that SimGrid's callbacks know which rank a message belongs to. The model's hosts, their
// sizes and placement are handled by the channel law. Loaded by SimGrid (-platform) as well as before the program.
#include <smpi/smpi.h>

#include <cmath>
#include <simgrid/s4u.hpp>

// clang-format off: not self-contained in 3.32, it needs what s4u.hpp includes
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
// clang-format on

#include "calls.hpp"

namespace sg = simgrid::s4u;

namespace retrompi::online {
namespace {

constexpr double kSecond = 1.0;    // latency of the only link: a factor of it is a time in seconds
constexpr double kNoLimit = 1e30;  // bytes a second
constexpr int kEnvelope = 16;      // bytes that SMPI adds to each message on the wire (smpi_request.cpp)

int number(const sg::Host* host) { return std::atoi(host->get_cname() + 4); }  // "rankN"

/// For a message that SMPI itself carries: plain SMPI's, or that of a one-sided operation. The sender's overhead depends on whether
/// SMPI has made it sleep, which it does not in a blocking send that waits for its receiver.
double flight(double size, const sg::Host* src, const sg::Host* dst) {
  const int a = number(src), b = number(dst);
  if (Gratis::depth > 0 || a == b) return 0;
  Channel& c = law().channel(a, b);
  const auto bytes = std::max<int64_t>(0, static_cast<int64_t>(size) - kEnvelope);
  const Ps now = simulated().now();
  const CurvePoint at = c.point(bytes);
  if (!environment().asks(a, b, bytes)) return to_s(c.depart(now, at).end - now);
  Ps begin = now;
  if (c.prepaid > 0)
    --c.prepaid;
  else
    begin += c.opened() + at.send;
  return to_s(c.depart(begin, at).end + at.recv - now);
}

double sending(size_t bytes, sg::Host* src, sg::Host* dst) {
  const int a = number(src), b = number(dst);
  if (Gratis::depth > 0 || a == b) return 0;
  Channel& c = law().channel(a, b);
  const auto size = static_cast<int64_t>(bytes);
  if (environment().asks(a, b, size)) ++c.prepaid;
  return to_s(c.opened() + c.point(size).send);
}

double receiving(size_t bytes, sg::Host* src, sg::Host* dst) {
  const int a = number(src), b = number(dst);
  if (Gratis::depth > 0 || a == b) return 0;
  return to_s(law().channel(a, b).point(static_cast<int64_t>(bytes)).recv);
}

void build() {
  const Environment& e = environment();
  auto* zone = sg::create_full_zone("room");
  auto* link = zone->create_link("wire", kNoLimit)->set_latency(kSecond)->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
  link->seal();
  std::vector<sg::Host*> hosts;
  for (size_t r = 0; r < e.ranks.size(); ++r) {
    auto* h = zone->create_host("rank" + std::to_string(r), e.host_of(static_cast<int>(r)).flops);
    h->seal();
    hosts.push_back(h);
  }
  for (size_t a = 0; a < hosts.size(); ++a)
    for (size_t b = a + 1; b < hosts.size(); ++b)
      zone->add_route(hosts[a]->get_netpoint(), hosts[b]->get_netpoint(), nullptr, nullptr, {sg::LinkInRoute(link)}, true);
  auto* model = zone->get_network_model();
  model->set_lat_factor_cb([](double size, const sg::Host* src, const sg::Host* dst, const auto&, const auto&) { return flight(size, src, dst); });
  model->set_bw_factor_cb([](double, const sg::Host*, const sg::Host*, const auto&, const auto&) { return 1.0; });
  smpi_register_op_cost_callback(SmpiOperation::SEND, sending);
  smpi_register_op_cost_callback(SmpiOperation::ISEND, sending);
  smpi_register_op_cost_callback(SmpiOperation::RECV, receiving);
  zone->seal();
}

}  // namespace
}  // namespace retrompi::online

extern "C" __attribute__((visibility("default"))) void load_platform(const sg::Engine&);
void load_platform(const sg::Engine&) { retrompi::online::build(); }
