// retrompi._engine.Trace: the parsed trace as Python sees it. retrompi.traces has the reading of files.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "trace.hpp"

namespace py = pybind11;

void bind_trace(py::module_ &m);

namespace {

using retrompi::Action;
using retrompi::Op;
using retrompi::Trace;

using Row = std::tuple<std::string, size_t, std::string, std::string>;  // file, line, action, reason

std::vector<Row> rows(const Trace &t, const std::vector<retrompi::Remark> &remarks) {
  std::vector<Row> out;
  for (const auto &r : remarks) out.emplace_back(t.files[static_cast<size_t>(r.rank)], r.line, r.action, r.reason);
  return out;
}

size_t checked_rank(const Trace &t, size_t rank) {
  if (rank >= t.ranks.size()) throw py::index_error("rank " + std::to_string(rank) + " is out of range 0.." + std::to_string(t.ranks.size() - 1));
  return rank;
}

Trace parse(const std::vector<std::tuple<py::buffer, std::string, int32_t>> &sources, int32_t ranks, const std::string &undefined_source,
            bool partial) {
  retrompi::ReadOptions options;
  options.ranks = ranks;
  options.partial = partial;
  using Undefined = retrompi::ReadOptions::Undefined;
  if (undefined_source == "any")
    options.undefined_source = Undefined::AnySource;
  else if (undefined_source == "null")
    options.undefined_source = Undefined::ProcNull;
  else if (undefined_source != "refuse")
    throw py::value_error("undefined_source must be 'refuse', 'any' or 'null', not '" + undefined_source + "'");
  std::vector<py::buffer_info> held;  // keeps the buffers in place while the GIL is away
  std::vector<retrompi::Source> views;
  held.reserve(sources.size());
  for (const auto &[buffer, name, rank] : sources) {
    held.push_back(buffer.request());
    const py::buffer_info &info = held.back();
    if (info.ndim != 1 || info.itemsize != 1 || (info.size > 1 && info.strides[0] != 1))
      throw py::value_error("a trace is read from contiguous bytes");
    views.push_back({std::string_view(static_cast<const char *>(info.ptr), static_cast<size_t>(info.size)), name, rank});
  }
  py::gil_scoped_release release;
  return retrompi::parse(views, options);
}

std::string sha256(const Trace &t) {
  py::object hash = py::module_::import("hashlib").attr("sha256")();
  for (size_t r = 0; r < t.ranks.size(); ++r) {
    std::string text;
    {
      py::gil_scoped_release release;
      text = t.to_ti(r);
    }
    hash.attr("update")(py::bytes("rank " + std::to_string(r) + "\n"));
    hash.attr("update")(py::memoryview::from_memory(text.data(), static_cast<py::ssize_t>(text.size())));
  }
  return hash.attr("hexdigest")().cast<std::string>();
}

py::dict info(const Trace &t) {
  struct Sum {
    std::array<int64_t, retrompi::OP_COUNT> calls{};
    double compute = 0, sleep = 0;
    size_t bytes = 0;
    int64_t largest = 0;
  } sum;
  for (const auto &r : t.ranks) {
    sum.bytes += r.memory_use();
    for (const Action &a : r) {
      ++sum.calls[static_cast<size_t>(a.op)];
      if (a.op != Op::Kernel) sum.largest = std::max({sum.largest, a.bytes, a.bytes2});  // a kernel's is a vector length
      if (a.op == Op::Compute) sum.compute += a.amount;
      if (a.op == Op::Sleep) sum.sleep += a.amount;
    }
  }
  for (const auto &counts : t.vec)
    for (const int64_t b : counts) sum.largest = std::max(sum.largest, b);
  py::dict calls;
  int64_t sends = 0, collectives = 0;
  for (int i = 0; i < retrompi::OP_COUNT; ++i) {
    const auto op = static_cast<Op>(i);
    const int64_t n = sum.calls[static_cast<size_t>(i)];
    if (n != 0) calls[retrompi::op_name(op)] = n;
    if ((op >= Op::Send && op <= Op::Irsend) || op == Op::Sendrecv) sends += n;
    if (op >= Op::Barrier && op <= Op::Scatterv) collectives += n;
  }
  py::dict d;
  d["ranks"] = t.ranks.size();
  d["actions"] = t.actions();
  d["calls"] = calls;
  d["sends"] = sends;
  d["bytes_sent"] = t.bytes_sent();
  d["collectives"] = collectives;
  d["largest_B"] = sum.largest;
  d["compute_flops"] = sum.compute;
  d["sleep_s"] = sum.sleep;
  d["refused"] = t.refused_total;
  d["warnings"] = t.warned_total;
  d["memory_B"] = sum.bytes;
  d["files"] = t.files;
  return d;
}

// Who sends how much to whom, how long messages are, and how many receives name no source.
py::dict traffic(const Trace &t) {
  const size_t n = t.ranks.size();
  std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>> pairs;
  std::map<int64_t, int64_t> sizes;  // largest length of a class (0, 1, 2, 4 ...) -> messages
  int64_t receives = 0, wildcards = 0;
  auto send = [&](size_t from, int32_t to, int64_t bytes) {
    if (to < 0 || static_cast<size_t>(to) >= n) return;
    auto &cell = pairs[{static_cast<int32_t>(from), to}];
    ++cell.first;
    cell.second += bytes;
    ++sizes[bytes <= 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)))];
  };
  for (size_t r = 0; r < n; ++r)
    for (const Action &a : t.ranks[r]) {
      if ((a.op >= Op::Send && a.op <= Op::Irsend) || a.op == Op::Sendrecv || a.op == Op::Put || a.op == Op::Accumulate) send(r, a.peer, a.bytes);
      if (a.op == Op::Get && a.peer >= 0) send(static_cast<size_t>(a.peer), static_cast<int32_t>(r), a.bytes);
      if (a.op == Op::Recv || a.op == Op::Irecv || a.op == Op::RecvInit || a.op == Op::Sendrecv) {
        ++receives;
        wildcards += (a.op == Op::Sendrecv ? a.peer2 : a.peer) == retrompi::ANY_SOURCE;
      }
    }
  py::list matrix, histogram;
  for (const auto &[who, cell] : pairs) matrix.append(py::make_tuple(who.first, who.second, cell.first, cell.second));
  for (const auto &[top, count] : sizes) histogram.append(py::make_tuple(top, count));
  py::dict d;
  d["pairs"] = matrix;
  d["sizes"] = histogram;
  d["receives"] = receives;
  d["wildcards"] = wildcards;
  return d;
}

