// Time-independent traces in memory: parsed once, then only read.
//
// The format is SimGrid/SMPI's (docs/trace-format.md has the grammar and our extensions). Nothing here depends on SimGrid or Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/trace_store.hpp"

namespace retrompi {

enum class Op : uint8_t {
  Init,
  Finalize,
  Compute,
  Sleep,
  Kernel,
  Send,
  Ssend,
  Bsend,
  Rsend,
  Isend,
  Issend,
  Ibsend,
  Irsend,
  Recv,
  Irecv,
  Sendrecv,
  Wait,
  Waitall,
  Waitany,
  Waitsome,
  Test,
  Testall,
  Testany,
  Testsome,
  Probe,
  Iprobe,
  SendInit,
  SsendInit,
  BsendInit,
  RsendInit,
  RecvInit,
  Start,
  Startall,
  RequestFree,
  Barrier,
  Bcast,
  Reduce,
  Allreduce,
  Scan,
  Exscan,
  ReduceScatter,
  Alltoall,
  Alltoallv,
  Gather,
  Gatherv,
  Allgather,
  Allgatherv,
  Scatter,
  Scatterv,
  Alltoallw,
  ReduceScatterBlock,
  NeighborAllgather,
  NeighborAllgatherv,
  NeighborAlltoall,
  NeighborAlltoallv,
  NeighborAlltoallw,
  CommNew,
  CommFree,
  WinNew,
  WinFree,
  Put,
  Get,
  Accumulate,
  GetAccumulate,
  FetchOp,
  CompareSwap,
  Fence,
  Flush,
  FlushLocal,
  Lock,
  LockAll,
  Unlock,
  UnlockAll,
  WinPost,
  WinStart,
  WinComplete,
  WinWait,
  Mark
};
constexpr int OP_COUNT = static_cast<int>(Op::Mark) + 1;

// Values of SMPI, kept because traces carry them as they are.
constexpr int32_t ANY_SOURCE = -555;
constexpr int32_t ANY_TAG = -444;
constexpr int32_t PROC_NULL = -666;
// MPI_UNDEFINED: SMPI's tracer writes it for MPI_ANY_SOURCE *and* for MPI_PROC_NULL. Never stored in an Action.
constexpr int32_t UNDEFINED = -333;

// Action::flags
constexpr uint8_t FLAG_UNKNOWN_COUNT = 1;  // a receive with COUNT < 0: bytes is -1, any length fits (SMPI probes first)
constexpr uint8_t FLAG_NONBLOCKING = 2;    // a collective or one-sided call that returns a request
constexpr uint8_t FLAG_MATCHED = 4;        // a wildcard receive or probe: what matched is recorded, see below
constexpr uint8_t FLAG_DONE = 8;           // Test*, Iprobe: it succeeded when recorded; without FLAG_TOLD nobody knows
constexpr uint8_t FLAG_TOLD = 16;          // Test*, Iprobe, Waitany, Waitsome: the recorded outcome is known

// One line of a trace. Which fields an action uses (others are 0, aux -1):
//
//   Compute                      amount flops
//   Sleep                        amount seconds
//   Kernel                       tag: index of its name in Trace::labels, bytes the vector length, amount how often
//   Send..Irsend, SendInit..RsendInit
//                                peer destination (or PROC_NULL), tag, bytes
//   Recv Irecv RecvInit          peer source (or ANY_SOURCE, PROC_NULL), tag (or ANY_TAG), bytes of the buffer (-1: unknown)
//   Sendrecv                     peer destination, bytes sent; peer2 source, bytes2 of the receive buffer; tag 0 both ways
//   Wait Test Start RequestFree  peer SRC, peer2 DST, tag: the key under which the request was filed,
//                                (me, destination, tag) for sends and (source, me, tag) for receives, first in first out
//   Waitall Waitany Waitsome Testall Testany Testsome Startall
//                                every outstanding (Startall: inactive persistent) request of the rank; bytes the COUNT as
//                                written, -1 when there was none: for information only, as in SMPI
//   Probe Iprobe                 peer source, tag
//   Bcast                        bytes, peer2 root
//   Reduce                       bytes, peer2 root, amount flops after it
//   Allreduce Scan Exscan        bytes, amount
//   ReduceScatter                aux: n byte counts received by each rank; bytes their sum; amount
//   Alltoall Allgather           bytes sent (Alltoall: to each peer), bytes2 received from each peer
//   Gather                       bytes sent, bytes2 received from each rank (significant at the root), peer2 root
//   Scatter                      bytes sent to each rank (significant at the root), bytes2 received, peer2 root
//   Alltoallv                    aux: n byte counts sent, then n received; bytes and bytes2 their sums
//   Gatherv Allgatherv           bytes sent; aux: n byte counts received; bytes2 their sum; Gatherv: peer2 root
//   Scatterv                     aux: n byte counts sent; bytes their sum; bytes2 received; peer2 root
//   Put Get Accumulate           peer the other rank (or PROC_NULL), bytes; tag as written, for information only
//   Fence Flush                  -: all of the rank's own one-sided operations are complete; Fence: everybody's
//   Mark                         tag: index into Trace::labels
//
// The extension (docs/trace-format.md, "Communicators, requests and windows"):
//
//   any call                     comm: index in Trace::comms, 0 MPI_COMM_WORLD. Peers of point-to-point calls and targets are ranks of the
//                                world, roots and the order of vector counts are those of the communicator; n is its size (Inter: the
//                                remote group's). A root of an intercommunicator: ROOT at the root, PROC_NULL beside it
//   what returns a request       req: its identity, 1.. (0: not recorded, filed under its key only)
//   Wait Test Start RequestFree  req (0: by key); peer and peer2 are -1 where the line has no key
//   Waitall Waitany Waitsome Testall Testany Testsome Startall
//                                aux: the identities it was called with, then those it completed (aux -1: not recorded); bytes how many
//                                of the former, bytes2 of the latter
//   Recv Irecv Probe Iprobe with FLAG_MATCHED
//                                peer2 the source that matched, bytes2 its tag
//   Start with FLAG_MATCHED      bytes the source that matched, bytes2 its tag (of a persistent receive)
//   Startall with FLAG_MATCHED   bytes2 how many: aux goes on with (identity, source, tag) of each receive that matched
//   Sendrecv                     aux the receive's tag (-1: 0); FLAG_MATCHED: req the source that matched, amount its tag
//   Alltoallw                    as Alltoallv
//   ReduceScatterBlock           bytes of one rank's part, amount
//   NeighborAllgather NeighborAlltoall
//                                bytes sent (Alltoall: to each), bytes2 received from each
//   NeighborAllgatherv           bytes sent; aux: byte counts by source
//   NeighborAlltoallv Alltoallw  aux: byte counts by destination, then by source; bytes, bytes2 their sums
//   CommNew                      comm the parent (or local communicator), peer the new one's index in Trace::comms or -1, tag a CommHow
//   CommFree                     comm
//   WinNew WinFree               comm, peer2 the window's identity, bytes its length on this rank
//   Put .. CompareSwap           peer2 the window (0: not recorded); comm is the window's, here and below; GetAccumulate, FetchOp, CompareSwap: bytes
//   go there and come back Fence Flush FlushLocal Lock LockAll Unlock UnlockAll
//                                peer2 the window; peer the target where there is one (else -1); Lock: tag 1 exclusive, 0 shared
//   WinPost WinStart             peer2 the window, aux: world ranks of the group.  WinComplete WinWait: peer2
enum class CommHow : int32_t { Split, Dup, Create, CreateGroup, IntercommCreate, IntercommMerge, Cart, Graph };
constexpr int32_t ROOT = -777;  // MPI_ROOT of an intercommunicator; ours, SMPI's replay has no intercommunicators

struct Action {
  Op op = Op::Init;
  uint8_t flags = 0;
  int32_t peer = 0;
  int32_t tag = 0;
  int32_t peer2 = 0;  // sendrecv's source, the other end of a wait, or the root of a collective
  int32_t aux = -1;   // index in Trace::vec of a vector of byte counts, -1 none
  uint32_t line = 0;  // 1-based, in Trace::files[rank]
  int64_t bytes = 0;
  int64_t bytes2 = 0;  // the receiving side
  double amount = 0;   // flops or seconds
  int32_t comm = 0;    // index in Trace::comms
  int32_t req = 0;     // identity of the request, 0 none
};
static_assert(sizeof(Action) == 56, "packed by field in trace_store.cpp: a new field belongs there too");

// A communicator as all its members describe it.
struct Comm {
  enum Kind : uint8_t { Intra, Inter, Cart, Graph } kind = Intra;
  int32_t id = 0;               // as written in the trace; 0 is MPI_COMM_WORLD
  std::vector<int32_t> group;   // rank of the communicator -> rank of the world
  std::vector<int32_t> remote;  // Inter: the other side. For a member of `remote` the two change places
  std::vector<int32_t> dims;    // Cart
  std::vector<uint8_t> periods;
  std::vector<std::vector<int32_t>> sources, destinations;  // Cart, Graph: neighbours of each rank, ranks of the communicator or PROC_NULL
  bool operator==(const Comm&) const = default;
};

// What is wrong with a trace, and where. what() is "file:line: message" (no line: "file: message").
class TraceError : public std::runtime_error {
 public:
  TraceError(std::string file, size_t line, std::string message);
  std::string file;
  size_t line;  // 0: the file as a whole
  std::string message;
};

// A line that was understood but cannot be simulated, or not without a guess.
struct Remark {
  int32_t rank;
  uint32_t line;
  std::string action;
  std::string reason;
};

struct Trace {
  std::vector<ActionList> ranks;
  std::vector<std::vector<int64_t>> vec;  // byte counts of the vector collectives, Action::aux
  std::vector<std::string> labels;        // Mark, Kernel: tag is the index
  std::vector<Comm> comms;                // 0: MPI_COMM_WORLD
  std::vector<std::string> files;         // per rank, for messages
  std::vector<Remark> refused;            // must be empty for a run; the first REMARK_LIMIT, refused_total counts all
  std::vector<Remark> warned;             // harmless or doubtful, to be shown
  size_t refused_total = 0;
  size_t warned_total = 0;

