// retrompi._engine.PathGraph: slack and derivatives out of a recorded critical path, in the process that asks.
#include <cstring>

#include "bind/bind_results.hpp"
#include "bind/rows.hpp"
#include "record/anatomy.hpp"
#include "record/path_graph.hpp"

namespace py = pybind11;

void bind_path(py::module_ &m);

namespace {

using retrompi::PathGraph;

template <class T>
py::bytes bytes(const std::vector<T> &column) {
  return {reinterpret_cast<const char *>(column.data()), column.size() * sizeof(T)};
}

template <class T>
void read(const py::dict &d, const char *name, std::vector<T> &column) {
  const auto text = d[name].cast<std::string_view>();
  column.resize(text.size() / sizeof(T));
  std::memcpy(column.data(), text.data(), column.size() * sizeof(T));
}

PathGraph graph(const py::dict &d) {
  PathGraph g;
  read(d, "t", g.t);
  read(d, "from", g.from);
  read(d, "who", g.who);
  read(d, "bill", g.bill);
  read(d, "stage", g.stage);
  read(d, "joins", g.joins);
  read(d, "resumed", g.resumed);
  read(d, "orders", g.orders);
  read(d, "bill_begin", g.bill_begin);
  read(d, "term_number", g.term_number);
  read(d, "term_times", g.term_times);
  g.names = d["names"].cast<std::vector<std::string>>();
  for (const py::handle given : d["numbers"]) {
    retrompi::Fields f(given, 4, "numbers");
    auto &[owner, index, field, size] = g.numbers.emplace_back();
    owner = f.next<std::string>();
    index = f.next<int64_t>();
    field = f.next<std::string>();
    size = f.next<int64_t>();
  }
  for (const py::handle given : d["unfollowed"]) {
    retrompi::Fields f(given, 2, "unfollowed");
    auto &[what, count] = g.unfollowed.emplace_back();
    what = f.next<std::string>();
    count = f.next<int64_t>();
  }
  g.end = d["end"].cast<uint32_t>();
  g.check();
  return g;
}

py::list numbers(const PathGraph &g) {
  py::list out;
  for (const auto &[owner, index, field, size] : g.numbers) out.append(retrompi::row_of({owner, index, field, size}));
  return out;
}

py::list unfollowed(const PathGraph &g) {
  py::list out;
  for (const auto &[what, count] : g.unfollowed) out.append(retrompi::row_of({what, count}));
  return out;
}

}  // namespace

namespace retrompi {

py::dict path_graph_dict(const PathGraph &g) {
  py::dict o;
  o["t"] = bytes(g.t);
  o["from"] = bytes(g.from);
  o["who"] = bytes(g.who);
  o["bill"] = bytes(g.bill);
  o["stage"] = bytes(g.stage);
  o["joins"] = bytes(g.joins);
  o["resumed"] = bytes(g.resumed);
  o["orders"] = bytes(g.orders);
  o["bill_begin"] = bytes(g.bill_begin);
  o["term_number"] = bytes(g.term_number);
  o["term_times"] = bytes(g.term_times);
  o["names"] = g.names;
  o["numbers"] = numbers(g);
  o["unfollowed"] = unfollowed(g);
  o["end"] = g.end;
  return o;
}

}  // namespace retrompi

void bind_path(py::module_ &m) {
  py::class_<PathGraph>(m, "PathGraph",
                        "What a recorded critical path was the longest path of: see engine/record/path_graph.hpp. Made of the columns that "
                        "``simulate`` returns as ``critical_path['graph']``.")
      .def(py::init(&graph), py::arg("columns"))
      .def_property_readonly("numbers", &numbers, "The declared numbers of its delays: (owner, index, field, size).")
      .def_property_readonly("unfollowed", &unfollowed, "What acted on the run without a known derivative, and how often.")
      .def_property_readonly(
          "size",
          [](const PathGraph &g) {
            return retrompi::row_of({g.t.size(), g.joins.size() / 2, g.orders.size() / 2});
          },
          "How many points, joins and pairs in order.")
      .def_property_readonly(
          "ties",
          [](const PathGraph &g) {
            size_t n = 0;
            for (size_t i = 0; i < g.orders.size(); i += 2) n += g.t[g.orders[i]] == g.t[g.orders[i + 1]];
            return n;
          },
          "How many of the pairs in order happened at one instant.")
      .def(
          "slacks",
          [](const PathGraph &g) {
            py::list rows;
            for (const PathGraph::Slack &s : g.slacks())
              rows.append(retrompi::row_of(
                  {s.stage, g.names[s.who], s.on_path, s.beside, s.parts, s.least < 0 ? py::object(py::none()) : py::int_(s.least)}));
            return rows;
          },
          "(stage, who, ps on the path, ps beside it, parts beside it, their least slack in ps or None) of each stage of each.")
      .def(
          "parts",
          [](const PathGraph &g) {
            const std::vector<int64_t> slack = g.slack_by_point();
            py::list rows;
            for (size_t p = 1; p < g.t.size(); ++p)
              if (g.t[p] != g.t[g.from[p]] && (g.stage[p] & ~PathGraph::kFixed) != static_cast<uint8_t>(retrompi::Stage::Wait))
                rows.append(retrompi::row_of({g.t[g.from[p]], g.t[p], g.stage[p] & ~PathGraph::kFixed, g.names[g.who[p]],
                                              slack[p] < 0 ? py::object(py::none()) : py::int_(slack[p])}));
            return rows;
          },
          "(begin, end, stage, who, slack or None) of every delay, ps.")
      .def("slope", &PathGraph::slope, py::arg("changes"), "The change of the run's time (ps) to first order if the numbers change so (base units).")
      .def(
          "changed",
          [](const PathGraph &g, const std::vector<double> &changes) {
            const PathGraph::Changed c = g.changed(changes);
            return retrompi::row_of({c.ps, c.in_order});
          },
          py::arg("changes"), "(the change of the run's time in ps, whether everything happens in the recorded order).")
      .def("reach", &PathGraph::reach, py::arg("changes"), py::arg("agree"), py::arg("rounding"),
           "The largest part of these changes up to which the time changes in proportion to them.");
}
