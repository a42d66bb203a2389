// One line of a trace as it is written.
#pragma once

#include <string>

#include "trace/trace.hpp"

namespace retrompi {

void write_line(const Trace& trace, size_t rank, const Action& a, bool shared, std::string& out);

}  // namespace retrompi
