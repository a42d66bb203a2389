// The vocabulary of trace lines: the names, their arguments, and which are refused.
#pragma once

#include <optional>

#include "trace/trace.hpp"

namespace retrompi {

// Lines of one kind have the same arguments.
enum class Form : uint8_t {
  Bare,           // -
  Ignored,        // anything; accepted for compatibility with old traces
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
  // ours
  Alltoallw,           // SBYTES*n RBYTES*n
  NeighborAllgatherv,  // SCOUNT RCOUNT*in [STYPE [RTYPE]]
  NeighborAlltoallv,   // SCOUNT*out RCOUNT*in [STYPE [RTYPE]]
  NeighborAlltoallw,   // SBYTES*out RBYTES*in
  CommNew,             // NEW GROUP, or -1
  IntercommCreate,     // NEW LOCALGROUP REMOTEGROUP
  CommFree,            // -
  WinNew,              // WIN BYTES
  WinFree,             // WIN
  OneSided,            // TARGET TAG COUNT [TYPE]
  WinAll,              // [ANY]
  WinTarget,           // TARGET
  WinLock,             // TARGET 0|1
  WinGroup,            // GROUP
  WinBare,             // -
  Refused              // understood by name only
};

struct Word {
  std::string_view name;
  Op op;
  Form form;
  const char* reason = nullptr;  // of Form::Refused, and of a line that lacks what this needs
  uint8_t flags = 0;             // Action::flags
  CommHow how = CommHow::Split;  // of Form::CommNew
};

const Word* find_word(std::string_view name);  // nullptr: no such action
std::string_view canonical_name(Op op);        // the name to_ti writes, of the blocking form
const Word& word_of(const Action& a);          // the word to_ti writes
size_t word_index(const Word& word);           // 0..WORD_COUNT-1
const Word& word_at(size_t index);
extern const size_t WORD_COUNT;
bool is_collective(Op op);  // moves data between all members of a communicator
bool is_rooted(Op op);
bool is_vector(Op op);     // a collective with a vector of counts, Action::aux
bool is_one_sided(Op op);  // Put .. CompareSwap
bool is_window(Op op);     // any call on a window except its creation and release
bool is_receive(Op op);    // Recv, Irecv, RecvInit
bool is_send(Op op);       // Send .. Irsend, Sendrecv
bool is_some(Op op);       // Waitall .. Testsome, Startall: calls on several requests
// The message that an action sends: of Send .. Irsend and Sendrecv.
struct Transfer {
  int32_t peer;
  int64_t bytes;
};
std::optional<Transfer> sent_by(const Action& a);
// "; did you mean 'send'?", or the whole list if no name is close
std::string suggestion(std::string_view word);
size_t edit_distance(std::string_view a, std::string_view b);  // case-insensitive
// A piece of a file for a message: short, printable, in quotes.
std::string quoted(std::string_view text);
bool is_text(std::string_view s);  // UTF-8 without control characters

}  // namespace retrompi
