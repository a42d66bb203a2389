// The operations of a trace (those of the table in src/retrompi/spec/declare/calls.py), and the values that SMPI's traces carry.
#pragma once

#include <cstdint>

#include "generated/calls.hpp"

namespace retrompi {

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

constexpr bool is_collective(Op op) { return is(op, Trait::Collective); }
constexpr bool is_neighbour(Op op) { return is(op, Trait::Neighbour); }
constexpr bool is_rooted(Op op) { return is(op, Trait::Rooted); }
constexpr bool is_vector(Op op) { return is(op, Trait::Vector); }
constexpr bool is_one_sided(Op op) { return is(op, Trait::OneSided); }
constexpr bool is_window(Op op) { return is(op, Trait::Window); }
constexpr bool is_receive(Op op) { return is(op, Trait::Receive); }
constexpr bool is_send(Op op) { return is(op, Trait::Send); }
constexpr bool is_persistent(Op op) { return is(op, Trait::Persistent); }
constexpr bool is_probe(Op op) { return is(op, Trait::Probes); }
constexpr ActionKind kind_of_op(Op op) { return OPS[static_cast<size_t>(op)].kind; }
constexpr bool is_some(Op op) { return kind_of_op(op) == ActionKind::SeveralRequests; }  // a call on several requests

}  // namespace retrompi
