// retrompi._engine.Trace: the parsed trace as Python sees it. retrompi.traces has the reading of files.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>

#include "bind/rows.hpp"
#include "trace/flat_action.hpp"
#include "trace/trace.hpp"
#include "trace/words.hpp"

namespace py = pybind11;

void bind_trace(py::module_ &m);

namespace {

using retrompi::Action;
namespace action = retrompi::action;
using retrompi::Op;
using retrompi::Trace;

// (file, line, action, reason)
py::list rows(const Trace &t, const std::vector<retrompi::Remark> &remarks) {
  py::list out;
  for (const auto &r : remarks) out.append(retrompi::row_of({t.files[static_cast<size_t>(r.rank)], r.line, r.action, r.reason}));
  return out;
}

size_t checked_rank(const Trace &t, size_t rank) {
  if (rank >= t.ranks.size()) throw py::index_error("rank " + std::to_string(rank) + " is out of range 0.." + std::to_string(t.ranks.size() - 1));
  return rank;
}

// The next bytes of an iterator over them.
bool take(py::iterator &pieces, std::string &out) {
  const py::gil_scoped_acquire gil;
  if (pieces == py::iterator::sentinel()) return false;
  if (!py::isinstance<py::bytes>(*pieces)) throw py::type_error("a trace is read from pieces of bytes");
  out += std::string_view(py::reinterpret_borrow<py::bytes>(*pieces));
  ++pieces;
  return true;
}

// What is read while the GIL is released.
struct Held {
  std::vector<py::buffer_info> buffers;
  std::vector<py::object> iterables;
};

// The sources that Python gives: (object, name, rank) of buffers or of what yields bytes piece by piece.
std::vector<retrompi::Source> sources_of(const py::sequence &sources, Held &held) {
  std::vector<retrompi::Source> views;
  for (const py::handle given : sources) {
    retrompi::Fields f(given, 3, "sources");
    const auto object = py::reinterpret_borrow<py::object>(f.next_field());
    auto name = f.next<std::string>();
    const auto rank = f.next<int32_t>();
    if (!PyObject_CheckBuffer(object.ptr())) {
      held.iterables.push_back(object);
      auto pieces = std::make_shared<py::iterator>();
      views.push_back({{},
                       std::move(name),
                       rank,
                       [pieces](std::string &out) { return take(*pieces, out); },
                       [pieces, from = object.ptr()] {
                         const py::gil_scoped_acquire gil;
                         *pieces = py::iter(py::handle(from));
                       }});
      continue;
    }
    held.buffers.push_back(py::reinterpret_borrow<py::buffer>(object).request());
    const py::buffer_info &info = held.buffers.back();
    if (info.ndim != 1 || info.itemsize != 1 || (info.size > 1 && info.strides[0] != 1))
      throw py::value_error("a trace is read from contiguous bytes");
    views.push_back({std::string_view(static_cast<const char *>(info.ptr), static_cast<size_t>(info.size)), std::move(name), rank});
  }
  return views;
}

Trace parse(const py::sequence &sources, int32_t ranks, const std::string &undefined_source, bool partial) {
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
  Held held;
  const std::vector<retrompi::Source> views = sources_of(sources, held);
  py::gil_scoped_release release;
  return retrompi::parse(views, options);
}

Trace of_patterns(const py::sequence &patterns, const py::buffer &of, const std::string &name) {
  Held held;
  const std::vector<retrompi::Source> views = sources_of(patterns, held);
  const py::buffer_info info = of.request();
  if (info.ndim != 1 || info.itemsize != sizeof(int64_t) || info.strides[0] != sizeof(int64_t))
    throw py::value_error("the pattern of every rank is an array of 64-bit integers");
  const std::span<const int64_t> which(static_cast<const int64_t *>(info.ptr), static_cast<size_t>(info.size));
  py::gil_scoped_release release;
  return retrompi::parse_patterns(views, which, name);
}

std::string sha256(const Trace &t) {
  if (t.digest.value) return *t.digest.value;
  py::object update, hash = py::module_::import("hashlib").attr("sha256")();
  update = hash.attr("update");
  for (size_t r = 0; r < t.ranks.size(); ++r) {
    update(py::bytes("rank " + std::to_string(r) + "\n"));
    const py::gil_scoped_release release;
    t.write_ti(r, false, [&](std::string_view text) {
      const py::gil_scoped_acquire gil;
      update(py::memoryview::from_memory(text.data(), static_cast<py::ssize_t>(text.size())));
    });
  }
  return t.digest.value.emplace(hash.attr("hexdigest")().cast<std::string>());
}

// The sums over all actions; a matrix of hundreds of pairs asks for them with every pair.
const Trace::Sums &sums(const Trace &t) {
  if (t.sums.value) return *t.sums.value;
  Trace::Sums sum;
  sum.calls.resize(std::size(retrompi::WORDS));
  sum.actions = t.actions();
  sum.bytes_sent = t.bytes_sent();
  std::unordered_set<const void *> counted;
  for (const auto &r : t.ranks) {
    sum.memory += r.memory_use(counted);
    for (const Action &a : r) {
      if (a.op == Op::Mark) {
        ++sum.marks;
        continue;
      }
      ++sum.calls[retrompi::word_index(retrompi::word_of(a))];
      const bool collective = retrompi::is_collective(a.op), once = retrompi::is_one_sided(a.op);
      if (const auto *x = a.get_if<action::PointToPoint>()) sum.largest = std::max(sum.largest, x->bytes);
      if (const auto *x = a.get_if<action::SendReceive>()) sum.largest = std::max({sum.largest, x->bytes, x->receive_bytes});
      if (const auto *x = a.get_if<action::Collective>()) sum.largest = std::max({sum.largest, x->bytes, x->receive_bytes});
      if (const auto *x = a.get_if<action::Rma>()) sum.largest = std::max(sum.largest, x->bytes);
      const auto sent = retrompi::sent_by(a);
      sum.sends += sent && sent->peer != retrompi::PROC_NULL;
      sum.collectives += collective;
      sum.one_sided += once && a.get<action::Rma>().target != retrompi::PROC_NULL;
      sum.nonblocking += collective && a.nonblocking();
      if (retrompi::is_vector(a.op))
        for (const int64_t b : t.vec[static_cast<size_t>(a.get<action::Collective>().counts)]) sum.largest = std::max(sum.largest, b);
      if (a.op == Op::Compute) sum.compute += a.get<action::Compute>().flops;
      if (a.op == Op::Sleep) sum.sleep += a.get<action::Sleep>().seconds;
    }
  }
  return t.sums.value.emplace(std::move(sum));
}

py::dict info(const Trace &t) {
  const Trace::Sums &sum = sums(t);
  py::dict calls;
  for (size_t i = 0; i < std::size(retrompi::WORDS); ++i)
    if (sum.calls[i] != 0) calls[py::str(std::string(retrompi::WORDS[i].name))] = sum.calls[i];
  if (sum.marks != 0) calls["mark"] = sum.marks;
  py::dict d;
  d["ranks"] = t.ranks.size();
  d["actions"] = sum.actions;
  d["calls"] = calls;
  d["sends"] = sum.sends;
  d["bytes_sent"] = sum.bytes_sent;
  d["collectives"] = sum.collectives;
  d["nonblocking_collectives"] = sum.nonblocking;
  d["one_sided"] = sum.one_sided;
  d["largest_B"] = sum.largest;
  d["compute_flops"] = sum.compute;
  d["sleep_s"] = sum.sleep;
  d["refused"] = t.refused_total;
  d["warnings"] = t.warned_total;
  d["memory_B"] = sum.memory;
  d["files"] = t.files;
  return d;
}

// The traffic between ranks, the lengths of messages, and the number of receives without a source.
py::dict traffic(const Trace &t) {
  const size_t n = t.ranks.size();
  std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>> pairs;
  std::map<int64_t, int64_t> sizes;  // largest length of a class (0, 1, 2, 4 ...) -> messages
  int64_t receives = 0, wildcards = 0, matched = 0;
  auto send = [&](int32_t from, int32_t to, int64_t bytes) {
    if (from < 0 || to < 0 || static_cast<size_t>(from) >= n || static_cast<size_t>(to) >= n) return;
    auto &cell = pairs[{from, to}];
    ++cell.first;
    cell.second += bytes;
    ++sizes[bytes <= 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)))];
  };
  for (size_t r = 0; r < n; ++r)
    for (const Action &a : t.ranks[r]) {
      const auto me = static_cast<int32_t>(r);
      if (const auto sent = retrompi::sent_by(a)) send(me, sent->peer, sent->bytes);
      if (const auto *x = a.get_if<action::Rma>()) {
        if (a.op != Op::Get) send(me, x->target, x->bytes);
        if (a.op != Op::Put && a.op != Op::Accumulate) send(x->target, me, x->bytes);
      }
      const auto *both = a.get_if<action::SendReceive>();
      if (both == nullptr && !retrompi::is_receive(a.op)) continue;
      const int32_t source = both != nullptr ? both->source : a.get<action::PointToPoint>().peer;
      if (source == retrompi::PROC_NULL) continue;
      ++receives;
      const bool any = source == retrompi::ANY_SOURCE;
      wildcards += any;
      matched += any && a.matched();
    }
  py::list matrix, histogram;
  for (const auto &[who, cell] : pairs) matrix.append(retrompi::row_of({who.first, who.second, cell.first, cell.second}));
  for (const auto &[top, count] : sizes) histogram.append(retrompi::row_of({top, count}));
  py::dict d;
  d["pairs"] = matrix;
  d["sizes"] = histogram;
  d["receives"] = receives;
  d["wildcards"] = wildcards;
  d["matched"] = matched;
  return d;
}