// (name, n, file, line) of every kernel and length, where it stands first
py::list kernels(const Trace &t) {
  std::set<std::pair<int32_t, int64_t>> seen;
  py::list out;
  for (size_t r = 0; r < t.ranks.size(); ++r)
    for (const Action &a : t.ranks[r])
      if (a.op == Op::Kernel && seen.emplace(a.tag, a.bytes).second)
        out.append(py::make_tuple(t.labels[static_cast<size_t>(a.tag)], a.bytes, t.files[r], a.line));
  return out;
}

// (line, action, peer, tag, peer2, bytes, bytes2, amount); of a mark the action is "mark LABEL"
py::list rank_actions(const Trace &t, size_t rank, size_t first, std::optional<size_t> count) {
  const auto &actions = t.ranks[checked_rank(t, rank)];
  py::list out;
  const size_t begin = std::min(first, actions.size());
  const size_t end = begin + std::min(count.value_or(actions.size()), actions.size() - begin);
  auto next = actions.from(begin);
  for (size_t i = begin; i < end; ++i, ++next) {
    const Action &a = *next;
    const bool mark = a.op == Op::Mark;
    out.append(py::make_tuple(a.line, mark ? "mark " + t.labels[static_cast<size_t>(a.tag)] : std::string(retrompi::op_name(a.op)), a.peer,
                              mark ? 0 : a.tag, a.peer2, a.bytes, a.bytes2, a.amount));
  }
  return out;
}

}  // namespace

