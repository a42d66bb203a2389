// Made by retrompi.spec.cpp_calls from the table in src/retrompi/spec/calls.py; not to be edited.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace retrompi {

/// The operations of a trace. A mark is a comment, which SMPI skips.
enum class Op : uint8_t { Init, Finalize, Compute, Sleep, Kernel, Send, Ssend, Bsend, Rsend, Isend, Issend, Ibsend, Irsend, Recv, Irecv, Sendrecv, Wait, Waitall, Waitany, Waitsome, Test, Testall, Testany, Testsome, Probe, Iprobe, SendInit, SsendInit, BsendInit, RsendInit, RecvInit, Start, Startall, RequestFree, Barrier, Bcast, Reduce, Allreduce, Scan, Exscan, ReduceScatter, Alltoall, Alltoallv, Gather, Gatherv, Allgather, Allgatherv, Scatter, Scatterv, Alltoallw, ReduceScatterBlock, NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw, CommNew, CommFree, WinNew, WinFree, Put, Get, Accumulate, GetAccumulate, FetchOp, CompareSwap, Fence, Flush, FlushLocal, Lock, LockAll, Unlock, UnlockAll, WinPost, WinStart, WinComplete, WinWait, Mark };
constexpr int OP_COUNT = static_cast<int>(Op::Mark) + 1;
/// How Op::CommNew makes a communicator.
enum class CommHow : int32_t { Split, Dup, Create, CreateGroup, IntercommCreate, IntercommMerge, Cart, Graph };
/// Which group of arguments an operation has.
enum class ActionKind : uint8_t { None, Compute, Sleep, Kernel, Mark, PointToPoint, SendReceive, OneRequest, SeveralRequests, Collective, NewComm, NewWindow, Rma, WindowSync };

