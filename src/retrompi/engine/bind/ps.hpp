// Times cross to Python as whole picoseconds. Every file of the binding that hands one over includes this.
#pragma once
#include <pybind11/pybind11.h>

#include "event/time.hpp"

template <>
struct pybind11::detail::type_caster<retrompi::Ps> {
  PYBIND11_TYPE_CASTER(retrompi::Ps, const_name("int"));
  bool load(handle source, bool convert) {
    make_caster<int64_t> number;
    if (!number.load(source, convert)) return false;
    value = cast_op<int64_t>(number);
    return true;
  }
  static handle cast(retrompi::Ps ps, return_value_policy policy, handle parent) { return make_caster<int64_t>::cast(ps.count(), policy, parent); }
};
