// One action of a trace: a tagged union. The operation says which group of arguments an action has (docs/trace-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "event/assert.hpp"
#include "trace/op.hpp"

namespace retrompi {

/// The arguments of each group. Peers and targets are ranks of MPI_COMM_WORLD; roots and the order of vector counts are those of the
/// communicator. An index of -1: absent.
namespace action {

/// The message that a wildcard receive or probe matched when the trace was recorded (FLAG_MATCHED).
struct Envelope {
  int32_t source = 0, tag = 0;
  bool operator==(const Envelope&) const = default;
};

/// Init, Finalize, CommFree
struct None {
  static constexpr ActionKind kKind = ActionKind::None;
  bool operator==(const None&) const = default;
};

struct Compute {
  static constexpr ActionKind kKind = ActionKind::Compute;
  double flops = 0;
  bool operator==(const Compute&) const = default;
};

struct Sleep {
  static constexpr ActionKind kKind = ActionKind::Sleep;
  double seconds = 0;
  bool operator==(const Sleep&) const = default;
};

/// A named piece of computation.
struct Kernel {
  static constexpr ActionKind kKind = ActionKind::Kernel;
  int32_t label = 0;   // its name: index in Trace::labels
  int64_t length = 0;  // of the vectors
  double times = 0;
  bool operator==(const Kernel&) const = default;
};

struct Mark {
  static constexpr ActionKind kKind = ActionKind::Mark;
  int32_t label = 0;  // index in Trace::labels
  bool operator==(const Mark&) const = default;
};

/// Sends, receives, their persistent forms, and probes.
struct PointToPoint {
  static constexpr ActionKind kKind = ActionKind::PointToPoint;
  int32_t peer = 0;   // a destination or PROC_NULL; a source, ANY_SOURCE or PROC_NULL
  int32_t tag = 0;    // of a receive or probe also ANY_TAG
  int64_t bytes = 0;  // of the message, or of the receive buffer (-1: unknown)
  Envelope matched;   // wildcard receives and probes
  bool operator==(const PointToPoint&) const = default;
};

/// MPI_Sendrecv
struct SendReceive {
  static constexpr ActionKind kKind = ActionKind::SendReceive;
  int32_t destination = 0, send_tag = 0;
  int32_t source = 0, receive_tag = 0;
  int64_t bytes = 0;          // sent
  int64_t receive_bytes = 0;  // of the receive buffer
  Envelope matched;
  bool operator==(const SendReceive&) const = default;
};

/// Wait, Test, Start, RequestFree of one request: Action::request, or the key under which SMPI files it: (me, destination, tag) of a send,
/// (source, me, tag) of a receive, first in first out. Source and destination are -1 where the line has no key.
struct OneRequest {
  static constexpr ActionKind kKind = ActionKind::OneRequest;
  int32_t source = 0, destination = 0, tag = 0;
  Envelope matched;  // Start of a persistent wildcard receive
  bool operator==(const OneRequest&) const = default;
};

/// Waitall .. Testsome, Startall. Without a list: every outstanding (Startall: inactive persistent) request of the rank.
struct SeveralRequests {
  static constexpr ActionKind kKind = ActionKind::SeveralRequests;
  int32_t list = -1;      // index in Trace::vec: the identities of `count` requests, then those that the call completed; of Startall
                          // (identity, source, tag) of each wildcard receive whose match is recorded
  int64_t count = 0;      // without a list: as written, for information only; -1 when there was none
  int64_t completed = 0;  // with a list: how many the call completed, or triples
  bool operator==(const SeveralRequests&) const = default;
};

/// What a collective sends is `bytes`, what it receives `receive_bytes` (to and from each, or from and to the root), by the form of its line
/// (Layout). Where there is one for each member or neighbour they are in `counts`, those sent before those received, and the bytes are their
/// sums. Of a form with one side alone both is `bytes`: the vector, one member's part, or the sum of all parts. What is of a root alone is
/// significant there.
struct Collective {
  static constexpr ActionKind kKind = ActionKind::Collective;
  int32_t root = 0;     // of an intercommunicator also ROOT, PROC_NULL
  int32_t counts = -1;  // index in Trace::vec
  int64_t bytes = 0, receive_bytes = 0;
  double flops = 0;  // computed after it
  bool operator==(const Collective&) const = default;
};

/// A communicator created from Action::comm.
struct NewComm {
  static constexpr ActionKind kKind = ActionKind::NewComm;
  int32_t made = 0;  // index in Trace::comms; -1: this rank gets none
  CommHow how = CommHow::Split;
  bool operator==(const NewComm&) const = default;
};

/// WinNew, WinFree
struct NewWindow {
  static constexpr ActionKind kKind = ActionKind::NewWindow;
  int32_t window = 0;  // its identity
  int64_t bytes = 0;   // of it on this rank
  bool operator==(const NewWindow&) const = default;
};

/// Put .. CompareSwap. GetAccumulate, FetchOp, CompareSwap: the bytes travel in both directions.
struct Rma {
  static constexpr ActionKind kKind = ActionKind::Rma;
  int32_t target = 0;  // or PROC_NULL
  int32_t tag = 0;     // as written, for information only
  int32_t window = 0;  // 0: not recorded
  int64_t bytes = 0;
  bool operator==(const Rma&) const = default;
};

/// Fence .. WinWait: completion and synchronisation of a window.
struct WindowSync {
  static constexpr ActionKind kKind = ActionKind::WindowSync;
  int32_t window = 0;      // 0: not recorded
  int32_t target = -1;     // Lock, Unlock, Flush of one target
  int32_t ranks = -1;      // WinPost, WinStart: index in Trace::vec of the world ranks
  bool exclusive = false;  // Lock
  int64_t argument = 0;    // Fence, Flush: the argument as written, for information only; -1 when there was none
  bool operator==(const WindowSync&) const = default;
};

}  // namespace action

/// One line of a trace, or a mark.
class Action {
 public:
  explicit Action(Op operation = Op::Init, uint32_t at_line = 0);