// Collective: moves data between all members of a communicator
// Neighbour: a collective of neighbours
// Rooted: a collective with a root
// ToRoot: the root receives
// Vector: a collective with vectors of counts
// Joint: all members of a communicator call it, in the same order
// OneSided: a one-sided transfer
// Window: on a window, except making and freeing it
// Send: sends a message
// Receive: receives a message, or makes the request of one
// Persistent: makes a persistent request
// Posts: returns a request of a message
// Probes: looks for a message
// Synchronous: its message waits for the receive
// Buffered: its message is copied into the program's buffer
enum class Trait : uint8_t { Collective, Neighbour, Rooted, ToRoot, Vector, Joint, OneSided, Window, Send, Receive, Persistent, Posts, Probes, Synchronous, Buffered };
/// Lines of one form have the same arguments.
enum class Form : uint8_t { Bare, Ignored, Location, Init, Compute, Sleep, Kernel, Send, Recv, Sendrecv, Request, All, Probe, Bcast, Reduce, Allreduce, ReduceScatter, Alltoall, Alltoallv, Rooted, Gatherv, Allgatherv, Scatterv, Alltoallw, NeighborAllgatherv, NeighborAlltoallv, NeighborAlltoallw, CommNew, IntercommCreate, WinNew, WinFree, OneSided, WinAll, WinTarget, WinLock, WinGroup, Refused };
struct OpFacts {
  ActionKind kind;
  uint32_t traits;
  Form form;
};
inline constexpr std::array<OpFacts, OP_COUNT> OPS = {{
    {ActionKind::None, 0x0, Form::Init},  // Init
    {ActionKind::None, 0x0, Form::Bare},  // Finalize
    {ActionKind::Compute, 0x0, Form::Compute},  // Compute
    {ActionKind::Sleep, 0x0, Form::Sleep},  // Sleep
    {ActionKind::Kernel, 0x0, Form::Kernel},  // Kernel
    {ActionKind::PointToPoint, 0x100, Form::Send},  // Send
    {ActionKind::PointToPoint, 0x2100, Form::Send},  // Ssend
    {ActionKind::PointToPoint, 0x4100, Form::Send},  // Bsend
    {ActionKind::PointToPoint, 0x100, Form::Send},  // Rsend
    {ActionKind::PointToPoint, 0x900, Form::Send},  // Isend
    {ActionKind::PointToPoint, 0x2900, Form::Send},  // Issend
    {ActionKind::PointToPoint, 0x4900, Form::Send},  // Ibsend
    {ActionKind::PointToPoint, 0x900, Form::Send},  // Irsend
    {ActionKind::PointToPoint, 0x200, Form::Recv},  // Recv
    {ActionKind::PointToPoint, 0xa00, Form::Recv},  // Irecv
    {ActionKind::SendReceive, 0x100, Form::Sendrecv},  // Sendrecv
    {ActionKind::OneRequest, 0x0, Form::Request},  // Wait
    {ActionKind::SeveralRequests, 0x0, Form::All},  // Waitall
    {ActionKind::SeveralRequests, 0x0, Form::All},  // Waitany
    {ActionKind::SeveralRequests, 0x0, Form::All},  // Waitsome
    {ActionKind::OneRequest, 0x0, Form::Request},  // Test
    {ActionKind::SeveralRequests, 0x0, Form::All},  // Testall
    {ActionKind::SeveralRequests, 0x0, Form::All},  // Testany
    {ActionKind::SeveralRequests, 0x0, Form::All},  // Testsome
    {ActionKind::PointToPoint, 0x1000, Form::Probe},  // Probe
    {ActionKind::PointToPoint, 0x1000, Form::Probe},  // Iprobe
    {ActionKind::PointToPoint, 0xc00, Form::Send},  // SendInit
    {ActionKind::PointToPoint, 0x2c00, Form::Send},  // SsendInit
    {ActionKind::PointToPoint, 0x4c00, Form::Send},  // BsendInit
    {ActionKind::PointToPoint, 0xc00, Form::Send},  // RsendInit
    {ActionKind::PointToPoint, 0xe00, Form::Recv},  // RecvInit
    {ActionKind::OneRequest, 0x0, Form::Request},  // Start
    {ActionKind::SeveralRequests, 0x0, Form::All},  // Startall
    {ActionKind::OneRequest, 0x0, Form::Request},  // RequestFree
    {ActionKind::Collective, 0x21, Form::Bare},  // Barrier
    {ActionKind::Collective, 0x25, Form::Bcast},  // Bcast
    {ActionKind::Collective, 0x2d, Form::Reduce},  // Reduce
    {ActionKind::Collective, 0x21, Form::Allreduce},  // Allreduce
    {ActionKind::Collective, 0x21, Form::Allreduce},  // Scan
    {ActionKind::Collective, 0x21, Form::Allreduce},  // Exscan
    {ActionKind::Collective, 0x31, Form::ReduceScatter},  // ReduceScatter
    {ActionKind::Collective, 0x21, Form::Alltoall},  // Alltoall
    {ActionKind::Collective, 0x31, Form::Alltoallv},  // Alltoallv
    {ActionKind::Collective, 0x2d, Form::Rooted},  // Gather
    {ActionKind::Collective, 0x3d, Form::Gatherv},  // Gatherv
    {ActionKind::Collective, 0x21, Form::Alltoall},  // Allgather
    {ActionKind::Collective, 0x31, Form::Allgatherv},  // Allgatherv
    {ActionKind::Collective, 0x25, Form::Rooted},  // Scatter
    {ActionKind::Collective, 0x35, Form::Scatterv},  // Scatterv
    {ActionKind::Collective, 0x31, Form::Alltoallw},  // Alltoallw
    {ActionKind::Collective, 0x21, Form::Allreduce},  // ReduceScatterBlock
    {ActionKind::Collective, 0x23, Form::Alltoall},  // NeighborAllgather
    {ActionKind::Collective, 0x33, Form::NeighborAllgatherv},  // NeighborAllgatherv
    {ActionKind::Collective, 0x23, Form::Alltoall},  // NeighborAlltoall
    {ActionKind::Collective, 0x33, Form::NeighborAlltoallv},  // NeighborAlltoallv
    {ActionKind::Collective, 0x33, Form::NeighborAlltoallw},  // NeighborAlltoallw
    {ActionKind::NewComm, 0x20, Form::CommNew},  // CommNew
    {ActionKind::None, 0x20, Form::Bare},  // CommFree
    {ActionKind::NewWindow, 0x20, Form::WinNew},  // WinNew
    {ActionKind::NewWindow, 0x20, Form::WinFree},  // WinFree
    {ActionKind::Rma, 0xc0, Form::OneSided},  // Put
    {ActionKind::Rma, 0xc0, Form::OneSided},  // Get
    {ActionKind::Rma, 0xc0, Form::OneSided},  // Accumulate
    {ActionKind::Rma, 0xc0, Form::OneSided},  // GetAccumulate
    {ActionKind::Rma, 0xc0, Form::OneSided},  // FetchOp
    {ActionKind::Rma, 0xc0, Form::OneSided},  // CompareSwap
    {ActionKind::WindowSync, 0x80, Form::WinAll},  // Fence
    {ActionKind::WindowSync, 0x80, Form::WinAll},  // Flush
    {ActionKind::WindowSync, 0x80, Form::WinAll},  // FlushLocal
    {ActionKind::WindowSync, 0x80, Form::WinLock},  // Lock
    {ActionKind::WindowSync, 0x80, Form::WinAll},  // LockAll
    {ActionKind::WindowSync, 0x80, Form::WinTarget},  // Unlock
    {ActionKind::WindowSync, 0x80, Form::WinAll},  // UnlockAll
    {ActionKind::WindowSync, 0x80, Form::WinGroup},  // WinPost
    {ActionKind::WindowSync, 0x80, Form::WinGroup},  // WinStart
    {ActionKind::WindowSync, 0x80, Form::Bare},  // WinComplete
    {ActionKind::WindowSync, 0x80, Form::Bare},  // WinWait
    {ActionKind::Mark, 0, Form::Bare},  // Mark
}};
constexpr bool is(Op op, Trait what) {
  return (OPS[static_cast<size_t>(op)].traits >> static_cast<unsigned>(what) & 1) != 0;
}

