// What a run says beside its times, as Python objects.
#pragma once
#include <pybind11/pybind11.h>

#include "diagnosis.hpp"

namespace retrompi {
pybind11::dict diagnosis_dict(const Diagnosis& d);
/// Columns as bytes (native 64- and 32-bit integers): see `retrompi.timeline`.
pybind11::dict timeline_dict(const Timeline& t, const Trace& trace);
}  // namespace retrompi