const char *kind_name(retrompi::Comm::Kind kind) {
  constexpr const char *NAMES[] = {"intra", "inter", "cart", "graph"};
  return NAMES[kind];
}

// Every communicator, and the number of calls on it.
py::list communicators(const Trace &t) {
  struct Use {
    int64_t messages = 0, collectives = 0;
    std::map<size_t, int64_t> calls;  // of its collectives, by word
    size_t rank = 0;
    uint32_t line = 0;
    std::optional<retrompi::CommHow> how;
  };
  std::vector<Use> use(t.comms.size());
  for (size_t r = 0; r < t.ranks.size(); ++r)
    for (const Action &a : t.ranks[r]) {
      Use &u = use[static_cast<size_t>(a.comm)];
      if (const auto sent = retrompi::sent_by(a)) {
        u.messages += sent->peer != retrompi::PROC_NULL;
      } else if (retrompi::is_persistent(a.op) && !retrompi::is_receive(a.op)) {
        u.messages += a.get<action::PointToPoint>().peer != retrompi::PROC_NULL;
      } else if (const auto *x = a.get_if<action::Rma>()) {
        u.messages += x->target != retrompi::PROC_NULL;
      }
      if (retrompi::is_collective(a.op)) {
        ++u.collectives;
        ++u.calls[retrompi::word_index(retrompi::word_of(a))];
      }
      const auto *x = a.get_if<action::NewComm>();
      if (x == nullptr || x->made < 0) continue;
      Use &made = use[static_cast<size_t>(x->made)];
      if (made.line == 0) made.rank = r, made.line = a.line, made.how = x->how;
    }
  py::list out;
  for (size_t i = 0; i < t.comms.size(); ++i) {
    const retrompi::Comm &c = t.comms[i];
    Action made(Op::CommNew);
    if (use[i].how) made.get<action::NewComm>().how = *use[i].how;
    py::dict d;
    d["id"] = c.id;
    d["kind"] = kind_name(c.kind);
    d["made_by"] = !use[i].how ? "" : retrompi::action_name(made);
    d["size"] = c.group.size();
    d["remote_size"] = c.remote.size();
    d["messages"] = use[i].messages;
    d["collectives"] = use[i].collectives;
    py::dict calls;
    for (const auto &[word, count] : use[i].calls) calls[py::str(std::string(retrompi::WORDS[word].name))] = count;
    d["calls"] = calls;
    size_t neighbours = 0;
    for (const auto &list : c.destinations)
      neighbours += static_cast<size_t>(std::count_if(list.begin(), list.end(), [](int32_t r) { return r >= 0; }));
    d["neighbours"] = neighbours;
    d["file"] = use[i].line == 0 ? "" : t.files[use[i].rank];
    d["line"] = use[i].line;
    out.append(d);
  }
  return out;
}