/// How many numbers there are of a kind: one, or one for each member or neighbour.
enum class Many : uint8_t { None, One, Ranks, In, Out };
/// The arguments of a form, and those of a collective, which stand in this order: what is sent, what is received (each after the
/// length of its buffer), computation, the root, the types, displacements.
struct Layout {
  const char* text;
  uint8_t least, most;  // a vector counts as one
  uint8_t types;
  Many sent, received;
  bool buffers, flops, root, displacements;
  static constexpr bool several(Many m) { return m != Many::None && m != Many::One; }
  [[nodiscard]] constexpr bool vector() const { return several(sent) || several(received); }
};
inline constexpr std::array<Layout, 37> LAYOUTS = {{
    {"", 0, 0, 0, Many::None, Many::None, false, false, false, false},  // Bare
    {"...", 1, 1, 0, Many::None, Many::None, false, false, false, false},  // Ignored
    {"FILE LINE", 2, 2, 0, Many::None, Many::None, false, false, false, false},  // Location
    {"[OLD]", 0, 1, 0, Many::None, Many::None, false, false, false, false},  // Init
    {"FLOPS", 1, 1, 0, Many::None, Many::None, false, true, false, false},  // Compute
    {"SECONDS", 1, 1, 0, Many::None, Many::None, false, false, false, false},  // Sleep
    {"NAME N [REPS]", 2, 3, 0, Many::None, Many::None, false, false, false, false},  // Kernel
    {"DST TAG COUNT [TYPE]", 3, 4, 1, Many::One, Many::None, false, false, false, false},  // Send
    {"SRC TAG COUNT [TYPE]", 3, 4, 1, Many::One, Many::None, false, false, false, false},  // Recv
    {"SCOUNT DST RCOUNT SRC STYPE RTYPE", 6, 6, 2, Many::One, Many::One, false, false, false, false},  // Sendrecv
    {"SRC DST TAG", 3, 3, 0, Many::None, Many::None, false, false, false, false},  // Request
    {"[REQUESTS]", 0, 1, 0, Many::None, Many::None, false, false, false, false},  // All
    {"SRC TAG", 2, 2, 0, Many::None, Many::None, false, false, false, false},  // Probe
    {"COUNT [ROOT [TYPE]]", 1, 3, 1, Many::One, Many::None, false, false, true, false},  // Bcast
    {"COUNT FLOPS [ROOT [TYPE]]", 2, 4, 1, Many::One, Many::None, false, true, true, false},  // Reduce
    {"COUNT FLOPS [TYPE]", 2, 3, 1, Many::One, Many::None, false, true, false, false},  // Allreduce
    {"RCOUNT*n FLOPS [TYPE]", 2, 3, 1, Many::None, Many::Ranks, false, true, false, false},  // ReduceScatter
    {"SCOUNT RCOUNT [STYPE [RTYPE]]", 2, 4, 2, Many::One, Many::One, false, false, false, false},  // Alltoall
    {"SBUF SCOUNT*n RBUF RCOUNT*n [STYPE [RTYPE]]", 4, 6, 2, Many::Ranks, Many::Ranks, true, false, false, false},  // Alltoallv
    {"SCOUNT RCOUNT [ROOT [STYPE [RTYPE]]]", 2, 5, 2, Many::One, Many::One, false, false, true, false},  // Rooted
    {"SCOUNT RCOUNT*n [ROOT [STYPE [RTYPE]]]", 2, 5, 2, Many::One, Many::Ranks, false, false, true, false},  // Gatherv
    {"SCOUNT RCOUNT*n [STYPE [RTYPE [DISP*n]]]", 2, 5, 2, Many::One, Many::Ranks, false, false, false, true},  // Allgatherv
    {"SCOUNT*n RCOUNT [ROOT [STYPE [RTYPE]]]", 2, 5, 2, Many::Ranks, Many::One, false, false, true, false},  // Scatterv
    {"SBYTES*n RBYTES*n", 2, 2, 0, Many::Ranks, Many::Ranks, false, false, false, false},  // Alltoallw
    {"SCOUNT RCOUNT*in [STYPE [RTYPE]]", 2, 4, 2, Many::One, Many::In, false, false, false, false},  // NeighborAllgatherv
    {"SCOUNT*out RCOUNT*in [STYPE [RTYPE]]", 2, 4, 2, Many::Out, Many::In, false, false, false, false},  // NeighborAlltoallv
    {"SBYTES*out RBYTES*in", 2, 2, 0, Many::Out, Many::In, false, false, false, false},  // NeighborAlltoallw
    {"NEW GROUP", 2, 2, 0, Many::None, Many::None, false, false, false, false},  // CommNew
    {"NEW LOCALGROUP REMOTEGROUP", 3, 3, 0, Many::None, Many::None, false, false, false, false},  // IntercommCreate
    {"WIN BYTES", 2, 2, 0, Many::One, Many::None, false, false, false, false},  // WinNew
    {"WIN", 1, 1, 0, Many::None, Many::None, false, false, false, false},  // WinFree
    {"TARGET TAG COUNT [TYPE]", 3, 4, 1, Many::One, Many::None, false, false, false, false},  // OneSided
    {"[ANY]", 0, 1, 0, Many::None, Many::None, false, false, false, false},  // WinAll
    {"TARGET", 1, 1, 0, Many::None, Many::None, false, false, false, false},  // WinTarget
    {"TARGET 0|1", 2, 2, 0, Many::None, Many::None, false, false, false, false},  // WinLock
    {"GROUP", 1, 1, 0, Many::None, Many::None, false, false, false, false},  // WinGroup
    {"a reason", 2, 2, 0, Many::None, Many::None, false, false, false, false},  // Refused
}};
constexpr const Layout& layout_of(Form form) { return LAYOUTS[static_cast<size_t>(form)]; }
constexpr const Layout& layout_of(Op op) { return layout_of(OPS[static_cast<size_t>(op)].form); }

