// The Python binding of the engine: dictionaries in, dictionaries out; no Python runs during a simulation.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <limits>

#include "bind/bind_results.hpp"
#include "bind/rows.hpp"
#include "channel/curve_set.hpp"
#include "network/platform_file.hpp"
#include "sim/sim.hpp"

namespace py = pybind11;
void bind_trace(py::module_& m);
void bind_wire(py::module_& m);
void bind_coll(py::module_& m);
void bind_path(py::module_& m);
void bind_store(py::module_& m);

namespace retrompi {
namespace {

/// Reads one dictionary of a compiled model; a missing or surplus key is reported as an internal error. Structs declared in spec/ have generated
/// readers.
class Reader {
 public:
  Reader(py::dict d, std::string where) : d_(std::move(d)), where_(std::move(where)) {}
  ~Reader() = default;
  double num(const char* k) { return get(k).cast<double>(); }
  Ps ps(const char* k) {
    try {
      return to_ps(num(k));
    } catch (const Overflow& past) {
      throw ConfigError(where_ + ": " + k + ": " + past.reason);
    }
  }
  int64_t integer(const char* k) { return integer<int64_t>(k); }
  template <class Whole>
  Whole integer(const char* k) {
    // The least and the number after the largest, both exact as a double.
    constexpr double kLow = static_cast<double>(std::numeric_limits<Whole>::min());
    constexpr double kEnd = static_cast<double>(std::numeric_limits<Whole>::max() / 2 + 1) * 2;
    const double n = std::floor(num(k) + 0.5);
    if (!(n >= kLow && n < kEnd)) throw ConfigError(where_ + ": " + k + " is outside of the range of its kind");
    return static_cast<Whole>(n);
  }
  std::string text(const char* k) { return get(k).cast<std::string>(); }
  py::object get(const char* k) {
    if (!d_.contains(k)) throw ConfigError(where_ + ": '" + k + "' is missing");
    ++read_;
    return d_[k];
  }
  void end() const {
    if (read_ != py::len(d_)) throw ConfigError(where_ + ": " + std::to_string(py::len(d_) - read_) + " keys are not known to the engine");
  }

  void seconds(const char* k, Ps& v) { v = ps(k); }
  void seconds_per_byte(const char* k, double& v) {
    number(k, v);
    v *= kPsPerSecond;
  }
  void number(const char* k, double& v) {
    v = num(k);
    require(std::isfinite(v), k, "a finite number");
  }
  void flag(const char* k, bool& v) { v = num(k) != 0; }
  void text(const char* k, std::string& v) { v = text(k); }
  template <class Whole>
  void whole(const char* k, Whole& v) {
    v = integer<Whole>(k);
  }
  template <class Enum>
  void choice(const char* k, Enum& v, std::initializer_list<std::pair<const char*, Enum>> words) {
    const std::string given = text(k);
    std::string valid;
    for (const auto& [word, meaning] : words) {
      if (given == word) return void(v = meaning);
      if (!valid.empty()) valid += ", ";
      valid += word;
    }
    std::string message = where_;
    message.append(": ").append(k).append(": '").append(given).append("'; valid: ").append(valid);
    throw ConfigError(message);
  }
  template <class T>
  void value(const char* k, T& v) {
    v = get(k).cast<T>();
  }
  void require(bool held, const char* k, const char* bounds) const {
    if (held) return;
    std::string message = where_;
    throw ConfigError(message.append(": ").append(k).append(" must be ").append(bounds));
  }

