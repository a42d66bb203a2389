#include "bind/bind_results.hpp"

#include "bind/rows.hpp"
#include "trace/trace.hpp"

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

py::dict rank_columns(const std::vector<RankRow>& ranks) {
  py::dict o;
  RankRow::each([&](const char* name, auto field) { o[name] = column<int64_t>(ranks, [field](const RankRow& k) { return k.*field; }); });
  return o;
}

py::dict critical_path_dict(const SimResult& run) {
  py::dict o;
  o["end_ps"] = column<int64_t>(run.critical_path, [](const auto& p) { return p.end; });
  o["stage"] = column<uint8_t>(run.critical_path, [](const auto& p) { return p.s; });
  o["who"] = column<uint32_t>(run.critical_path, [](const auto& p) { return p.who; });
  o["names"] = run.critical_names;
  py::list stages;
  for (size_t i = 0; i <= static_cast<size_t>(Stage::Latency); ++i) stages.append(stage_name(static_cast<Stage>(i)));
  o["stages"] = stages;
  if (run.path_graph) o["graph"] = path_graph_dict(*run.path_graph);
  return o;
}

py::dict diagnosis_dict(const Diagnosis& d) {
  py::dict o;
  o["summary"] = d.summary;
  o["told"] = d.told;
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
  for (const auto& [key, sum] : p.rows) calls.append(row_of({key.call, key.bytes, key.section, sum.count, sum.time}));
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
  messages["receive_line"] = column<int32_t>(ms, [](const auto& m) { return m.receive_line; });
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
    traffic.append(row_of({pair.first, pair.second, x.messages, x.bytes, x.in_collectives, x.collective_bytes, x.transfers, x.transferred}));
  o["traffic"] = traffic;
  py::list comms;
  for (const Comm& c : trace.comms) comms.append(row_of({c.id, py::cast(c.group), py::cast(c.remote)}));
  o["comms"] = comms;
  o["resolution"] = t.resolution();
  o["every_call"] = t.every_call();
  o["every_message"] = t.every_message();
  o["states_seen"] = t.states_seen();
  o["calls_seen"] = t.calls_seen();
  o["messages_seen"] = t.messages_seen();
  return o;
}

py::dict message_path_dict(const MessagePathResult& j) {
  py::dict o;
  py::list stages;
  for (auto s = static_cast<int>(Stage::Library); s <= static_cast<int>(Stage::Wait); ++s) stages.append(stage_name(static_cast<Stage>(s)));
  o["stages"] = stages;
  py::list waits;
  for (int w = 0; w < static_cast<int>(WaitFor::Count); ++w) waits.append(wait_name(static_cast<WaitFor>(w)));
  o["waits"] = waits;
  o["hosts"] = py::cast(j.hosts);
  py::list directions;
  for (const auto& direction : j.directions) {
    py::dict d;
    d["begin"] = direction.begin;
    d["end"] = direction.end;
    d["links_begin"] = column<int64_t>(direction.chain, [](const auto& k) { return k.begin; });
    d["links_end"] = column<int64_t>(direction.chain, [](const auto& k) { return k.end; });
    d["stage"] = column<int8_t>(direction.chain, [](const auto& k) { return k.stage; });
    d["process"] = column<int32_t>(direction.chain, [](const auto& k) { return k.process; });
    d["packet"] = column<int32_t>(direction.chain, [](const auto& k) { return k.packet; });
    py::list who;
    for (const auto& k : direction.chain) who.append(k.who);
    d["who"] = who;
    directions.append(d);
  }
  o["directions"] = directions;
  py::list processes;
  for (const auto& p : j.processes) {
    py::dict d;
    d["name"] = p.name;
    d["host"] = p.host;
    d["begin"] = column<int64_t>(p.stretches, [](const auto& s) { return s.begin; });
    d["end"] = column<int64_t>(p.stretches, [](const auto& s) { return s.end; });
    d["stage"] = column<int8_t>(p.stretches, [](const auto& s) { return s.s; });
    d["why"] = column<int8_t>(p.stretches, [](const auto& s) { return s.why; });
    processes.append(d);
  }
  o["processes"] = processes;
  py::list channels;
  for (const auto& c : j.channels) channels.append(row_of({c.number, c.from, c.to, c.medium, c.resource, c.total, c.unit}));
  o["channels"] = channels;
  py::dict transits;
  const auto& ps = j.transits;
  transits["channel"] = column<int32_t>(ps, [](const auto& p) { return p.channel; });
  transits["source"] = column<int32_t>(ps, [](const auto& p) { return p.from; });
  transits["target"] = column<int32_t>(ps, [](const auto& p) { return p.to; });
  transits["src"] = column<int32_t>(ps, [](const auto& p) { return p.src; });
  transits["dst"] = column<int32_t>(ps, [](const auto& p) { return p.dst; });
  transits["kind"] = column<int8_t>(ps, [](const auto& p) { return p.kind; });
  transits["first"] = column<int8_t>(ps, [](const auto& p) { return p.first ? 1 : 0; });
  transits["last"] = column<int8_t>(ps, [](const auto& p) { return p.last ? 1 : 0; });
  transits["sent"] = column<int64_t>(ps, [](const auto& p) { return p.sent; });
  transits["message"] = column<int64_t>(ps, [](const auto& p) { return p.message; });
  transits["bytes"] = column<int64_t>(ps, [](const auto& p) { return p.bytes; });
  transits["queued"] = column<int64_t>(ps, [](const auto& p) { return p.queued; });
  transits["copy_in_begin"] = column<int64_t>(ps, [](const auto& p) { return p.copy_in_begin < 0 ? p.queued : p.copy_in_begin; });
  transits["copy_in_end"] = column<int64_t>(ps, [](const auto& p) { return p.copy_in_end; });
  transits["copy_out_begin"] = column<int64_t>(ps, [](const auto& p) { return p.copy_out_begin; });
  transits["copy_out_end"] = column<int64_t>(ps, [](const auto& p) { return p.copy_out_end; });
  o["transits"] = transits;
  py::list packets;
  for (const auto& t : j.packets) packets.append(row_of({network_packet_name(t.kind), t.channel, t.from, t.to, t.bytes, t.transit}));
  o["packets"] = packets;
  py::list work;
  for (const auto& w : j.work)
    work.append(row_of({w.where, static_cast<int>(w.stage), static_cast<int>(w.before), w.asked, w.start, w.end, w.packet}));
  o["work"] = work;
  return o;
}

}  // namespace retrompi
