// retrompi._engine.ActionList and trace_memory: the store of a trace's actions, for its tests and for setting its limit.
#include <optional>

#include "bind/rows.hpp"
#include "trace/flat_action.hpp"
#include "trace/trace.hpp"

namespace py = pybind11;

void bind_store(py::module_ &m);

namespace {

using retrompi::Action;
using retrompi::ActionList;

// The columns of FlatAction: op, flags, peer, tag, peer2, vec, line, bytes, bytes2, amount, comm, request
Action action_of(const py::object &row) {
  retrompi::Fields f(row, 12, "action");
  const auto op = f.next<uint8_t>();
  retrompi::FlatAction a{};
  a.op = static_cast<retrompi::Op>(op);
  a.flags = f.next<uint8_t>();
  for (int32_t *column : {&a.peer, &a.tag, &a.peer2, &a.vec}) *column = f.next<int32_t>();
  a.line = f.next<uint32_t>();
  a.bytes = f.next<int64_t>();
  a.bytes2 = f.next<int64_t>();
  a.amount = f.next<double>();
  a.comm = f.next<int32_t>();
  a.request = f.next<int32_t>();
  if (op >= retrompi::OP_COUNT) throw py::value_error("no such operation: " + std::to_string(op));
  return retrompi::unflatten(a);
}

py::tuple fields(const Action &a) {
  const retrompi::FlatAction f = retrompi::flatten(a);
  return retrompi::row_of(
      {static_cast<uint8_t>(f.op), f.flags, f.peer, f.tag, f.peer2, f.vec, f.line, f.bytes, f.bytes2, f.amount, f.comm, f.request});
}

size_t checked(const ActionList &list, size_t i) {
  if (i >= list.size()) throw py::index_error("action " + std::to_string(i) + " of " + std::to_string(list.size()));
  return i;
}

py::dict memory(std::optional<uint64_t> limit) {
  using retrompi::TraceMemory;
  if (limit) TraceMemory::set_limit(*limit);
  py::dict d;
  d["limit_B"] = TraceMemory::limit();
  d["held_B"] = TraceMemory::held();
  d["spilled_B"] = TraceMemory::spilled();
  return d;
}

}  // namespace

void bind_store(py::module_ &m) {
  py::class_<ActionList>(m, "ActionList",
                         "One rank's actions as they are stored. An action is (op, flags, peer, tag, peer2, vec, line, bytes, bytes2, amount, "
                         "comm, request), the columns of engine/trace/flat_action.hpp.")
      .def(py::init<>())
      .def(py::init<const ActionList &>(), py::arg("other"), "A copy, which shares what is packed.")
      .def(
          "append", [](ActionList &l, const py::object &f) { l.push_back(action_of(f)); }, py::arg("action"))
      .def_static(
          "kept", [](const py::object &f) { return fields(action_of(f)); }, py::arg("action"), "What of these columns the action's operation has.")
      .def("seal", &ActionList::seal, "Packs the last actions as well.")
      .def("__len__", &ActionList::size)
      .def(
          "__getitem__", [](const ActionList &l, size_t i) { return fields(l[checked(l, i)]); }, py::arg("index"))
      .def(
          "__setitem__", [](ActionList &l, size_t i, const py::object &f) { l.set(checked(l, i), action_of(f)); }, py::arg("index"),
          py::arg("action"))
      .def(
          "rows",
          [](const ActionList &l, size_t first) {
            py::list out;
            for (auto a = l.from(first); a != l.end(); ++a) out.append(fields(*a));
            return out;
          },
          py::arg("first") = 0, "The actions in order from one of them on.")
      .def(
          "pack",
          [](const ActionList &l) {
            std::string out;
            retrompi::ListWriter writer(nullptr);
            writer.add(l);
            writer.finish(out);
            return py::bytes(out);
          },
          "As bytes, for ``unpack``.")
      .def_static(
          "unpack",
          [](const py::bytes &image) {
            std::string_view bytes(image);
            retrompi::ListReader reader(bytes, nullptr);
            ActionList l = reader.next();
            for (auto a = l.begin(); a != l.end();) ++a;  // a broken block is detected when it is unpacked
            return l;
          },
          py::arg("image"), "The inverse of ``pack``; raises TraceError for anything else.")
      .def_property_readonly(
          "memory_B", [](const ActionList &l) { return l.memory_use(); }, "Bytes held in memory, not in the file.");
  m.def("trace_memory", &memory, py::arg("limit") = py::none(),
        "What the traces of this process hold: limit_B (set by ``limit`` and by RETROMPI_TRACE_MEMORY), held_B in memory, spilled_B in a "
        "temporary file.");
}