 private:
  py::dict d_;
  std::string where_;
  size_t read_ = 0;
};

template <class Spec>
Spec read(const py::handle& o, const std::string& where) {
  Reader r(o.cast<py::dict>(), where);
  Spec spec;
  spec.read(r);
  r.end();
  return spec;
}

template <>
void Reader::value(const char* k, WaitPolicy& v) {
  v = read<WaitPolicy>(get(k), where_ + ": " + k);
}
template <>
void Reader::value(const char* k, Ends& v) {
  Fields fields(get(k), 2, k);
  v.from = fields.next<std::string>();
  v.to = fields.next<std::string>();
}

std::shared_ptr<const CurveSet> curve_set(const py::object& o) {
  Reader r(o.cast<py::dict>(), "curve");
  auto set = std::make_shared<CurveSet>();
  set->classes = r.get("classes").cast<std::vector<size_t>>();
  set->of = r.get("of").cast<std::vector<std::vector<int32_t>>>();
  set->rank_ports = r.text("ports") == "rank";
  for (const py::handle given : r.get("tables")) {
    Fields fields(given, 3, "curve: tables");
    CurveTable table;
    const py::handle rows = fields.next_field();
    table.limit = fields.next_if_any<int64_t>().value_or(INT64_MAX);
    table.reason = fields.next<std::string>();
    for (const py::handle row : rows) {
      Fields point(row, 8, "curve: points");
      std::array<int64_t, 8> p{};
      for (int64_t& v : p) v = point.next<int64_t>();
      if (p[0] < 0 || (!table.points.empty() && p[0] <= table.points.back().size)) throw ConfigError("curve: sizes must rise from 0 on");
      if (std::any_of(p.begin(), p.end(), [](int64_t v) { return v < 0; })) throw ConfigError("curve: a time is negative");
      table.points.push_back({p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]});
    }
    if (table.points.empty()) throw ConfigError("curve: a table has no points");
    set->tables.push_back(std::move(table));
  }
  r.end();
  return set;
}

template <>
void Reader::value(const char* k, std::shared_ptr<const CurveSet>& v) {
  v = curve_set(get(k));
}

HopSpec hop(const py::handle& o) {
  Reader r(o.cast<py::dict>(), "hop");
  HopSpec h = read_hop(r);
  r.end();
  std::visit(
      [](auto& medium) {
        if constexpr (requires { medium.space_wait; }) medium.space_wait.what = WaitFor::Space;
      },
      h);
  return h;
}

const coll::Algorithm& algorithm(Op op, const std::string& name) {
  if (const coll::Algorithm* a = coll::find(op, name)) return *a;
  std::string valid;
  for (const std::string_view n : coll::names(op)) valid.append(valid.empty() ? "" : ", ").append(n);
  throw ConfigError(std::string(op_name(op)) + ": no algorithm '" + name + "'; valid: " + valid);
}

Op operation(const std::string& name, const char* where) {
  for (int i = 0; i < OP_COUNT; ++i)
    if (name == op_name(static_cast<Op>(i))) return static_cast<Op>(i);
  throw ConfigError(std::string(where) + ": no operation '" + name + "'");
}

/// Rows (operation, algorithm, from B, to B or None, ranks from, ranks to or None, "any" | "power" | "other", "both" | "blocking" | "nonblocking",
/// only where members share a host).
void collectives(coll::Table& table, const py::object& o) {
  std::map<Op, std::vector<coll::Row>> by_op;
  for (const py::handle given : o) {
    Fields fields(given, 9, "collectives");
    const Op op = operation(fields.next<std::string>(), "collectives");
    coll::Row row{.algorithm = &algorithm(op, fields.next<std::string>())};
    row.from = static_cast<int64_t>(fields.next<double>());
    if (const auto to = fields.next_if_any<double>()) row.to = static_cast<int64_t>(*to);
    row.ranks_from = fields.next<int32_t>();
    if (const auto to = fields.next_if_any<int32_t>()) row.ranks_to = *to;
    const auto count = fields.next<std::string>(), forms = fields.next<std::string>();
    row.count = count == "power" ? coll::Row::PowerOfTwo : count == "other" ? coll::Row::NotPowerOfTwo : coll::Row::Any;
    row.blocking = forms != "nonblocking";
    row.nonblocking = forms != "blocking";
    row.nodes = fields.next<bool>();
    by_op[op].push_back(row);
  }
  for (auto& [op, rows] : by_op) table.prefer(op, std::move(rows));
}

/// Work of the library besides messages: {"call": {operation: points}, "combine": points, "buffers": [points, points]}; a point is (B, ps).
void work(coll::Work& w, const py::object& o) {
  auto cost = [](const py::handle& points) {
    coll::Cost made;
    for (const py::handle given : points) {
      Fields point(given, 2, "work: points");
      const auto size = point.next<int64_t>(), ps = point.next<int64_t>();
      if (size < 0 || ps < 0 || (!made.points.empty() && size <= made.points.back().first))
        throw ConfigError("work: sizes must rise from 0 on, and no time is negative");
      made.points.emplace_back(size, ps);
    }
    return made;
  };
  Reader r(o.cast<py::dict>(), "work");
  for (const auto& [name, points] : r.get("call").cast<py::dict>()) w.call.emplace_back(operation(name.cast<std::string>(), "work"), cost(points));
  w.combine = cost(r.get("combine"));
  const py::object given = r.get("buffers");
  if (py::len(given) != w.buffers.size()) throw ConfigError("work: buffers are two lists of points");
  Fields buffers(given, w.buffers.size(), "work: buffers");
  for (coll::Cost& c : w.buffers) c = cost(buffers.next_field());
  r.end();
}

/// Reads the specification of a job, the first or a further one.
void job_config(Reader& r, const py::dict& d, JobConfig& c) {
  c.placement = r.get("placement").cast<std::vector<size_t>>();
  c.cores = r.get("cores").cast<std::vector<int>>();
  for (const auto& h : r.get("same").cast<py::list>()) c.same.push_back(hop(h));
  for (const auto& h : r.get("same_bulk").cast<py::list>()) c.same_bulk.push_back(hop(h));
  for (const auto& h : r.get("remote").cast<py::list>()) c.remote.push_back(hop(h));
  auto rows = [](const py::object& o) {
    std::vector<ProtocolRow> out;
    for (const py::handle given : o.cast<py::list>()) {
      Fields fields(given, 3, "protocol");
      const auto from = fields.next<double>(), to = fields.next<double>();
      const auto kind = fields.next<std::string>();
      ProtocolRow::Kind row = ProtocolRow::Eager;
      if (kind == "rendezvous")
        row = ProtocolRow::Rendezvous;
      else if (kind == "direct")
        row = ProtocolRow::Direct;
      else if (kind != "eager")
        throw ConfigError("unknown protocol '" + kind + "'; valid: direct, eager, rendezvous");
      out.push_back({static_cast<int64_t>(from), to < 9e18 ? static_cast<int64_t>(to) : INT64_MAX, row});
    }
    return out;
  };
  c.rank.same = rows(r.get("protocol_same"));
  c.rank.remote = rows(r.get("protocol_remote"));
  auto staging = [](const py::object& o) {
    Fields fields(o, 6, "staging");
    std::array<double, 6> t{};
    for (double& x : t) x = fields.next<double>();
    return Staging{t[0], t[1], t[2] * kPsPerSecond, t[3], static_cast<int64_t>(t[4]), static_cast<int64_t>(t[5])};
  };
  c.rank.staging_same = staging(r.get("staging_same"));
  c.rank.staging_remote = staging(r.get("staging_remote"));
  c.rank.send_cpu = {r.ps("send_cpu")};
  c.rank.recv_cpu = {r.ps("recv_cpu")};
  c.rank.test = {{r.ps("test_cpu")}, {r.ps("test_system")}};
  c.rank.convert_byte = r.num("convert_byte") * kPsPerSecond;
  c.rank.convert_buffer = r.integer("convert_buffer");
  c.rank.convert_call = {r.ps("convert_call")};
  c.rank.lock = {{r.ps("call_lock")}, {r.ps("lock_system")}};
  c.rank.direct_call = {r.ps("direct_call")};
  c.rank.recv_wait = read<WaitPolicy>(r.get("recv_wait"), "recv_wait");
  c.rank.send_wait = read<WaitPolicy>(r.get("send_wait"), "send_wait");
  auto rma = [](const py::object& o) {
    if (o.is_none()) return RmaSpec{};
    return RmaSpec{read<OneSidedSpec>(o, "one-sided"), true};
  };
  c.rma_same = rma(r.get("one_sided_same"));
  c.rma_remote = rma(r.get("one_sided_remote"));
  const auto broadcast = read<BroadcastSpec>(r.get("bcast"), "bcast");
  c.collectives.prefer(Op::Bcast, {coll::Row{.algorithm = &algorithm(Op::Bcast, broadcast.algorithm)}});
  c.collectives.copies_root = broadcast.copies_root;
  c.collectives.copies_leaf = broadcast.copies_leaf;
  if (d.contains("wildcards")) {
    const std::string wildcards = r.text("wildcards");
    if (wildcards != "recorded" && wildcards != "free") throw ConfigError("wildcards: '" + wildcards + "'; valid: free, recorded");
    c.free_wildcards = wildcards == "free";
  }
  if (d.contains("order"))
    for (const py::handle given : r.get("order")) {
      Fields fields(given, 2, "order");
      const auto rank = fields.next<int32_t>();
      const auto line = fields.next<uint32_t>();
      if (rank < 0 || static_cast<size_t>(rank) >= c.placement.size()) throw ConfigError("order: no rank " + std::to_string(rank));
      c.order.push_back({.rank = rank, .line = line, .begun = false});
    }
  if (d.contains("collectives")) collectives(c.collectives, r.get("collectives"));
  if (d.contains("work")) work(c.collectives.work, r.get("work"));
  if (d.contains("context_bytes")) c.collectives.context_bytes = r.integer("context_bytes");
  if (d.contains("split_gathers")) c.collectives.split_gathers = r.get("split_gathers").cast<bool>();
  for (const auto& [k, v] : r.get("idle").cast<py::dict>()) c.idle[k.cast<std::string>()] = read<WaitPolicy>(v, "idle");
  for (const auto& [k, v] : r.get("forward_cost").cast<py::dict>()) c.forward_cost[k.cast<std::string>()] = {to_ps(v.cast<double>())};
  c.unexpected_limit = r.integer("unexpected_limit");
  if (d.contains("kernels"))
    for (const py::handle given : r.get("kernels").cast<py::list>()) {
      Fields fields(given, 3, "kernels");
      auto name = fields.next<std::string>();
      const auto length = fields.next<int64_t>();
      auto seconds = fields.next<std::vector<double>>();
      for (const double s : seconds)
        if (!(s > 0 && s < 1e12)) throw ConfigError("kernel '" + name + "': seconds must be more than nothing");
      c.kernels.push_back({std::move(name), length, std::move(seconds)});
    }
  c.compute_scale = r.num("compute_scale");
  c.memory_share = r.num("memory_share");
  if (!(c.memory_share >= 0 && c.memory_share <= 1)) throw ConfigError("memory_share must be in 0..1");
  c.rank.recv_wait.what = WaitFor::Message;
  c.rank.send_wait.what = WaitFor::Send;
}

JobConfig further_job(const py::dict& d) {
  Reader r(d, "job");
  JobConfig c;
  c.name = r.text("name");
  c.start = r.ps("start");
  c.background = r.get("background").cast<bool>();
  job_config(r, d, c);
  r.end();
  return c;
}

/// {"kinds": the values that hosts share, "kind_of": of each host, "names": of each host}
void hosts(const py::object& o, std::vector<NamedHost>& out) {
  Reader r(o.cast<py::dict>(), "hosts");
  std::vector<std::shared_ptr<const HostSpec>> kinds;
  for (const auto& h : r.get("kinds").cast<py::list>()) kinds.push_back(std::make_shared<const HostSpec>(read<HostSpec>(h, "host")));
  const auto kind_of = r.get("kind_of").cast<std::vector<size_t>>();
  auto names = r.get("names").cast<std::vector<std::string>>();
  r.end();
  if (names.size() != kind_of.size()) throw ConfigError("hosts: every host needs a name and a kind");
  out.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (kind_of[i] >= kinds.size()) throw ConfigError("hosts: host '" + names[i] + "' has an unknown kind");
    out.push_back({kinds[kind_of[i]], std::move(names[i])});
  }
}