// Where each action first occurs.
py::dict first_lines(const Trace &t) {
  std::vector<bool> seen(std::size(retrompi::WORDS));
  py::dict out;
  for (size_t r = 0; r < t.ranks.size(); ++r)
    for (const Action &a : t.ranks[r]) {
      if (a.op == Op::Mark) continue;
      const retrompi::Word &word = retrompi::word_of(a);
      const size_t i = retrompi::word_index(word);
      if (seen[i]) continue;
      seen[i] = true;
      out[py::str(std::string(word.name))] = retrompi::row_of({t.files[r], a.line});
    }
  return out;
}

py::dict communicator(const Trace &t, int32_t id) {
  const auto c = std::find_if(t.comms.begin(), t.comms.end(), [&](const retrompi::Comm &x) { return x.id == id; });
  if (c == t.comms.end()) throw py::key_error("no communicator " + std::to_string(id) + " in the trace");
  py::dict d;
  d["id"] = c->id;
  d["kind"] = kind_name(c->kind);
  d["group"] = c->group;
  d["remote"] = c->remote;
  d["dims"] = c->dims;
  d["periods"] = std::vector<int>(c->periods.begin(), c->periods.end());
  d["sources"] = c->sources;
  d["destinations"] = c->destinations;
  return d;
}

// (name, n, file, line) of the first occurrence of every kernel and length
py::list kernels(const Trace &t) {
  std::set<std::pair<int32_t, int64_t>> seen;
  py::list out;
  for (size_t r = 0; r < t.ranks.size(); ++r)
    for (const Action &a : t.ranks[r])
      if (const auto *x = a.get_if<action::Kernel>(); x != nullptr && seen.emplace(x->label, x->length).second)
        out.append(retrompi::row_of({t.labels[static_cast<size_t>(x->label)], x->length, t.files[r], a.line}));
  return out;
}

