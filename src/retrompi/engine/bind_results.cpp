#include "bind_results.hpp"

#include <pybind11/stl.h>

#include "trace.hpp"

namespace py = pybind11;

namespace retrompi {

namespace {

py::list rows(const std::vector<Row>& table) {
  py::list out;
  for (const Row& row : table) {
    py::dict d;
    for (const auto& [name, value] : row) std::visit([&d, n = name](const auto& v) { d[n] = v; }, value);
    out.append(d);
  }
  return out;
}

template <class T, class Rows, class F>
py::bytes column(const Rows& rows, F get) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const auto& r : rows) values.push_back(static_cast<T>(get(r)));
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

py::dict diagnosis_dict(const Diagnosis& d) {
  py::dict o;
  o["summary"] = d.summary;
  o["told"] = py::list();
  for (const std::string& s : d.told) o["told"].cast<py::list>().append(s);
  o["closed"] = d.closed;
  o["cycle"] = rows(d.cycle);
  o["collectives"] = rows(d.collectives);
  o["near_misses"] = rows(d.near_misses);
  o["unreceived"] = rows(d.unreceived);
  o["unreceived_total"] = d.unreceived_total;
  o["resource"] = d.resource;
  o["held"] = rows(d.held);
  o["held_total"] = d.held_total;
  o["pairs"] = rows(d.pairs);
  return o;
}

py::dict profile_dict(const CallProfile& p) {
  py::list calls;
  for (const auto& [key, sum] : p.rows) calls.append(py::make_tuple(key.call, key.bytes, key.section, sum.count, sum.time));
  py::dict o;
  o["calls"] = calls;
  o["finalized_ps"] = p.finalized;
  return o;
}

py::dict timeline_dict(const Timeline& t, const Trace& trace) {
  py::dict o;
  py::list states;
  for (size_t s = 0; s < kStates; ++s) states.append(state_name(s));
  o["states"] = states;
  py::list processes;
  for (const auto& p : t.processes) {
    py::dict d;
    d["name"] = p.name;
    d["kind"] = p.kind;
    d["host"] = p.host;
    d["end"] = p.end;
    d["begin"] = column<int64_t>(p.states, [](const auto& s) { return s.begin; });
    d["state"] = column<int8_t>(p.states, [](const auto& s) { return s.state; });
    d["merged"] = column<int8_t>(p.states, [](const auto& s) { return s.merged ? 1 : 0; });
    py::list totals;
    for (const Ps ps : p.totals) totals.append(ps);
    d["totals"] = totals;
    processes.append(d);
  }
  o["processes"] = processes;
  py::list ops;
  for (int op = 0; op < OP_COUNT; ++op) ops.append(op_name(static_cast<Op>(op)));
  o["ops"] = ops;
  py::dict calls;
  calls["rank"] = column<int32_t>(t.calls, [](const auto& c) { return c.rank; });
  calls["line"] = column<int32_t>(t.calls, [](const auto& c) { return c.line; });
  calls["op"] = column<int8_t>(t.calls, [](const auto& c) { return c.op; });
  calls["comm"] = column<int32_t>(t.calls, [](const auto& c) { return c.comm; });
  calls["peer"] = column<int32_t>(t.calls, [](const auto& c) { return c.peer; });
  calls["tag"] = column<int32_t>(t.calls, [](const auto& c) { return c.tag; });
  calls["bytes"] = column<int64_t>(t.calls, [](const auto& c) { return c.bytes; });
  calls["begin"] = column<int64_t>(t.calls, [](const auto& c) { return c.begin; });
  calls["end"] = column<int64_t>(t.calls, [](const auto& c) { return c.end; });
  calls["open"] = column<int8_t>(t.calls, [](const auto& c) { return c.open ? 1 : 0; });
  o["calls"] = calls;
  py::dict messages;
  const auto& ms = t.messages;
  messages["source"] = column<int32_t>(ms, [](const auto& m) { return m.src; });
  messages["destination"] = column<int32_t>(ms, [](const auto& m) { return m.dst; });
  messages["tag"] = column<int32_t>(ms, [](const auto& m) { return m.tag; });
  messages["context"] = column<int32_t>(ms, [](const auto& m) { return m.ctx; });
  messages["bytes"] = column<int64_t>(ms, [](const auto& m) { return m.bytes; });
  messages["line"] = column<int32_t>(ms, [](const auto& m) { return m.line; });
  messages["sent"] = column<int64_t>(ms, [](const auto& m) { return m.sent; });
  messages["received"] = column<int64_t>(ms, [](const auto& m) { return m.received; });
  messages["rendezvous"] = column<int8_t>(ms, [](const auto& m) { return m.rendezvous ? 1 : 0; });
  messages["hops"] = column<int32_t>(ms, [](const auto& m) { return m.hops.size(); });
  std::vector<Timeline::Hop> hops;
  for (const auto& m : ms) hops.insert(hops.end(), m.hops.begin(), m.hops.end());
  messages["hop_process"] = column<int32_t>(hops, [](const auto& h) { return h.process; });
  messages["hop_in"] = column<int64_t>(hops, [](const auto& h) { return h.in; });
  messages["hop_out"] = column<int64_t>(hops, [](const auto& h) { return h.out; });
  o["messages"] = messages;
  py::list traffic;
  for (const auto& [pair, x] : t.traffic)
    traffic.append(py::make_tuple(pair.first, pair.second, x.messages, x.bytes, x.in_collectives, x.collective_bytes, x.transfers, x.transferred));
  o["traffic"] = traffic;
  py::list comms;
  for (const Comm& c : trace.comms) comms.append(py::make_tuple(c.id, c.group, c.remote));
  o["comms"] = comms;
  o["resolution"] = t.resolution();
  o["every_call"] = t.every_call();
  o["every_message"] = t.every_message();
  o["states_seen"] = t.states_seen();
  o["calls_seen"] = t.calls_seen();
  o["messages_seen"] = t.messages_seen();
  return o;
}

}  // namespace retrompi
