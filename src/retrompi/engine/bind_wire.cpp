// Python's door to a wire alone: flows sent at given times, and when each arrives. For tests of the wire against its reference.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "wire.hpp"

namespace py = pybind11;

namespace retrompi {

namespace {

struct Ride {
  Wire* wire;
  Loop* loop;
  int from, to;
  int64_t bytes;
  Ps arrived = -1;
  static void on_start(void* p, uint64_t) {
    auto& r = *static_cast<Ride*>(p);
    r.wire->send(r.from, r.to, r.bytes, &Ride::on_end, p, 0);
  }
  static void on_end(void* p, uint64_t) {
    auto& r = *static_cast<Ride*>(p);
    r.arrived = r.loop->now;
  }
};

using Row = std::tuple<Ps, int, int, int64_t>;

std::vector<Ps> carry(const std::string& wire, const std::string& kind, const std::vector<unsigned long>& shape, double bandwidth, double latency,
                      const std::vector<size_t>& positions, const std::vector<Row>& flows) {
  Loop loop;
  Anatomy anatomy;
  const LinkSpec link{kind, shape, bandwidth, latency};
  const auto w = wire == "simgrid" ? simgrid_wire(loop, anatomy, positions, link) : native_wire(loop, anatomy, positions, link);
  std::vector<Ride> rides;
  rides.reserve(flows.size());
  const auto hosts = static_cast<int>(positions.size());
  for (const auto& [at, from, to, bytes] : flows) {
    if (from < 0 || from >= hosts || to < 0 || to >= hosts || from == to) throw ConfigError("a flow goes from one of the hosts to another");
    rides.push_back({w.get(), &loop, from, to, bytes});
    loop.at(at, &Ride::on_start, &rides.back());
  }
  w->run([] { return true; });
  std::vector<Ps> out;
  for (const Ride& r : rides) out.push_back(r.arrived);
  return out;
}

}  // namespace

}  // namespace retrompi

void bind_wire(py::module_& m) {
  m.def("carry", &retrompi::carry, py::arg("wire"), py::arg("kind"), py::arg("shape"), py::arg("bandwidth"), py::arg("latency"), py::arg("positions"),
        py::arg("flows"),
        "When each of `flows` (start in ps, from, to, bytes) arrives, in ps; -1: never. `wire` is native or simgrid (once in a process); bandwidth "
        "in B/s, latency in s.");
}
