// Collective algorithms: the steps of one member, generated one at a time, and the table that chooses among algorithms.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "event/core.hpp"
#include "trace/trace.hpp"

namespace retrompi::coll {

/// One step of one member. Peers are ranks of the communicator. Between two members the messages of one collective match in
/// the order in which they are sent and received.
struct Step {
  enum Kind : uint8_t {
    Isend,     // starts a send into `slot`
    Irecv,     // starts a receive into `slot`
    Wait,      // for `slot`, which is free again afterwards
    WaitAll,   // for every slot that is open, in the order in which they were started
    Copy,      // `bytes` within the member's own memory, `copies` times
    Combine,   // `bytes` of operands are combined
    Put,       // one-sided: `bytes` are in the peer's memory when it ends
    Taken,     // notifies the peer that this member has copied what it needs out of the peer's buffer
    AllTaken,  // waits for `slot` such notifications
    Work       // the library's own, `bytes` picoseconds on the reference host
  } kind = Wait;
  int32_t peer = 0;
  int32_t slot = 0;
  int64_t bytes = 0;
  double copies = 1;
  bool sync = false;  // Isend: complete when the receiver has matched it
};

constexpr Step isend(int32_t peer, int64_t bytes, int32_t slot = 0) { return {Step::Isend, peer, slot, bytes}; }
constexpr Step irecv(int32_t peer, int64_t bytes, int32_t slot = 0) { return {Step::Irecv, peer, slot, bytes}; }
constexpr Step wait(int32_t slot = 0) { return {Step::Wait, 0, slot}; }
constexpr Step wait_all() { return {Step::WaitAll}; }
constexpr Step copy(int64_t bytes, double copies = 1) { return {Step::Copy, 0, 0, bytes, copies}; }
/// Of the member's own block, whose cost is part of the measured work of a call (Work::call).
inline constexpr int32_t kOwnBlock = 1;
constexpr Step copy_own(int64_t bytes) { return {Step::Copy, 0, kOwnBlock, bytes}; }
constexpr Step combine(int64_t bytes) { return {Step::Combine, 0, 0, bytes}; }
constexpr Step work(Ps ps) { return {Step::Work, 0, 0, ps.count()}; }

class Table;

/// The arguments of one member's call. The struct is copied; what its spans and pointers refer to must outlive the steps.
///
///   Bcast Reduce Allreduce Scan Exscan   bytes: the vector
///   Gather                               bytes: this member's block; the root receives from(r)
///   Scatter                              the root sends to(r); bytes_in: this member's block
///   Allgather                            bytes: one block; Allgatherv: from(r) of every member, its own as well
///   Alltoall(v,w)                        to(r), from(r)
///   ReduceScatter(Block)                 from(r): what r gets of the result, at every member
///   Neighbor...                          the k-th neighbour's: to(k), from(k)
struct Args {
  int32_t n = 1, me = 0, root = 0;
  int32_t remote = 0;  // members of the other group; 0: an intracommunicator
  bool low = true;     // whether this is the group that begins
  int64_t bytes = 0, bytes_in = 0;
  std::span<const int64_t> out, in;  // vector forms: bytes to and from each member, in the order of their ranks; empty: `bytes`, `bytes_in` each
  std::span<const int32_t> host;     // where each member runs: a number for each host; empty: not known
  std::span<const int32_t> sources, dests;  // neighbours, ranks of the communicator or PROC_NULL
  const Table* table = nullptr;             // for algorithms composed of other collectives
  bool nonblocking = false;                 // its parts are the non-blocking forms too
  int32_t buffers = 0;                      // temporary buffers of this size held by the caller meanwhile
  [[nodiscard]] int64_t to(int32_t r) const { return out.empty() ? bytes : out[static_cast<size_t>(r)]; }
  [[nodiscard]] int64_t from(int32_t r) const { return in.empty() ? bytes_in : in[static_cast<size_t>(r)]; }
  /// Conversion between ranks and ranks relative to the root.
  [[nodiscard]] int32_t relative() const { return (me - root + n) % n; }
  [[nodiscard]] int32_t absolute(int32_t rel) const { return (rel + root) % n; }
};

/// A lazy sequence of steps: `while (s.next()) use(s.step());`. One pooled frame; a step allocates nothing.
class [[nodiscard]] Steps {
 public:
  struct promise_type {
    const Step* at = nullptr;  // lives in the suspended frame
    std::exception_ptr error;
    static void* operator new(size_t n) { return FramePool::get(n); }
    static void operator delete(void* p, size_t n) { FramePool::put(p, n); }
    Steps get_return_object() { return Steps{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(const Step& s) noexcept {
      at = &s;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };
  Steps() = default;
  explicit Steps(std::coroutine_handle<promise_type> h) : h_(h) {}
  Steps(Steps&& o) noexcept : h_(std::exchange(o.h_, {})) {}
  Steps& operator=(Steps&& o) noexcept {
    std::swap(h_, o.h_);
    return *this;
  }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  ~Steps() {
    if (h_) h_.destroy();
  }
  /// Advances to the next step; false when there is none.
  bool next() {
    if (!h_ || h_.done()) return false;
    h_.resume();
    if (h_.promise().error) std::rethrow_exception(h_.promise().error);
    return !h_.done();
  }
  [[nodiscard]] const Step& step() const { return *h_.promise().at; }

 private:
  std::coroutine_handle<promise_type> h_;
};

/// An algorithm by name. Each file in engine/coll/ defines one or more at namespace scope, which registers them:
///   const Algorithm kBinomial{Op::Bcast, "binomial", &binomial};
/// The vector form of an operation (Gatherv, Scatterv, Allgatherv, Alltoallv, Alltoallw) has separate algorithms.
struct Algorithm {
  using Make = Steps (*)(Args);
  enum Needs : uint8_t {
    Nothing,
    Blocking,  // it waits in the middle of a step (one-sided puts, readers of a buffer): not for non-blocking forms
    Hosts      // it uses Args::host: not available where that is unknown
  };
  Algorithm(Op o, const char* n, Make m, Needs what = Nothing) : op(o), name(n), make(m), needs(what), next(first) { first = this; }
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;
  Op op;
  const char* name;
  Make make;
  Needs needs;
  const Algorithm* next;
  static inline const Algorithm* first = nullptr;
};
/// Null when no algorithm has this name.
const Algorithm* find(Op op, std::string_view name);
/// Names of the algorithms of an operation, sorted, for messages.
std::vector<std::string_view> names(Op op);

/// One line of a model's table: which algorithm in which range. The first matching line applies.
struct Row {
  const Algorithm* algorithm = nullptr;
  int64_t from = 0, to = INT64_MAX;              // of volume(), from <= bytes < to
  int32_t ranks_from = 1, ranks_to = INT32_MAX;  // members, inclusive
  enum Count : uint8_t { Any, PowerOfTwo, NotPowerOfTwo } count = Any;
  bool blocking = true, nonblocking = true;  // the forms it applies to
  bool nodes = false;                        // only where members share a host
  mutable int64_t calls = 0;                 // how often it was chosen, by all members
};

/// The bytes by which libraries choose: the vector of a broadcast, reduction or scan; one block of an alltoall; all blocks
/// together of a gather, scatter, allgather, reduce_scatter, and what this member sends of an alltoallv.
int64_t volume(Op op, const Args& a);

/// Cost as a function of size, on the reference host: linear between points, beyond them at the last rate; zero without points.
struct Cost {
  std::vector<std::pair<int64_t, Ps>> points;  // sizes rise
  [[nodiscard]] Ps at(int64_t bytes) const;
};

/// Work of a library in collectives besides their messages. All empty: the model states none.
struct Work {
  /// A call without a partner, by the bytes of its own block: checking arguments, choosing the algorithm, copying the block.
  std::vector<std::pair<Op, Cost>> call;
  Cost combine;  // by the bytes of operands
  /// Cost of filling one temporary buffer of a size, or two at once, beyond that of ordinary memory.
  std::array<Cost, 2> buffers;
  [[nodiscard]] const Cost* of(Op op) const;
};

/// A model's choice of algorithms.
class Table {
 public:
  Table();  // MPICH 1.0/1.1's choice for every operation
  /// Rows for an operation; they take precedence over existing ones.
  void prefer(Op op, std::vector<Row> rows);
  /// ConfigError when no row fits.
  [[nodiscard]] const Algorithm& choose(Op op, const Args& a, bool nonblocking = false) const;
  [[nodiscard]] Steps make(Op op, Args a, bool nonblocking = false) const {
    a.table = this;
    a.nonblocking |= nonblocking;
    return choose(op, a, a.nonblocking).make(a);
  }
  /// A call of the program: its own work, then the steps of `make`.
  [[nodiscard]] Steps call(Op op, const Args& a) const;
  /// Cost of `buffers` temporary buffers of `bytes` each, `filled` bytes of which are filled in total.
  [[nodiscard]] Ps temporary(const Args& a, int32_t buffers, int64_t bytes, int64_t filled) const;
  /// Operation, algorithm and how often all members together have chosen it, for each algorithm used.
  struct Used {
    Op op;
    const Algorithm* algorithm;
    int64_t calls;
  };
  [[nodiscard]] std::vector<Used> used() const;
  Work work;
  double copies_root = 0, copies_leaf = 0;  // put_tree, by_reference: copies of the data before sending and after arrival
  // How members agree on a new communicator's context: by the largest of a number (code: MPICH 1.0 to 1.2, src/context/context_util.c) or
  // by the set of free ones, as the model states; on its members: all colors and keys, reduced (code: MPICH 1.0 to 1.2,
  // src/context/comm_split.c) or gathered (code: MPICH2, src/mpi/comm/comm_split.c).
  int64_t context_bytes = 4;
  bool split_gathers = false;

 private:
  std::vector<std::vector<Row>> rows_;  // by operation
};

/// A collective of an intercommunicator: Args::remote is not 0, peers from Args::n on are the other group's.
Steps between_groups(Op op, Args a);

// The traffic of creating communicators, over the parent (for an intercommunicator being created: over itself).
Steps agree_on_context(Args a);
Steps agree_on_colors(Args a);
Steps swap_groups(Args a);

}  // namespace retrompi::coll