/// The attributes KEY=VALUE at the end of a line.
enum class Key : uint8_t { Comm, Req, Reqs, Done, Flag, From, Mtag, Stag, Rtag, Win, Dims, Periods, In, Out };
inline constexpr std::array<std::string_view, 14> KEY_NAMES = {"comm", "req", "reqs", "done", "flag", "from", "mtag", "stag", "rtag", "win", "dims", "periods", "in", "out"};
constexpr size_t KEYS = KEY_NAMES.size();

/// A name in the place of the call.
struct Word {
  std::string_view name;
  Op op;
  Form form;
  uint8_t flags;  // Action::flags
  CommHow how;  // of Op::CommNew
  uint32_t keys;  // the attributes that its lines may have
  const char* reason;  // of Form::Refused, and of a line that lacks what this needs
};
inline constexpr Word WORDS[] = {
    {"init", Op::Init, Form::Init, 0, CommHow::Split, 0x0, nullptr},
    {"finalize", Op::Finalize, Form::Bare, 0, CommHow::Split, 0x0, nullptr},
    {"compute", Op::Compute, Form::Compute, 0, CommHow::Split, 0x0, nullptr},
    {"sleep", Op::Sleep, Form::Sleep, 0, CommHow::Split, 0x0, nullptr},
    {"kernel", Op::Kernel, Form::Kernel, 0, CommHow::Split, 0x0, nullptr},
    {"send", Op::Send, Form::Send, 0, CommHow::Split, 0x1, nullptr},
    {"Ssend", Op::Ssend, Form::Send, 0, CommHow::Split, 0x1, nullptr},
    {"ssend", Op::Ssend, Form::Send, 0, CommHow::Split, 0x1, nullptr},
    {"bsend", Op::Bsend, Form::Send, 0, CommHow::Split, 0x1, nullptr},
    {"rsend", Op::Rsend, Form::Send, 0, CommHow::Split, 0x1, nullptr},
    {"isend", Op::Isend, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"ISsend", Op::Issend, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"issend", Op::Issend, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"ibsend", Op::Ibsend, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"irsend", Op::Irsend, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"recv", Op::Recv, Form::Recv, 0, CommHow::Split, 0x61, nullptr},
    {"irecv", Op::Irecv, Form::Recv, 0, CommHow::Split, 0x63, nullptr},
    {"sendRecv", Op::Sendrecv, Form::Sendrecv, 0, CommHow::Split, 0x1e1, nullptr},
    {"wait", Op::Wait, Form::Request, 0, CommHow::Split, 0x62, nullptr},
    {"waitall", Op::Waitall, Form::All, 0, CommHow::Split, 0x64, nullptr},
    {"waitAny", Op::Waitany, Form::All, 0, CommHow::Split, 0x6c, nullptr},
    {"waitany", Op::Waitany, Form::All, 0, CommHow::Split, 0x6c, nullptr},
    {"waitsome", Op::Waitsome, Form::All, 0, CommHow::Split, 0x6c, nullptr},
    {"test", Op::Test, Form::Request, 0, CommHow::Split, 0x72, nullptr},
    {"testall", Op::Testall, Form::All, 0, CommHow::Split, 0x7c, nullptr},
    {"testany", Op::Testany, Form::All, 0, CommHow::Split, 0x6c, nullptr},
    {"testsome", Op::Testsome, Form::All, 0, CommHow::Split, 0x6c, nullptr},
    {"probe", Op::Probe, Form::Probe, 0, CommHow::Split, 0x61, nullptr},
    {"iprobe", Op::Iprobe, Form::Probe, 0, CommHow::Split, 0x71, nullptr},
    {"sendInit", Op::SendInit, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"ssendInit", Op::SsendInit, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"bsendInit", Op::BsendInit, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"rsendInit", Op::RsendInit, Form::Send, 0, CommHow::Split, 0x3, nullptr},
    {"recvInit", Op::RecvInit, Form::Recv, 0, CommHow::Split, 0x3, nullptr},
    {"start", Op::Start, Form::Request, 0, CommHow::Split, 0x62, nullptr},
    {"startall", Op::Startall, Form::All, 0, CommHow::Split, 0x64, nullptr},
    {"requestFree", Op::RequestFree, Form::Request, 0, CommHow::Split, 0x2, nullptr},
    {"barrier", Op::Barrier, Form::Bare, 0, CommHow::Split, 0x1, nullptr},
    {"bcast", Op::Bcast, Form::Bcast, 0, CommHow::Split, 0x1, nullptr},
    {"reduce", Op::Reduce, Form::Reduce, 0, CommHow::Split, 0x1, nullptr},
    {"allreduce", Op::Allreduce, Form::Allreduce, 0, CommHow::Split, 0x1, nullptr},
    {"scan", Op::Scan, Form::Allreduce, 0, CommHow::Split, 0x1, nullptr},
    {"exscan", Op::Exscan, Form::Allreduce, 0, CommHow::Split, 0x1, nullptr},
    {"reducescatter", Op::ReduceScatter, Form::ReduceScatter, 0, CommHow::Split, 0x1, nullptr},
    {"alltoall", Op::Alltoall, Form::Alltoall, 0, CommHow::Split, 0x1, nullptr},
    {"alltoallv", Op::Alltoallv, Form::Alltoallv, 0, CommHow::Split, 0x1, nullptr},
    {"gather", Op::Gather, Form::Rooted, 0, CommHow::Split, 0x1, nullptr},
    {"gatherv", Op::Gatherv, Form::Gatherv, 0, CommHow::Split, 0x1, nullptr},
    {"allgather", Op::Allgather, Form::Alltoall, 0, CommHow::Split, 0x1, nullptr},
    {"allgatherv", Op::Allgatherv, Form::Allgatherv, 0, CommHow::Split, 0x1, nullptr},
    {"scatter", Op::Scatter, Form::Rooted, 0, CommHow::Split, 0x1, nullptr},
    {"scatterv", Op::Scatterv, Form::Scatterv, 0, CommHow::Split, 0x1, nullptr},
    {"alltoallw", Op::Alltoallw, Form::Alltoallw, 0, CommHow::Split, 0x1, nullptr},
    {"reducescatterblock", Op::ReduceScatterBlock, Form::Allreduce, 0, CommHow::Split, 0x1, nullptr},
    {"neighbor_allgather", Op::NeighborAllgather, Form::Alltoall, 0, CommHow::Split, 0x1, nullptr},
    {"neighbor_allgatherv", Op::NeighborAllgatherv, Form::NeighborAllgatherv, 0, CommHow::Split, 0x1, nullptr},
    {"neighbor_alltoall", Op::NeighborAlltoall, Form::Alltoall, 0, CommHow::Split, 0x1, nullptr},
    {"neighbor_alltoallv", Op::NeighborAlltoallv, Form::NeighborAlltoallv, 0, CommHow::Split, 0x1, nullptr},
    {"neighbor_alltoallw", Op::NeighborAlltoallw, Form::NeighborAlltoallw, 0, CommHow::Split, 0x1, nullptr},
    {"comm_split", Op::CommNew, Form::CommNew, 0, CommHow::Split, 0x1, nullptr},
    {"comm_dup", Op::CommNew, Form::CommNew, 0, CommHow::Dup, 0x1, nullptr},
    {"comm_create", Op::CommNew, Form::CommNew, 0, CommHow::Create, 0x1, nullptr},
    {"comm_create_group", Op::CommNew, Form::CommNew, 0, CommHow::CreateGroup, 0x1, nullptr},
    {"intercomm_create", Op::CommNew, Form::IntercommCreate, 0, CommHow::IntercommCreate, 0x1, nullptr},
    {"intercomm_merge", Op::CommNew, Form::CommNew, 0, CommHow::IntercommMerge, 0x1, nullptr},
    {"cart_create", Op::CommNew, Form::CommNew, 0, CommHow::Cart, 0xc01, nullptr},
    {"graph_create", Op::CommNew, Form::CommNew, 0, CommHow::Graph, 0x3001, nullptr},
    {"comm_free", Op::CommFree, Form::Bare, 0, CommHow::Split, 0x1, nullptr},
    {"win_create", Op::WinNew, Form::WinNew, 0, CommHow::Split, 0x1, nullptr},
    {"win_free", Op::WinFree, Form::WinFree, 0, CommHow::Split, 0x0, nullptr},
    {"Put", Op::Put, Form::OneSided, 0, CommHow::Split, 0x201, nullptr},
    {"Get", Op::Get, Form::OneSided, 0, CommHow::Split, 0x201, nullptr},
    {"Accumulate", Op::Accumulate, Form::OneSided, 0, CommHow::Split, 0x201, nullptr},
    {"Get_accumulate", Op::GetAccumulate, Form::OneSided, 0, CommHow::Split, 0x201, nullptr},
    {"Fetch_and_op", Op::FetchOp, Form::OneSided, 0, CommHow::Split, 0x201, nullptr},
    {"Compare_and_swap", Op::CompareSwap, Form::OneSided, 0, CommHow::Split, 0x201, nullptr},
    {"Win_fence", Op::Fence, Form::WinAll, 0, CommHow::Split, 0x201, nullptr},
    {"Win_flush_all", Op::Flush, Form::WinAll, 0, CommHow::Split, 0x201, nullptr},
    {"Win_flush", Op::Flush, Form::WinTarget, 0, CommHow::Split, 0x201, nullptr},
    {"Win_flush_local_all", Op::FlushLocal, Form::WinAll, 0, CommHow::Split, 0x201, nullptr},
    {"Win_flush_local", Op::FlushLocal, Form::WinTarget, 0, CommHow::Split, 0x201, nullptr},
    {"Win_lock", Op::Lock, Form::WinLock, 0, CommHow::Split, 0x201, "one-sided synchronisation of a part of the ranks needs its window (win=W) and targets, which SMPI's tracer loses"},
    {"Win_lock_all", Op::LockAll, Form::WinAll, 0, CommHow::Split, 0x201, nullptr},
    {"Win_unlock", Op::Unlock, Form::WinTarget, 0, CommHow::Split, 0x201, "one-sided synchronisation of a part of the ranks needs its window (win=W) and targets, which SMPI's tracer loses"},
    {"Win_unlock_all", Op::UnlockAll, Form::WinAll, 0, CommHow::Split, 0x201, nullptr},
    {"Win_post", Op::WinPost, Form::WinGroup, 0, CommHow::Split, 0x201, "one-sided synchronisation of a part of the ranks needs its window (win=W) and targets, which SMPI's tracer loses"},
    {"Win_start", Op::WinStart, Form::WinGroup, 0, CommHow::Split, 0x201, "one-sided synchronisation of a part of the ranks needs its window (win=W) and targets, which SMPI's tracer loses"},
    {"Win_complete", Op::WinComplete, Form::Bare, 0, CommHow::Split, 0x201, "one-sided synchronisation of a part of the ranks needs its window (win=W) and targets, which SMPI's tracer loses"},
    {"Win_wait", Op::WinWait, Form::Bare, 0, CommHow::Split, 0x201, "one-sided synchronisation of a part of the ranks needs its window (win=W) and targets, which SMPI's tracer loses"},
    {"ibarrier", Op::Barrier, Form::Bare, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ibcast", Op::Bcast, Form::Bcast, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ireduce", Op::Reduce, Form::Reduce, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"iallreduce", Op::Allreduce, Form::Allreduce, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"iscan", Op::Scan, Form::Allreduce, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"iexscan", Op::Exscan, Form::Allreduce, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ireducescatter", Op::ReduceScatter, Form::ReduceScatter, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ialltoall", Op::Alltoall, Form::Alltoall, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ialltoallv", Op::Alltoallv, Form::Alltoallv, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"igather", Op::Gather, Form::Rooted, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"igatherv", Op::Gatherv, Form::Gatherv, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"iallgather", Op::Allgather, Form::Alltoall, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"iallgatherv", Op::Allgatherv, Form::Allgatherv, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"iscatter", Op::Scatter, Form::Rooted, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"iscatterv", Op::Scatterv, Form::Scatterv, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ialltoallw", Op::Alltoallw, Form::Alltoallw, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ireducescatterblock", Op::ReduceScatterBlock, Form::Allreduce, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ineighbor_allgather", Op::NeighborAllgather, Form::Alltoall, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ineighbor_allgatherv", Op::NeighborAllgatherv, Form::NeighborAllgatherv, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ineighbor_alltoall", Op::NeighborAlltoall, Form::Alltoall, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ineighbor_alltoallv", Op::NeighborAlltoallv, Form::NeighborAlltoallv, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"ineighbor_alltoallw", Op::NeighborAlltoallw, Form::NeighborAlltoallw, 2, CommHow::Split, 0x3, "non-blocking collectives need the identity of their request: without req=N no wait can name it"},
    {"Rput", Op::Put, Form::OneSided, 2, CommHow::Split, 0x203, "one-sided calls that return a request need its identity: without req=N no wait can name it"},
    {"Rget", Op::Get, Form::OneSided, 2, CommHow::Split, 0x203, "one-sided calls that return a request need its identity: without req=N no wait can name it"},
    {"Raccumulate", Op::Accumulate, Form::OneSided, 2, CommHow::Split, 0x203, "one-sided calls that return a request need its identity: without req=N no wait can name it"},
    {"Rget_accumulate", Op::GetAccumulate, Form::OneSided, 2, CommHow::Split, 0x203, "one-sided calls that return a request need its identity: without req=N no wait can name it"},
    {"comm_size", Op::Init, Form::Ignored, 0, CommHow::Split, 0x0, nullptr},
    {"location", Op::Init, Form::Location, 0, CommHow::Split, 0x0, nullptr},
    {"Start", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "SMPI's tracer writes no line for MPI_Send_init and MPI_Recv_init, so which request this starts is lost; write 'sendInit'/'recvInit' and 'start SRC DST TAG'"},
    {"Startall", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "SMPI's tracer writes no line for MPI_Send_init and MPI_Recv_init, so which requests this starts is lost; write 'sendInit'/'recvInit' and 'startall'"},
    {"isendRecv", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "MPI_Isendrecv is not simulated"},
    {"IO", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "MPI-IO is not simulated"},
    {"spawn", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "processes that a program starts or connects to are not simulated"},
    {"partitioned", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "partitioned communication is not simulated"},
    {"persistentCollective", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "persistent collectives are not simulated"},
    {"generalizedRequest", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "what completes a generalized request is lost"},
    {"intercomm_split", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "a part of an intercommunicator is not simulated"},
    {"foreign_comm", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "a communicator or window whose making the recorder did not see"},
    {"threads", Op::Init, Form::Refused, 0, CommHow::Split, 0x0, "several threads called MPI at once, so the order of the calls is lost"},
};

}  // namespace retrompi