SimConfig config(const py::dict& d) {
  Reader r(d, "simulation");
  SimConfig c;
  hosts(r.get("hosts"), c.hosts);
  c.link = read_link(r.get("link"));
  if (d.contains("wire")) {
    const std::string wire = r.text("wire");
    const std::string law = wire.substr(0, wire.find(':'));
    if (wire == "fluid") {
      c.network = SimConfig::Network::Fluid;
    } else if (law == "simgrid") {
      c.network = SimConfig::Network::Simgrid;
      if (law != wire) c.simgrid_model = wire.substr(law.size() + 1);
    } else if (wire != "native") {
      throw ConfigError("unknown network '" + wire + "'; valid: native, fluid, simgrid, simgrid:MODEL");
    }
  }
  c.positions = r.get("positions").cast<std::vector<size_t>>();
  if (d.contains("traffic"))
    for (const py::handle given : r.get("traffic")) {
      Fields fields(given, 7, "traffic");
      const auto from = fields.next<int>(), to = fields.next<int>();
      const auto rate = fields.next<double>();
      const auto frame = fields.next<int64_t>();
      const auto law = fields.next<int>();
      const auto on = fields.next<double>(), off = fields.next<double>();
      const auto ends = static_cast<int>(c.positions.size());
      if (from >= ends || to >= ends || (from >= 0 && from == to) || ends < 2) throw ConfigError("traffic goes from one machine to another");
      if (!(rate > 0) || frame < 1 || law < 0 || law > 2) throw ConfigError("traffic: a rate, a frame and a law are needed");
      c.traffic.push_back({static_cast<TrafficSpec::Law>(law), from, to, rate, frame, to_ps(on), to_ps(off)});
    }
  if (d.contains("failures"))
    for (const py::handle given : r.get("failures")) {
      Fields fields(given, 6, "failures");
      const auto what = fields.next<int>();
      const auto a = fields.next<size_t>(), b = fields.next<size_t>();
      const auto from = fields.next<double>(), until = fields.next<double>();
      auto name = fields.next<std::string>();
      if (what < 0 || what > Failure::Rail) throw ConfigError("failures: unknown kind " + std::to_string(what));
      c.failures.push_back(
          {static_cast<Failure::What>(what), a, b, to_ps_or_never(from), until < 0 ? kNever : to_ps_or_never(until), std::move(name)});
    }
  job_config(r, d, c);
  c.seed = r.get("seed").cast<uint64_t>();
  c.limit_s = r.num("limit_s");
  if (d.contains("event_limit")) c.limits.events = r.get("event_limit").cast<uint64_t>();
  if (d.contains("wall_limit")) c.limits.wall_s = r.num("wall_limit");
  if (d.contains("memory_limit")) c.limits.memory = r.integer("memory_limit");
  c.anatomy = r.get("anatomy").cast<bool>();
  c.anatomy_rank = static_cast<int32_t>(r.integer("anatomy_rank"));
  c.anatomy_from = r.text("anatomy_from");
  c.anatomy_to = r.text("anatomy_to");
  for (const py::handle given : r.get("kills")) {
    Fields fields(given, 2, "kills");
    auto name = fields.next<std::string>();
    c.kills.emplace_back(std::move(name), to_ps_or_never(fields.next<double>()));
  }
  if (d.contains("directions"))
    for (const py::handle given : r.get("directions")) {
      Fields fields(given, 4, "directions");
      const auto from_rank = fields.next<int32_t>();
      auto from = fields.next<std::string>();
      const auto to_rank = fields.next<int32_t>();
      c.directions.push_back({from_rank, std::move(from), to_rank, fields.next<std::string>()});
    }
  if (d.contains("trace_events")) r.text("trace_events", c.trace_events);
  c.critical_path = d.contains("critical_path") && r.integer("critical_path") != 0;
  c.repetitions = d.contains("repetitions") && r.integer("repetitions") != 0;
  c.profile = d.contains("profile") && r.integer("profile") != 0;
  if (d.contains("timeline_limit")) {
    c.timeline.limit = r.integer("timeline_limit");
    c.timeline.from = to_ps_or_never(r.num("timeline_from"));
    c.timeline.until = to_ps_or_never(r.num("timeline_until"));
  }
  if (d.contains("jobs"))
    for (const auto& j : r.get("jobs").cast<py::list>()) c.further.push_back(further_job(j.cast<py::dict>()));
  r.end();
  return c;
}