void bind_trace(py::module_ &m) {
  // The Python class is retrompi.traces.TraceError, a retrompi.errors.InputError, so that the command line treats it like
  // any other bad input. It is looked up when needed: this module must load without that package.
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const retrompi::TraceError &e) {
      const py::object type = py::module_::import("retrompi.traces.errors").attr("TraceError");
      const py::object line = e.line == 0 ? py::object(py::none()) : py::object(py::int_(e.line));
      PyErr_SetObject(type.ptr(), type(e.message, e.file, line).ptr());
    }
  });

  py::class_<Trace>(m, "Trace", R"(A parsed time-independent trace; immutable.

Equality is of the actions: line numbers and file names do not count.)")
      .def_static("parse", &parse, py::arg("sources"), py::arg("ranks") = 0, py::arg("undefined_source") = "refuse", py::arg("partial") = false,
                  R"(Parse ``[(bytes, name for messages, rank or -1 for one file of all ranks), ...]``; raises TraceError.

``ranks`` 0 means as many as there are files, or the highest rank of a shared file plus one. ``undefined_source`` says what a
receive from -333 is: ``refuse``, ``any`` (MPI_ANY_SOURCE) or ``null`` (MPI_PROC_NULL). ``partial`` accepts a rank cut before finalize.)")
      .def_property_readonly(
          "ranks", [](const Trace &t) { return t.ranks.size(); }, "How many ranks.")
      .def_property_readonly("actions", &Trace::actions, "Actions of all ranks, without marks.")
      .def_property_readonly("bytes_sent", &Trace::bytes_sent, "Payload of all point-to-point sends in bytes (persistent ones are not counted).")
      .def_property_readonly(
          "files", [](const Trace &t) { return t.files; }, "The file of each rank, for messages.")
      .def_property_readonly(
          "labels", [](const Trace &t) { return t.labels; }, "The labels of marks and the names of kernels.")
      .def("kernels", &kernels, "``[(name, vector length, file, line), ...]`` of every kernel that a rank computes, each once.")
      .def_property_readonly(
          "warnings", [](const Trace &t) { return rows(t, t.warned); }, "What is doubtful: (file, line, action, reason), at most 1000.")
      .def_property_readonly("sha256", &sha256, "SHA-256 of what the trace says: equal however it was stored.")
      .def(
          "unsupported", [](const Trace &t) { return rows(t, t.refused); },
          "Lines that cannot be simulated: (file, line, action, reason), at most 1000.")
      .def("traffic", &traffic,
           "Point-to-point and one-sided traffic: pairs (from, to, messages, bytes), sizes (largest length of a class, messages), receives, "
           "wildcards.")
      .def("info", &info,
           "Totals: ranks, actions, calls by name, sends, bytes_sent, collectives, largest_B (the longest message or contribution), compute_flops, "
           "sleep_s, refused, warnings, memory_B, "
           "files.")
      .def(
          "to_ti", [](const Trace &t, size_t rank, bool shared) { return t.to_ti(checked_rank(t, rank), shared); }, py::arg("rank"),
          py::arg("shared") = false,
          "The rank's lines in the trace format, sizes in bytes; ``shared`` names the rank in marks, for one file of all ranks.")
      .def("rank_actions", &rank_actions, py::arg("rank"), py::arg("first") = 0, py::arg("count") = py::none(),
           "Actions as (line, action, peer, tag, peer2, bytes, bytes2, amount); the fields are described in engine/trace.hpp.")
      .def(
          "with_marks",
          [](const Trace &t, const std::vector<std::tuple<size_t, uint32_t, std::string>> &marks) {
            std::vector<Trace::MarkAt> list;
            for (const auto &[rank, line, label] : marks) list.push_back({checked_rank(t, rank), line, label});
            return t.with_marks(std::move(list));
          },
          py::arg("marks"), "A copy with marks ``[(rank, line, label), ...]``, each before the first action at or after its line.")
      .def("scaled", &Trace::scaled, py::arg("factor"), "A copy with every amount of computation times ``factor``.")
      .def("smoothed", &Trace::smoothed,
           "A copy without the noise of the capture: in an iterative program, the computation before a call is its mean over the iterations.")
      .def("section_compute", &Trace::section_compute, py::arg("first"), py::arg("last"),
           "Computation of each rank, flops, while rank 0 runs its lines ``first`` to ``last``; the others' part lies between the same "
           "collectives.")
      .def(
          "dump", [](const Trace &t) { return py::bytes(t.dump()); }, "The parsed trace as bytes, for ``load`` in a worker on the same machine.")
      .def_static(
          "load", [](const py::bytes &image) { return Trace::load(std::string_view(image)); }, py::arg("image"), "The inverse of ``dump``.")
      .def(
          py::pickle([](const Trace &t) { return py::bytes(t.dump()); }, [](const py::bytes &image) { return Trace::load(std::string_view(image)); }))
      .def(
          "__eq__", [](const Trace &a, const Trace &b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const Trace &t) { return py::hash(py::str(sha256(t))); })
      .def("__repr__",
           [](const Trace &t) { return "<Trace of " + std::to_string(t.ranks.size()) + " ranks, " + std::to_string(t.actions()) + " actions>"; });
}
