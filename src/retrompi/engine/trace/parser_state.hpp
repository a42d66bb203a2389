// State of the parser: for each rank its communicators, windows and requests, and for each communicator.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/trace.hpp"

namespace retrompi::parsing {

constexpr int TYPE_BYTE = 6;
constexpr int TYPE_DOUBLE = 0;

constexpr uint32_t bit(Key k) { return uint32_t{1} << static_cast<uint32_t>(k); }

// The KEY=VALUE fields of a line, verbatim.
struct Attributes {
  uint32_t mask = 0;
  std::array<std::string_view, KEYS> value;
  bool has(Key k) const { return (mask & bit(k)) != 0; }
  std::string_view operator[](Key k) const { return value[static_cast<size_t>(k)]; }
};

// A communicator as one rank has it.
struct Membership {
  int32_t index = 0;          // in Trace::comms
  int32_t me = 0;             // rank in the communicator (Inter: in its own group)
  uint8_t side = 0;           // Inter: 1 for a member of Comm::remote
  bool told = false;          // a difference from the other members' calls was reported
  uint32_t line = 0;          // line of its creation
  uint32_t freed = 0;         // line of its release; 0: not freed
  uint32_t calls = 0;         // collectives so far
  int32_t in = -1, out = -1;  // neighbours, -1: no topology
};

struct Window {
  Membership *members = nullptr;  // of which communicator
  uint32_t line = 0, freed = 0;
};

// A request that a call returned.
struct Pending {
  uint32_t index = 0;  // the action that stores a recorded match
  uint32_t line = 0;
  uint32_t order = 0;  // of being started
  int32_t source = 0, tag = 0;
  const Membership *comm = nullptr;
  bool receive = false, persistent = false, active = false;
  bool doubtful = false;  // possibly complete: a test without a recorded outcome
  bool wild = false;      // counted in Extension::wild
};

// State of ranks that use the extension.
struct Extension {
  std::unordered_map<int32_t, Membership> comms;  // by id, world apart; their addresses are stable
  std::unordered_map<int32_t, Window> windows;
  std::unordered_map<int32_t, Pending> requests;
  std::vector<Action> held;
  uint32_t wild = 0;  // open receives whose match is not known yet
  uint32_t order = 1;
  uint32_t all_complete = 0;                // requests started before are complete: a waitall without reqs=
  uint32_t doubtful = 0;                    // started before: possibly complete, after a test or waitany without done=
  std::string_view group;                   // of the last Win_post or Win_start
  int32_t group_index = -1, group_win = 0;  // in Trace::vec; of which window
};

struct RankState {
  int32_t default_type = TYPE_BYTE;
  bool init = false;
  bool finalize = false;
  uint32_t last_line = 0;
  const Source *source = nullptr;
  Membership world;
  std::unique_ptr<Extension> more;
};

// A collective as called by the first member to reach it, or to state its root or bytes.
struct Call {
  static constexpr int32_t NO_ROOT = INT32_MIN;
  static constexpr int64_t UNKNOWN = -1, DIFFERENT = -2;
  uint32_t line;
  int32_t rank;
  int32_t root;   // NO_ROOT: has none, or not known yet
  uint16_t kind;  // operation, blocking or not, how a communicator is created
  // What all members must agree on where one number says it: the vector, or the block that goes to or comes from each.
  enum Side : uint8_t { Has, Sends, Receives } side = Has;
  int64_t bytes = UNKNOWN;  // DIFFERENT: has been reported
};

// A member's amounts in a collective in which they differ by pair of members.
struct Part {
  uint32_t member = 0;  // of the communicator; Inter: those of `remote` come after those of `group`
  uint32_t line = 0;
  uint32_t amounts = 0;  // in Parser::amounts_
};
struct Amounts {
  int64_t bytes = 0, receive_bytes = 0;
  int32_t counts = -1, root = 0;
  bool operator==(const Amounts &) const = default;
};
// One such collective.
struct Parts {
  Op op = Op::Barrier;
  uint8_t flags = 0;
  std::vector<Part> of;  // of those that have called it
};

// What the parser keeps along with Trace::comms[i].
struct CommInfo {
  std::string text[2];  // GROUP as first written; Inter: of either side
  bool known[2] = {false, false};
  int32_t parent[2] = {-1, -1};  // one for all but intercomm_create
  CommHow how = CommHow::Split;
  int32_t rank = 0;
  uint32_t line = 0;
  uint32_t defined = 0;            // number of members that have defined it
  std::vector<Call> calls;         // the sequence of collectives
  std::vector<int32_t> sorted[2];  // the group (Inter: and the other), created on demand
};

// A piece of a GROUP: first, first + step, ...
struct Run {
  int32_t first, step, count;
};

}  // namespace retrompi::parsing