/// The results reported for every job.
void job_dict(py::dict& o, const JobResult& s) {
  o["outcome"] = outcome_name(s.outcome);
  o["detail"] = s.detail;
  o["time_ps"] = s.time;
  put_fields(o, static_cast<const CounterFields&>(s.count));
  py::dict done;
  for (int op = 0; op < OP_COUNT; ++op)
    if (s.count.done[static_cast<size_t>(op)] > 0) done[op_name(static_cast<Op>(op))] = s.count.done[static_cast<size_t>(op)];
  o["done"] = done;
  o["per_rank"] = rank_columns(s.ranks);
  o["waits"] = rows_of(s.waits);
  py::list chosen;
  for (const auto& u : s.collectives) chosen.append(row_of({op_name(u.op), u.algorithm->name, u.calls}));
  o["collectives"] = chosen;
  o["leftovers"] = s.leftovers;
  if (is_negative(s.outcome)) o["diagnosis"] = diagnosis_dict(s.why);
}

py::dict run(const py::dict& d, const Trace& trace, const std::vector<const Trace*>& further) {
  const SimConfig c = [&d] {
    try {
      return config(d);
    } catch (const Overflow& past) {
      throw ConfigError(past.reason);
    }
  }();
  SimResult s;
  {
    py::gil_scoped_release release;
    s = simulate(c, trace, further);
  }
  py::dict o;
  job_dict(o, s);
  put_fields(o, static_cast<const Totals&>(s));
  o["state_incomplete"] = s.state_incomplete;
  o["unconfirmed"] = s.unconfirmed;
  py::list marks;
  for (const auto& m : s.marks) marks.append(row_of({m.rank, trace.labels[static_cast<size_t>(m.label)], m.time}));
  o["marks"] = marks;
  py::list rows;
  for (const auto& a : s.anatomy) rows.append(row_of({a.stage, a.process, a.ps}));
  o["anatomy"] = rows;
  o["anatomy_total_ps"] = s.anatomy_total;
  o["end_ps"] = s.end;
  if (s.message_path) o["message_path"] = message_path_dict(*s.message_path);
  if (s.timeline) o["timeline"] = timeline_dict(*s.timeline, trace);
  if (c.critical_path) o["critical_path"] = critical_path_dict(s);
  if (s.profile) o["profile"] = profile_dict(*s.profile);
  py::list jobs;
  for (const JobResult& j : s.further) {
    py::dict e;
    job_dict(e, j);
    e["start_ps"] = j.start;
    e["runs"] = j.runs;
    jobs.append(e);
  }
  o["jobs"] = jobs;
  o["failed"] = s.failed;
  o["traffic"] = rows_of(s.traffic);
  return o;
}

}  // namespace

