// The operations of a trace, and the values that SMPI's traces carry.
#pragma once

#include <cstdint>

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

// Values of SMPI, kept because traces contain them unchanged.
constexpr int32_t ANY_SOURCE = -555;
constexpr int32_t ANY_TAG = -444;
constexpr int32_t PROC_NULL = -666;
// MPI_UNDEFINED: SMPI's tracer writes it for MPI_ANY_SOURCE *and* for MPI_PROC_NULL. Never stored in an Action.
constexpr int32_t UNDEFINED = -333;
constexpr int32_t ROOT = -777;  // MPI_ROOT of an intercommunicator; ours, SMPI's replay has no intercommunicators

// Action::flags
constexpr uint8_t FLAG_UNKNOWN_COUNT = 1;  // a receive with COUNT < 0: bytes is -1, any length fits (SMPI probes first)
constexpr uint8_t FLAG_NONBLOCKING = 2;    // a collective or one-sided call that returns a request
constexpr uint8_t FLAG_MATCHED = 4;        // a wildcard receive or probe: the message that it matched is recorded
constexpr uint8_t FLAG_DONE = 8;           // Test*, Iprobe: it succeeded when recorded; without FLAG_TOLD unknown
constexpr uint8_t FLAG_TOLD = 16;          // Test*, Iprobe, Waitany, Waitsome: the recorded outcome is known

}  // namespace retrompi