  size_t actions() const;      // of all ranks, without marks
  int64_t bytes_sent() const;  // payload of the sends of all ranks, point-to-point; persistent ones are not counted
  void write_ti(size_t rank, bool shared, const std::function<void(std::string_view)>& sink) const;  // the same text, a piece at a time
  std::string to_ti(size_t rank, bool shared = false) const;  // the rank's lines, sizes in bytes (type code 6); reading them gives an equal trace
  // The rank's lines as SMPI's replay reads them. What that leaves out or changes is added to `lost`, the first REMARK_LIMIT.
  std::string to_smpi(size_t rank, bool shared, std::vector<Remark>& lost, size_t& lost_total) const;
  std::string where(size_t rank, const Action& a) const;  // "file:line"
  // A copy with marks before the first action at or after a line of a rank (line 0: at the start, past the end: at the end).
  struct MarkAt {
    size_t rank;
    uint32_t line;
    std::string label;
  };
  Trace with_marks(std::vector<MarkAt> marks) const;
  // A copy in which the computation before a call of a repeating sequence of calls is its mean over the repetitions. A rank
  // whose calls do not repeat exactly in their middle half, eight times or more, stays as it is.
  Trace smoothed() const;
  Trace scaled(double factor) const;  // every amount of computation times `factor`; sleeping is not computing
  // Computation of each rank, flops, in the section that rank 0 runs from line `first` to line `last`. The other ranks' part
  // begins and ends at the same collectives, counted from the start.
  std::vector<double> section_compute(uint32_t first, uint32_t last) const;
  // The hash of what the trace says, once somebody has asked for it. A copy is about to be changed: it forgets it.
  struct Digest {
    Digest() = default;
    Digest(const Digest&) {}
    Digest& operator=(const Digest&) {
      value.clear();
      return *this;
    }
    std::string value;
  };
  mutable Digest digest;
  bool operator==(const Trace& other) const;  // same actions; line numbers, file names and remarks do not count

  std::string dump(ActionList::File* actions = nullptr) const;  // binary image, for a worker process; with a file the actions go there
  static Trace load(std::string_view image, const std::shared_ptr<ActionList::File>& actions = nullptr);  // TraceError when it is not one
  // The same through a file that this process family alone writes: whoever opens it reads actions from it as they are needed.
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
  // In place of `text`: adds the next bytes of the file to a buffer (false: there are no more), and begins again. A file of all
  // ranks is read twice.
  std::function<bool(std::string&)> next = {};
  std::function<void()> rewind = {};
};

struct ReadOptions {
  int32_t ranks = 0;  // 0: as many as there are files, or the highest rank of a shared file plus one
  enum class Undefined : uint8_t { Refuse, AnySource, ProcNull };
  Undefined undefined_source = Undefined::Refuse;  // what a receive from -333 is
  bool partial = false;                            // accept a rank that begins with init and never reaches finalize
};

// Throws TraceError for whatever is malformed. Lines that are well formed but not simulated go to Trace::refused.
Trace parse(std::span<const Source> sources, const ReadOptions& options = {});

}  // namespace retrompi
