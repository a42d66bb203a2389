// The vocabulary of trace lines: which names there are, what arguments follow, and which we refuse.
#pragma once

#include "trace.hpp"

namespace retrompi {

// Lines of one kind have the same arguments.
enum class Form : uint8_t {
  Bare,           // -
  Ignored,        // anything; accepted for the sake of old traces
  Location,       // FILE LINE
  Compute,        // FLOPS
  Sleep,          // SECONDS
  Kernel,         // NAME N [REPS]
  Send,           // DST TAG COUNT [TYPE]
  Recv,           // SRC TAG COUNT [TYPE]
  Sendrecv,       // SCOUNT DST RCOUNT SRC STYPE RTYPE
  Request,        // SRC DST TAG
  All,            // [COUNT]
  Probe,          // SRC TAG
  Bcast,          // COUNT [ROOT [TYPE]]
  Reduce,         // COUNT FLOPS [ROOT [TYPE]]
  Allreduce,      // COUNT FLOPS [TYPE]
  ReduceScatter,  // RCOUNT*n FLOPS [TYPE]
  Alltoall,       // SCOUNT RCOUNT [STYPE [RTYPE]]
  Alltoallv,      // SBUF SCOUNT*n RBUF RCOUNT*n [STYPE [RTYPE]]
  Rooted,         // SCOUNT RCOUNT [ROOT [STYPE [RTYPE]]]
  Gatherv,        // SCOUNT RCOUNT*n [ROOT [STYPE [RTYPE]]]
  Allgatherv,     // SCOUNT RCOUNT*n [STYPE [RTYPE [DISP*n]]]
  Scatterv,       // SCOUNT*n RCOUNT [ROOT [STYPE [RTYPE]]]
  Refused         // understood by name only
};

struct Word {
  std::string_view name;
  Op op;
  Form form;
  const char* reason = nullptr;  // of Form::Refused
};

const Word* find_word(std::string_view name);  // nullptr: no such action
std::string_view canonical_name(Op op);        // the name to_ti writes
Form form_of(Op op);
bool is_collective(Op op);
// "; did you mean 'send'?", or the whole list when nothing is near
std::string suggestion(std::string_view word);
// A piece of a file for a message: short, printable, in quotes.
std::string quoted(std::string_view text);
bool is_text(std::string_view s);  // UTF-8 without control characters

}  // namespace retrompi
