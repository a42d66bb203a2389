// Writing one line of a trace.
#pragma once

#include <string>

#include "trace/trace.hpp"

namespace retrompi {

void write_line(const Trace& trace, size_t rank, const Action& a, bool shared, std::string& out);

}  // namespace retrompi