// The arguments of an action beyond the eight fields of plain TI; only those on its line.
py::dict extension(const Trace &t, const Action &a) {
  py::dict d;
  const auto matched = [&](const action::Envelope &with) {
    if (!a.matched()) return;
    d["from"] = with.source;
    d["mtag"] = with.tag;
  };
  if (a.comm != 0) d["comm"] = t.comms[static_cast<size_t>(a.comm)].id;
  if (a.request != 0) d["req"] = a.request;
  if (a.told() && a.op != Op::Waitany && a.op != Op::Waitsome) d["flag"] = a.done();
  if (const auto *x = a.get_if<action::SendReceive>()) {
    d["stag"] = x->send_tag;
    d["rtag"] = x->receive_tag;
    matched(x->matched);
  } else if (const auto *x = a.get_if<action::PointToPoint>()) {
    matched(x->matched);
  } else if (const auto *x = a.get_if<action::OneRequest>()) {
    matched(x->matched);
  } else if (const auto *x = a.get_if<action::Rma>()) {
    d["win"] = x->window;
  } else if (const auto *x = a.get_if<action::NewWindow>()) {
    d["win"] = x->window;
  } else if (const auto *x = a.get_if<action::WindowSync>()) {
    d["win"] = x->window;
    if (x->ranks >= 0) d["group"] = t.vec[static_cast<size_t>(x->ranks)];
  } else if (const auto *x = a.get_if<action::NewComm>()) {
    d["new"] = x->made < 0 ? -1 : t.comms[static_cast<size_t>(x->made)].id;
  } else if (const auto *x = a.get_if<action::Collective>()) {
    if (x->counts >= 0) d["counts"] = t.vec[static_cast<size_t>(x->counts)];
  } else if (const auto *x = a.get_if<action::SeveralRequests>(); x != nullptr && x->list >= 0) {
    const auto &all = t.vec[static_cast<size_t>(x->list)];
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(x->count);
    d["reqs"] = std::vector<int64_t>(all.begin(), middle);
    if (a.op == Op::Startall) {
      py::dict matches;
      for (auto m = middle; m + 2 < all.end(); m += 3) matches[py::int_(m[0])] = retrompi::row_of({m[1], m[2]});
      if (a.matched()) d["matched"] = matches;
    } else if (a.told()) {
      d["done"] = std::vector<int64_t>(middle, all.end());
    }
  }
  return d;
}

