// The Python binding of a wire alone: flows sent at given times, and when each arrives. For tests of the wire against its reference.
#include <map>

#include "bind/rows.hpp"
#include "network/wire.hpp"

namespace py = pybind11;

namespace retrompi {

namespace {

struct Ride {
  Wire* wire;
  Loop* loop;
  int from, to;
  int64_t bytes;
  Ps start;
  Ps arrived = -1;
  void on_start() {
    const auto told = delivery<&Ride::on_end, &Ride::on_lost>(*this);
    if (start <= loop->now || !wire->send_at(start, from, to, bytes, told)) wire->send(from, to, bytes, told);
  }
  void on_lost() { arrived = -2 - loop->now; }
  void on_end() { arrived = loop->now; }
};

Failure failure(const py::handle& given) {
  static const std::map<std::string, Failure::What> kinds = {{"host", Failure::Host},     {"pair", Failure::Pair}, {"whole", Failure::Whole},
                                                             {"switch", Failure::Switch}, {"site", Failure::Site}, {"wan", Failure::Wan},
                                                             {"rail", Failure::Rail}};
  Fields f(given, 5, "failures");
  const auto what = f.next<std::string>();
  const auto a = f.next<size_t>(), b = f.next<size_t>();
  const auto from = f.next<Ps>(), until = f.next<Ps>();
  const auto kind = kinds.find(what);
  if (kind == kinds.end()) throw ConfigError("failures: no '" + what + "'");
  return {kind->second, a, b, from, until < 0 ? kNever : until, what};
}

std::vector<Ps> carry(const std::string& wire, const py::dict& spec, const std::vector<size_t>& positions, const py::list& flows,
                      const py::list& failures, uint64_t seed, const std::vector<Ps>& ahead) {
  Loop loop;
  Anatomy anatomy;
  const LinkSpec link = read_link(spec);
  const auto w = wire.substr(0, wire.find(':')) == "simgrid"
                     ? simgrid_wire(loop, anatomy, positions, link, wire.find(':') == std::string::npos ? "" : wire.substr(wire.find(':') + 1))
                 : wire == "fluid" ? fluid_wire(loop, anatomy, positions, link)
                                   : native_wire(loop, anatomy, positions, link, seed);
  std::vector<Failure> down;
  for (const py::handle d : failures) down.push_back(failure(d));
  if (!down.empty()) w->fail(down);
  std::vector<Ride> rides;
  rides.reserve(flows.size());
  const auto cards = static_cast<int>(positions.size());
  for (const py::handle given : flows) {
    Fields f(given, 4, "flows");
    const auto at = f.next<Ps>();
    const auto from = f.next<int>(), to = f.next<int>();
    const auto bytes = f.next<int64_t>();
    if (from < 0 || from >= cards || to < 0 || to >= cards || from == to) throw ConfigError("a flow goes from one of the hosts to another");
    if (static_cast<size_t>(from) % link.rails != static_cast<size_t>(to) % link.rails) throw ConfigError("a flow stays on its rail");
    rides.push_back({w.get(), &loop, from, to, bytes, at});
    loop.schedule(ahead.empty() ? at : at - std::min(at, ahead.at(rides.size() - 1)), callback<&Ride::on_start>(rides.back()));
  }
  w->run(loop, [] { return true; });
  std::vector<Ps> out;
  for (const Ride& r : rides) out.push_back(r.arrived);
  return out;
}

}  // namespace

}  // namespace retrompi

void bind_wire(py::module_& m) {
  m.def("carry", &retrompi::carry, py::arg("wire"), py::arg("link"), py::arg("positions"), py::arg("flows"), py::arg("failures") = py::list(),
        py::arg("seed") = 1, py::arg("ahead") = std::vector<retrompi::Ps>{},
        "When each of `flows` (start in ps, from card, to card, bytes) arrives, in ps; -1: never; -2 - t: lost at t. `link` has the keys of a "
        "Link, `positions` the place of each card's host. `wire` is native, fluid or simgrid (once in a process). `failures`: (what, a, b, from, "
        "until) in ps, until -1: for good. `ahead`: how long before its start each is sent, on a wire of the engine.");
}