LinkSpec read_link(const py::object& given) { return read<LinkSpec>(given, "link"); }

}  // namespace retrompi

PYBIND11_MODULE(_engine, m) {
  m.doc() = "The discrete-event engine of retrompi (C++ on SimGrid).";
  py::register_exception<retrompi::ConfigError>(m, "ConfigError", PyExc_ValueError);
  bind_trace(m);
  bind_wire(m);
  bind_coll(m);
  bind_path(m);
  bind_store(m);
  m.def(
      "library_steps",
      [](const py::dict& d, const retrompi::Trace& trace) {
        py::list all;
        for (const auto& lines : retrompi::library_steps(retrompi::config(d), trace)) {
          py::list rank;
          for (const auto& line : lines) {
            py::list calls;
            for (const auto& call : line.calls) {
              py::list steps;
              for (const auto& s : call.steps) steps.append(retrompi::row_of({s.kind, s.peer, s.slot, s.bytes}));
              calls.append(retrompi::row_of({call.context, call.tag, steps}));
            }
            rank.append(retrompi::row_of({line.line, calls}));
          }
          all.append(rank);
        }
        return all;
      },
      py::arg("config"), py::arg("trace"),
      "What the library does for the collectives and new communicators of a trace, by rank: [(line, [(context, tag, [(step, peer, slot, bytes), "
      "...]), ...]), ...], peers of the world.");
  m.def("simulate", &retrompi::run, py::arg("config"), py::arg("trace"), py::arg("further") = std::vector<const retrompi::Trace*>{},
        "Runs one simulation. At most one with the reference wire in the life of a process: SimGrid allows no second.");
  m.def(
      "memory_slowdown",
      [](double share, const std::vector<double>& others, double streams) { return retrompi::memory_slowdown(share, others, streams); },
      py::arg("share"), py::arg("others"), py::arg("streams"),
      "How much longer than alone a processor takes that waits for main memory for a share of its time, beside others with theirs.");
  m.def(
      "read_platform_file",
      [](const std::string& path) {
        const auto found = retrompi::read_platform_file(path);
        py::list hosts, links;
        for (const auto& h : found.hosts) hosts.append(retrompi::row_of({h.name, h.speed, h.cores}));
        for (const auto& l : found.links) links.append(retrompi::row_of({l.name, l.bandwidth, l.latency}));
        return retrompi::row_of({hosts, links});
      },
      py::arg("path"),
      "A SimGrid platform file: its hosts (name, flop/s of a core, cores) and links (name, B/s, s). One file in the life of a process.");
  m.def("simgrid_network_models", &retrompi::simgrid_network_models, "Its own network models, by name.");
  m.def("simgrid_version", &retrompi::simgrid_version, "Version of the SimGrid library in use.");
}