// (line, action, peer, tag, peer2, bytes, bytes2, amount); of a mark the action is "mark LABEL"
py::list rank_actions(const Trace &t, size_t rank, size_t first, std::optional<size_t> count, bool extended) {
  const auto &actions = t.ranks[checked_rank(t, rank)];
  py::list out;
  const size_t begin = std::min(first, actions.size());
  const size_t end = begin + std::min(count.value_or(actions.size()), actions.size() - begin);
  auto next = actions.from(begin);
  for (size_t i = begin; i < end; ++i, ++next) {
    const Action &a = *next;
    const bool mark = a.op == Op::Mark;
    const std::string name = mark ? "mark " + t.labels[static_cast<size_t>(a.get<action::Mark>().label)] : std::string(retrompi::action_name(a));
    const retrompi::FlatAction f = retrompi::flatten(a);
    const int32_t tag = mark ? 0 : f.tag;
    if (extended)
      out.append(retrompi::row_of({a.line, name, f.peer, tag, f.peer2, f.bytes, f.bytes2, f.amount, extension(t, a)}));
    else
      out.append(retrompi::row_of({a.line, name, f.peer, tag, f.peer2, f.bytes, f.bytes2, f.amount}));
  }
  return out;
}

}  // namespace

void bind_trace(py::module_ &m) {
  // The Python class is retrompi.traces.TraceError, a retrompi.base.errors.InputError, so that the command line treats it like
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
      .def_static("of_patterns", &of_patterns, py::arg("patterns"), py::arg("of"), py::arg("name"),
                  R"(A trace whose ranks follow a few patterns; raises TraceError.

``patterns`` are sources as of ``parse``, each of one rank; ``of`` (64-bit integers) is the number of the pattern of every rank, whose peers are at the
same distances as those of the pattern's rank: 0 sending to 1 makes 5 send to 6. ``name``: of the folder in messages.)")
      .def_static("parse", &parse, py::arg("sources"), py::arg("ranks") = 0, py::arg("undefined_source") = "refuse", py::arg("partial") = false,
                  R"(Parse ``[(bytes, name for messages, rank or -1 for one file of all ranks), ...]``; raises TraceError.

In place of the bytes there may be what yields them piece by piece whenever it is iterated; a file of all ranks is read twice.

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
      .def_property_readonly(
          "cut",
          [](const Trace &t) {
            return retrompi::row_of({rows(t, t.cut), t.cut_total});
          },
          "Ranks that begin with init and never reach finalize: ([(file, last line, action, reason), ...] at most 1000, how many in all).")
      .def_property_readonly(
          "uneven",
          [](const Trace &t) {
            return retrompi::row_of({rows(t, t.uneven), t.uneven_total});
          },
          "Ranks that call fewer or more collectives of a communicator than its first member, in the same form.")
      .def_property_readonly(
          "to_self",
          [](const Trace &t) {
            for (size_t r = 0; r < t.ranks.size(); ++r)
              for (const Action &a : t.ranks[r]) {
                const auto sent = retrompi::sent_by(a);
                const auto *rma = a.get_if<action::Rma>();
                if ((sent && sent->peer == static_cast<int32_t>(r)) || (rma != nullptr && rma->target == static_cast<int32_t>(r))) return true;
              }
            return false;
          },
          "Whether some rank sends to itself.")
      .def_property_readonly("sha256", &sha256, "SHA-256 of what the trace says: equal however it was stored.")
      .def(
          "unsupported", [](const Trace &t) { return rows(t, t.refused); },
          "Lines that cannot be simulated: (file, line, action, reason), at most 1000.")
      .def("traffic", &traffic,
           "Point-to-point and one-sided traffic: pairs (from, to, messages, bytes), sizes (largest length of a class, messages), receives, "
           "wildcards (from any source), matched (of these, what they matched is recorded).")
      .def("communicators", &communicators,
           "Every communicator, MPI_COMM_WORLD first: id, kind (intra, inter, cart, graph), made_by, size, remote_size, messages sent and "
           "collectives called on it by all ranks (calls: by name), neighbours (of all its ranks), file and line where it is made first.")
      .def("first_lines", &first_lines, "Where each action stands first, by its name: (file, line).")
      .def("communicator", &communicator, py::arg("id"),
           "One communicator: id, kind, group and remote (ranks of the world), dims and periods (cart), sources and destinations of each of its "
           "ranks (cart, graph; -666: none). KeyError when there is none.")
      .def("info", &info,
           "Totals: ranks, actions, calls by name, sends, bytes_sent, collectives, nonblocking_collectives (of these), one_sided, "
           "largest_B (the longest message or contribution), compute_flops, "
           "sleep_s, refused, warnings, memory_B, "
           "files.")
      .def(
          "to_ti", [](const Trace &t, size_t rank, bool shared) { return t.to_ti(checked_rank(t, rank), shared); }, py::arg("rank"),
          py::arg("shared") = false,
          "The rank's lines in the trace format, sizes in bytes; ``shared`` names the rank in marks, for one file of all ranks.")
      .def(
          "to_smpi",
          [](const Trace &t, size_t rank, bool shared) {
            Trace::SmpiLosses lost;
            return t.to_smpi(checked_rank(t, rank), shared, lost);
          },
          py::arg("rank"), py::arg("shared") = false,
          "The rank's lines in words that SMPI's replay reads; ``smpi_losses`` tells what that leaves out.")
      .def(
          "smpi_losses",
          [](const Trace &t) {
            Trace::SmpiLosses lost;
            for (size_t r = 0; r < t.ranks.size(); ++r) t.to_smpi(r, false, lost);
            py::list counts;
            for (const auto &[kind, n] : lost.counts) counts.append(retrompi::row_of({kind.action, kind.reason, kind.omitted, n}));
            return retrompi::row_of({rows(t, lost.first), counts});
          },
          "What ``to_smpi`` leaves out or changes: ([(file, line, action, reason), ...] at most 1000, [(action, reason, omitted, count), ...] of "
          "all).")
      .def("rank_actions", &rank_actions, py::arg("rank"), py::arg("first") = 0, py::arg("count") = py::none(), py::arg("extension") = false,
           "Actions as (line, action, peer, tag, peer2, bytes, bytes2, amount); the fields are described in engine/trace/flat_action.hpp. With "
           "``extension`` a "
           "dict stands behind them: comm, req, reqs, done, flag, from, mtag, stag, rtag, win, new, group, counts, where the line has them.")
      .def(
          "with_marks",
          [](const Trace &t, const py::iterable &marks) {
            std::vector<Trace::MarkAt> list;
            for (const py::handle given : marks) {
              retrompi::Fields f(given, 3, "marks");
              const size_t rank = checked_rank(t, f.next<size_t>());
              const auto line = f.next<uint32_t>();
              list.push_back({rank, line, f.next<std::string>()});
            }
            return t.with_marks(std::move(list));
          },
          py::arg("marks"), "A copy with marks ``[(rank, line, label), ...]``, each before the first action at or after its line.")
      .def(
          "with_outcomes",
          [](const Trace &t, const py::iterable &matches, const py::iterable &completions) {
            std::vector<Trace::Match> m;
            std::vector<Trace::Completion> c;
            for (const py::handle given : matches) {
              retrompi::Fields f(given, 4, "matches");
              const auto rank = f.next<size_t>();
              const auto line = f.next<uint32_t>();
              const auto source = f.next<int32_t>();
              m.push_back({rank, line, source, f.next<int32_t>()});
            }
            for (const py::handle given : completions) {
              retrompi::Fields f(given, 4, "completions");
              const auto rank = f.next<size_t>();
              const auto line = f.next<uint32_t>();
              const auto done = f.next<bool>();
              c.push_back({rank, line, done, f.next<std::vector<int64_t>>()});
            }
            return t.with_outcomes(m, c);
          },
          py::arg("matches"), py::arg("completions"),
          "A copy in which the receive or probe of each ``(rank, line, source, tag)`` takes that message and the test or wait of each ``(rank, "
          "line, done, requests)`` ends so; every other receive with a wildcard takes what comes first. Raises TraceError.")
      .def("scaled", &Trace::scaled, py::arg("factor"), "A copy with every amount of computation times ``factor``.")
      .def("smoothed", &Trace::smoothed,
           "A copy without the noise of the capture: in an iterative program, the computation before a call is its mean over the iterations.")
      .def("section_compute", &Trace::section_compute, py::arg("first"), py::arg("last"),
           "Computation of each rank, flops, while rank 0 runs its lines ``first`` to ``last``; the others' part lies between the same "
           "collectives.")
      .def(
          "dump", [](const Trace &t) { return py::bytes(t.dump()); }, "The parsed trace as bytes, for ``load`` in a worker on the same machine.")
      .def("save", &Trace::save, py::arg("path"), "Writes the parsed trace for ``open`` in another process of this machine.")
      .def_static("open", &Trace::open, py::arg("path"),
                  "A trace that reads its actions from the file of ``save`` when they are needed; the file may be unlinked meanwhile.")
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
