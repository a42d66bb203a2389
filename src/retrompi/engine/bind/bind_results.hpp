// The results of a run besides its times, as Python objects.
#pragma once
#include <pybind11/pybind11.h>

#include "bind/ps.hpp"
#include "diagnosis/diagnosis.hpp"
#include "diagnosis/message_path_result.hpp"
#include "record/profile.hpp"
#include "sim/sim.hpp"

namespace retrompi {
/// Adds the declared fields of a part of a result (spec/declare/result.py).
template <class Declared>
void put_fields(pybind11::dict& o, const Declared& of) {
  Declared::each([&](const char* name, auto field) { o[name] = of.*field; });
}
template <class Declared>
pybind11::list rows_of(const std::vector<Declared>& table) {
  pybind11::list out;
  for (const Declared& row : table) {
    pybind11::dict o;
    put_fields(o, row);
    out.append(o);
  }
  return out;
}
/// Columns as bytes: see `retrompi.sim.rank_table`.
pybind11::dict rank_columns(const std::vector<RankRow>& ranks);
pybind11::dict diagnosis_dict(const Diagnosis& d);
/// Columns as bytes: see `retrompi.sim.critical_path`.
pybind11::dict critical_path_dict(const SimResult& s);
/// What `_engine.PathGraph` is made of (bind_path.cpp).
pybind11::dict path_graph_dict(const PathGraph& g);
/// ``calls`` rows (action, bytes, section, count, ps), ``finalized_ps`` of each rank (-1: never).
pybind11::dict profile_dict(const CallProfile& p);
/// Columns as bytes: see `retrompi.sim.message_path`.
pybind11::dict message_path_dict(const MessagePathResult& j);
/// Columns as bytes (native 64- and 32-bit integers): see `retrompi.sim.timeline`.
pybind11::dict timeline_dict(const Timeline& t, const Trace& trace);
}  // namespace retrompi
