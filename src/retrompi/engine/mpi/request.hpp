// Requests, and a runtime's parameters for its ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "channel/message.hpp"
#include "generated/specs.hpp"
#include "host/cost.hpp"
#include "mpi/matching.hpp"
#include "trace/trace.hpp"

namespace retrompi {

struct Request {
  enum Kind : uint8_t { Send, Recv, Collective, OneSided } kind = Send;
  int32_t peer = 0, tag = 0, ctx = 0;  // a receive keeps its wildcards
  int64_t bytes = 0;
  Op mode = Op::Send;
  uint32_t line = 0;  // trace line of the call that started it
  bool done = false, persistent = false, active = true, detached = false;
  Message* m = nullptr;
  int32_t src = 0, dst = 0;  // the key under which a trace files it
  Queued<Request> queued;    // while it is posted
  [[nodiscard]] int32_t envelope_source() const { return peer; }
};

/// Matching contexts separate communicators, in each the messages of collectives from the program's, and those of windows from all others.
inline int32_t program_context(int32_t comm) { return 2 * comm; }
inline int32_t collective_context(int32_t comm) { return 2 * comm + 1; }
inline int32_t window_context(int32_t window) { return -1 - window; }

/// Whether a receive takes a message.
inline bool matches(const Request& receive, const Message& m) {
  return receive.ctx == m.ctx && (receive.peer == m.src || receive.peer == ANY_SOURCE) && (receive.tag == m.tag || receive.tag == ANY_TAG);
}

/// One-sided operations between two ranks, as the model states them.
struct RmaSpec : OneSidedSpec {
  bool there = false;  // whether the runtime has them
};

/// Which protocol a message of a size range follows.
struct ProtocolRow {
  int64_t from = 0, to = 0;  // payload, from <= bytes < to
  /// Direct: the receiver gets the address of the data and copies them itself.
  enum Kind : uint8_t { Eager, Rendezvous, Direct } kind = Eager;
};

/// Copies of a whole message in the library's own memory: at the sender before its first packet, at the receiver after its last; and what
/// a request for permission to send carries.
struct Staging {
  double pack = 0, unpack = 0;  // how many
  double byte = 0;              // work for each byte at either end (ps on the reference host)
  double more = 0;              // copies more, at either end, of a message that passes through a packet of the library:
  int64_t until = 0;            // one of up to so many bytes
  int64_t ask = 0;              // bytes of a rendezvous message that its request carries
  [[nodiscard]] double packed(int64_t bytes) const { return pack + (bytes <= until ? more : 0); }
  [[nodiscard]] double unpacked(int64_t bytes) const { return unpack + (bytes <= until ? more : 0); }
  [[nodiscard]] bool packs(int64_t bytes) const { return packed(bytes) > 0 || byte > 0; }
  [[nodiscard]] bool unpacks(int64_t bytes) const { return unpacked(bytes) > 0 || byte > 0; }
};

struct RankSpec {
  std::vector<ProtocolRow> same, remote;
  Staging staging_same, staging_remote;
  Work send_cpu, recv_cpu;  // one call of the library
  CallCost test;            // one that looks for a message or a completion and finds none
  // Between hosts of different byte order each end converts, at a cost for each byte and one for each buffer.
  double convert_byte = 0;
  int64_t convert_buffer = 0;
  Work convert_call;
  CallCost lock;        // its lock, taken and released in each
  Service direct_call;  // the system's part of a direct copy in addition to a bare system call
  WaitPolicy recv_wait, send_wait;
};
namespace rank_number {
inline constexpr DeclaredNumber send_cpu{&RankSpec::send_cpu, "send_cpu"}, recv_cpu{&RankSpec::recv_cpu, "recv_cpu"};
inline constexpr DeclaredNumber test{&RankSpec::test, "test_cpu"}, lock{&RankSpec::lock, "call_lock"};
}  // namespace rank_number

}  // namespace retrompi
