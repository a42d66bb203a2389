// Time-independent traces in memory: parsed once, then only read.
//
// The format is SimGrid/SMPI's (docs/trace-format.md has the grammar and our extensions). Nothing here depends on SimGrid or Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/action.hpp"
#include "trace/action_list.hpp"

namespace retrompi {

// A communicator as all its members describe it.
struct Comm {
  enum Kind : uint8_t { Intra, Inter, Cart, Graph } kind = Intra;
  int32_t id = 0;               // as written in the trace; 0 is MPI_COMM_WORLD
  std::vector<int32_t> group;   // rank of the communicator -> rank of the world
  std::vector<int32_t> remote;  // Inter: the other side. For a member of `remote` the two are swapped
  std::vector<int32_t> dims;    // Cart
  std::vector<uint8_t> periods;
  std::vector<std::vector<int32_t>> sources, destinations;  // Cart, Graph: neighbours of each rank, ranks of the communicator or PROC_NULL
  bool operator==(const Comm&) const = default;
};

// An error in a trace, with its place. what() is "file:line: message" (no line: "file: message").
class TraceError : public std::runtime_error {
 public:
  TraceError(std::string file, size_t line, std::string message);
  std::string file;
  size_t line;  // 0: the file as a whole
  std::string message;
};

// A valid line that cannot be simulated, or only by guessing.
struct Remark {
  int32_t rank;
  uint32_t line;
  std::string action;
  std::string reason;
};

struct Trace {
  std::vector<ActionList> ranks;
  std::vector<std::vector<int64_t>> vec;  // byte counts of the vector collectives and lists of requests and ranks
  std::vector<std::string> labels;        // of marks, names of kernels
  std::vector<Comm> comms;                // 0: MPI_COMM_WORLD
  std::vector<std::string> files;         // per rank, for messages
  std::vector<Remark> refused;            // must be empty for a run; the first REMARK_LIMIT, refused_total counts all
  std::vector<Remark> warned;             // harmless or doubtful, to be shown
  size_t refused_total = 0;
  size_t warned_total = 0;
  // Also among `warned`, but of consequence for every run: ranks that begin with init and never reach finalize, and ranks that call fewer or
  // more collectives than the others.
  std::vector<Remark> cut, uneven;
  size_t cut_total = 0, uneven_total = 0;

  size_t actions() const;      // of all ranks, without marks
  int64_t bytes_sent() const;  // payload of the sends of all ranks, point-to-point; persistent ones are not counted
  void write_ti(size_t rank, bool shared, const std::function<void(std::string_view)>& sink) const;  // the same text, a piece at a time
  std::string to_ti(size_t rank, bool shared = false) const;  // the rank's lines, sizes in bytes (type code 6); reading them gives an equal trace
  // What to_smpi cannot keep: at most one loss a line, all counted, the first REMARK_LIMIT with their places.
  struct SmpiLosses {
    struct Kind {
      std::string action, reason;
      bool omitted;  // the line is left out; else it is written in a different form
      auto operator<=>(const Kind&) const = default;
    };
    std::vector<Remark> first;
    std::map<Kind, size_t> counts;
    size_t total = 0;
  };
  std::string to_smpi(size_t rank, bool shared, SmpiLosses& lost) const;  // the rank's lines as SMPI's replay reads them
  std::string where(size_t rank, const Action& a) const;                  // "file:line"
  // A copy with marks before the first action at or after a line of a rank (line 0: at the start, past the end: at the end).
  struct MarkAt {
    size_t rank;
    uint32_t line;
    std::string label;
  };
  Trace with_marks(std::vector<MarkAt> marks) const;
  // A copy with given outcomes in place of the recorded ones: what a receive or probe takes, and which requests a test or wait completes.
  // Every other receive with a wildcard takes what comes first. TraceError where a line has no such call.
  struct Match {
    size_t rank;
    uint32_t line;
    int32_t source, tag;
  };
  struct Completion {
    size_t rank;
    uint32_t line;
    bool done;                   // whether a test or iprobe succeeds
    std::vector<int64_t> which;  // the requests that a waitany, waitsome, testany or testsome completes
  };
  Trace with_outcomes(const std::vector<Match>& matches, const std::vector<Completion>& completions) const;
  // A copy in which the computation before a call of a repeating sequence of calls is its mean over the repetitions. A rank
  // whose calls do not repeat exactly in their middle half, eight times or more, stays as it is.
  Trace smoothed() const;
  Trace scaled(double factor) const;  // every amount of computation times `factor`; sleeping is not computing
  // Computation of each rank, flops, in the section that rank 0 runs from line `first` to line `last`. The other ranks' part
  // begins and ends at the same collectives, counted from the start.
  std::vector<double> section_compute(uint32_t first, uint32_t last) const;
  // What is found of the trace's content on first use. A copy drops it, because it is about to be changed.
  template <class T>
  struct Found {
    Found() = default;
    Found(const Found&) {}
    Found& operator=(const Found&) {
      value.reset();
      return *this;
    }
    std::optional<T> value;
  };
  struct Sums {
    std::vector<int64_t> calls;  // by word
    double compute = 0, sleep = 0;
    size_t memory = 0;   // B
    size_t actions = 0;  // as actions()
    int64_t bytes_sent = 0, largest = 0, sends = 0, collectives = 0, nonblocking = 0, one_sided = 0, marks = 0;
  };
  mutable Found<std::string> digest;
  mutable Found<Sums> sums;
  bool operator==(const Trace& other) const;  // same actions; line numbers, file names and remarks do not count

  std::string dump(ActionList::File* actions = nullptr) const;  // binary image, for a worker process; with a file the actions go there
  static Trace load(std::string_view image, const std::shared_ptr<ActionList::File>& actions = nullptr);  // TraceError when it is not one
  // The same through a file that this process family alone writes: a process that opens it reads actions on demand.
  void save(const std::string& path) const;
  static Trace open(const std::string& path);
};
constexpr size_t REMARK_LIMIT = 1000;

const char* op_name(Op op);                                                // as written in a trace: "sendRecv"
const char* action_name(const Action& a);                                  // with its variant: "ibcast", "comm_dup", "Win_flush"
size_t nearest_ops(std::string_view word, std::vector<std::string>& out);  // known action names by edit distance, at most three

struct Source {
  std::string_view text;
  std::string name;  // for messages
  int32_t rank;      // the rank whose file it is; -1: shared by all ranks
  // In place of `text`: appends the next bytes of the file to a buffer (false: end of file), and rewinds. A file of all
  // ranks is read twice.
  std::function<bool(std::string&)> next = {};
  std::function<void()> rewind = {};
};

struct ReadOptions {
  int32_t ranks = 0;  // 0: as many as there are files, or the highest rank of a shared file plus one
  enum class Undefined : uint8_t { Refuse, AnySource, ProcNull };
  Undefined undefined_source = Undefined::Refuse;  // meaning of a receive from -333
  bool partial = false;                            // accept a rank that begins with init and never reaches finalize
};

// Throws TraceError for malformed input. Lines that are well formed but cannot be simulated go to Trace::refused.
Trace parse(std::span<const Source> sources, const ReadOptions& options = {});
// A trace whose ranks follow a few patterns: `of` names the source of every rank, which is that of one rank of them; the peers of the others
// are at the same distances. Files are called NAME/rank-R.txt. TraceError for a pattern with communicators, windows or requests by identity.
Trace parse_patterns(std::span<const Source> sources, std::span<const int64_t> of, const std::string& name);

}  // namespace retrompi