  Op op;  // may only be replaced by one of the same group
  uint8_t flags = 0;

 private:
  ActionKind kind_;

 public:
  uint32_t line;        // 1-based, in Trace::files[rank]
  int32_t comm = 0;     // index in Trace::comms, 0 MPI_COMM_WORLD
  int32_t request = 0;  // identity of the request that the call returns or refers to, 1..; 0: not recorded

  [[nodiscard]] ActionKind kind() const { return kind_; }
  /// The arguments, of the operation's group.
  template <class T>
  [[nodiscard]] T& get() {
    RETROMPI_ASSERT(kind_ == T::kKind && kind_of_op(op) == T::kKind);
    return *std::launder(reinterpret_cast<T*>(arguments_));
  }
  template <class T>
  [[nodiscard]] const T& get() const {
    RETROMPI_ASSERT(kind_ == T::kKind && kind_of_op(op) == T::kKind);
    return *std::launder(reinterpret_cast<const T*>(arguments_));
  }
  /// The same, or null if the operation belongs to another group.
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return kind_ == T::kKind ? &get<T>() : nullptr;
  }
  /// Calls `f` with the arguments of any group.
  template <class F>
  decltype(auto) visit(F&& f) {
    return visit_kind(*this, f);
  }
  template <class F>
  decltype(auto) visit(F&& f) const {
    return visit_kind(*this, f);
  }

  [[nodiscard]] bool nonblocking() const { return (flags & FLAG_NONBLOCKING) != 0; }
  [[nodiscard]] bool matched() const { return (flags & FLAG_MATCHED) != 0; }
  [[nodiscard]] bool told() const { return (flags & FLAG_TOLD) != 0; }
  [[nodiscard]] bool done() const { return (flags & FLAG_DONE) != 0; }

 private:
  template <class Self, class F>
  static decltype(auto) visit_kind(Self& self, F& f) {
    switch (self.kind_) {
      case ActionKind::Compute:
        return f(self.template get<action::Compute>());
      case ActionKind::Sleep:
        return f(self.template get<action::Sleep>());
      case ActionKind::Kernel:
        return f(self.template get<action::Kernel>());
      case ActionKind::Mark:
        return f(self.template get<action::Mark>());
      case ActionKind::PointToPoint:
        return f(self.template get<action::PointToPoint>());
      case ActionKind::SendReceive:
        return f(self.template get<action::SendReceive>());
      case ActionKind::OneRequest:
        return f(self.template get<action::OneRequest>());
      case ActionKind::SeveralRequests:
        return f(self.template get<action::SeveralRequests>());
      case ActionKind::Collective:
        return f(self.template get<action::Collective>());
      case ActionKind::NewComm:
        return f(self.template get<action::NewComm>());
      case ActionKind::NewWindow:
        return f(self.template get<action::NewWindow>());
      case ActionKind::Rma:
        return f(self.template get<action::Rma>());
      case ActionKind::WindowSync:
        return f(self.template get<action::WindowSync>());
      case ActionKind::None:
        break;
    }
    return f(self.template get<action::None>());
  }
  alignas(8) std::byte arguments_[40];
};
inline Action::Action(Op operation, uint32_t at_line) : op(operation), kind_(kind_of_op(operation)), line(at_line) {
  visit([](auto& arguments) { std::construct_at(&arguments); });
}
static_assert(std::is_trivially_copyable_v<Action> && sizeof(action::SendReceive) == 40 && sizeof(Action) == 56);

}  // namespace retrompi
