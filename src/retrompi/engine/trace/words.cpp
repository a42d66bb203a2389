#include "trace/words.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace retrompi {
namespace {

constexpr const char* UNNAMED_COLLECTIVE = "non-blocking collectives need the identity of their request: without req=N no wait can name it";
constexpr const char* UNNAMED_ONE_SIDED = "one-sided calls that return a request need its identity: without req=N no wait can name it";
constexpr const char* WIN = "one-sided synchronisation of a part of the ranks needs its window (win=W) and targets, which SMPI's tracer loses";
constexpr const char* FILE_IO = "MPI-IO is not simulated";
constexpr const char* START =
    "SMPI's tracer writes no line for MPI_Send_init and MPI_Recv_init, so which request this starts is lost; "
    "write 'sendInit'/'recvInit' and 'start SRC DST TAG'";
constexpr const char* STARTALL =
    "SMPI's tracer writes no line for MPI_Send_init and MPI_Recv_init, so which requests this starts is lost; "
    "write 'sendInit'/'recvInit' and 'startall'";

// The first name of an operation is the one to_ti writes: SMPI's own where SMPI has one.
constexpr Word WORDS[] = {
    {"init", Op::Init, Form::Bare},
    {"finalize", Op::Finalize, Form::Bare},
    {"compute", Op::Compute, Form::Compute},
    {"sleep", Op::Sleep, Form::Sleep},
    {"kernel", Op::Kernel, Form::Kernel},
    {"send", Op::Send, Form::Send},
    {"Ssend", Op::Ssend, Form::Send},
    {"ssend", Op::Ssend, Form::Send},
    {"bsend", Op::Bsend, Form::Send},
    {"rsend", Op::Rsend, Form::Send},
    {"isend", Op::Isend, Form::Send},
    {"ISsend", Op::Issend, Form::Send},
    {"issend", Op::Issend, Form::Send},
    {"ibsend", Op::Ibsend, Form::Send},
    {"irsend", Op::Irsend, Form::Send},
    {"recv", Op::Recv, Form::Recv},
    {"irecv", Op::Irecv, Form::Recv},
    {"sendRecv", Op::Sendrecv, Form::Sendrecv},
    {"wait", Op::Wait, Form::Request},
    {"waitall", Op::Waitall, Form::All},
    {"waitAny", Op::Waitany, Form::All},
    {"waitany", Op::Waitany, Form::All},
    {"waitsome", Op::Waitsome, Form::All},
    {"test", Op::Test, Form::Request},
    {"testall", Op::Testall, Form::All},
    {"testany", Op::Testany, Form::All},
    {"testsome", Op::Testsome, Form::All},
    {"probe", Op::Probe, Form::Probe},
    {"iprobe", Op::Iprobe, Form::Probe},
    {"sendInit", Op::SendInit, Form::Send},
    {"ssendInit", Op::SsendInit, Form::Send},
    {"bsendInit", Op::BsendInit, Form::Send},
    {"rsendInit", Op::RsendInit, Form::Send},
    {"recvInit", Op::RecvInit, Form::Recv},
    {"start", Op::Start, Form::Request},
    {"startall", Op::Startall, Form::All},
    {"requestFree", Op::RequestFree, Form::Request},
    {"barrier", Op::Barrier, Form::Bare},
    {"bcast", Op::Bcast, Form::Bcast},
    {"reduce", Op::Reduce, Form::Reduce},
    {"allreduce", Op::Allreduce, Form::Allreduce},
    {"scan", Op::Scan, Form::Allreduce},
    {"exscan", Op::Exscan, Form::Allreduce},
    {"reducescatter", Op::ReduceScatter, Form::ReduceScatter},
    {"alltoall", Op::Alltoall, Form::Alltoall},
    {"alltoallv", Op::Alltoallv, Form::Alltoallv},
    {"gather", Op::Gather, Form::Rooted},
    {"gatherv", Op::Gatherv, Form::Gatherv},
    {"allgather", Op::Allgather, Form::Alltoall},
    {"allgatherv", Op::Allgatherv, Form::Allgatherv},
    {"scatter", Op::Scatter, Form::Rooted},
    {"scatterv", Op::Scatterv, Form::Scatterv},
    {"alltoallw", Op::Alltoallw, Form::Alltoallw},
    {"reducescatterblock", Op::ReduceScatterBlock, Form::Allreduce},
    {"neighbor_allgather", Op::NeighborAllgather, Form::Alltoall},
    {"neighbor_allgatherv", Op::NeighborAllgatherv, Form::NeighborAllgatherv},
    {"neighbor_alltoall", Op::NeighborAlltoall, Form::Alltoall},
    {"neighbor_alltoallv", Op::NeighborAlltoallv, Form::NeighborAlltoallv},
    {"neighbor_alltoallw", Op::NeighborAlltoallw, Form::NeighborAlltoallw},
    {"comm_split", Op::CommNew, Form::CommNew, nullptr, 0, CommHow::Split},
    {"comm_dup", Op::CommNew, Form::CommNew, nullptr, 0, CommHow::Dup},
    {"comm_create", Op::CommNew, Form::CommNew, nullptr, 0, CommHow::Create},
    {"comm_create_group", Op::CommNew, Form::CommNew, nullptr, 0, CommHow::CreateGroup},
    {"intercomm_create", Op::CommNew, Form::IntercommCreate, nullptr, 0, CommHow::IntercommCreate},
    {"intercomm_merge", Op::CommNew, Form::CommNew, nullptr, 0, CommHow::IntercommMerge},
    {"cart_create", Op::CommNew, Form::CommNew, nullptr, 0, CommHow::Cart},
    {"graph_create", Op::CommNew, Form::CommNew, nullptr, 0, CommHow::Graph},
    {"comm_free", Op::CommFree, Form::CommFree},
    {"win_create", Op::WinNew, Form::WinNew},
    {"win_free", Op::WinFree, Form::WinFree},
    {"Put", Op::Put, Form::OneSided},
    {"Get", Op::Get, Form::OneSided},
    {"Accumulate", Op::Accumulate, Form::OneSided},
    {"Get_accumulate", Op::GetAccumulate, Form::OneSided},
    {"Fetch_and_op", Op::FetchOp, Form::OneSided},
    {"Compare_and_swap", Op::CompareSwap, Form::OneSided},
    {"Win_fence", Op::Fence, Form::WinAll},
    {"Win_flush_all", Op::Flush, Form::WinAll},
    {"Win_flush", Op::Flush, Form::WinTarget},
    {"Win_flush_local_all", Op::FlushLocal, Form::WinAll},
    {"Win_flush_local", Op::FlushLocal, Form::WinTarget},
    {"Win_lock", Op::Lock, Form::WinLock, WIN},
    {"Win_lock_all", Op::LockAll, Form::WinAll},
    {"Win_unlock", Op::Unlock, Form::WinTarget, WIN},
    {"Win_unlock_all", Op::UnlockAll, Form::WinAll},
    {"Win_post", Op::WinPost, Form::WinGroup, WIN},
    {"Win_start", Op::WinStart, Form::WinGroup, WIN},
    {"Win_complete", Op::WinComplete, Form::WinBare, WIN},
    {"Win_wait", Op::WinWait, Form::WinBare, WIN},
    // Op::Mark has no line keyword: it is a comment, which SMPI skips.
    {"comm_size", Op::Init, Form::Ignored},
    {"location", Op::Init, Form::Location},
    {"Start", Op::Init, Form::Refused, START},
    {"Startall", Op::Init, Form::Refused, STARTALL},
    {"isendRecv", Op::Init, Form::Refused, "MPI_Isendrecv is not simulated"},
    {"ibarrier", Op::Barrier, Form::Bare, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ibcast", Op::Bcast, Form::Bcast, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ireduce", Op::Reduce, Form::Reduce, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"iallreduce", Op::Allreduce, Form::Allreduce, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"igather", Op::Gather, Form::Rooted, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"igatherv", Op::Gatherv, Form::Gatherv, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"iscatter", Op::Scatter, Form::Rooted, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"iscatterv", Op::Scatterv, Form::Scatterv, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"iallgather", Op::Allgather, Form::Alltoall, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"iallgatherv", Op::Allgatherv, Form::Allgatherv, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ialltoall", Op::Alltoall, Form::Alltoall, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ialltoallv", Op::Alltoallv, Form::Alltoallv, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ialltoallw", Op::Alltoallw, Form::Alltoallw, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"iscan", Op::Scan, Form::Allreduce, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"iexscan", Op::Exscan, Form::Allreduce, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ireducescatter", Op::ReduceScatter, Form::ReduceScatter, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ireducescatterblock", Op::ReduceScatterBlock, Form::Allreduce, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ineighbor_allgather", Op::NeighborAllgather, Form::Alltoall, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ineighbor_allgatherv", Op::NeighborAllgatherv, Form::NeighborAllgatherv, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ineighbor_alltoall", Op::NeighborAlltoall, Form::Alltoall, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ineighbor_alltoallv", Op::NeighborAlltoallv, Form::NeighborAlltoallv, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"ineighbor_alltoallw", Op::NeighborAlltoallw, Form::NeighborAlltoallw, UNNAMED_COLLECTIVE, FLAG_NONBLOCKING},
    {"Rput", Op::Put, Form::OneSided, UNNAMED_ONE_SIDED, FLAG_NONBLOCKING},
    {"Rget", Op::Get, Form::OneSided, UNNAMED_ONE_SIDED, FLAG_NONBLOCKING},
    {"Raccumulate", Op::Accumulate, Form::OneSided, UNNAMED_ONE_SIDED, FLAG_NONBLOCKING},
    {"Rget_accumulate", Op::GetAccumulate, Form::OneSided, UNNAMED_ONE_SIDED, FLAG_NONBLOCKING},
    {"IO", Op::Init, Form::Refused, FILE_IO},
    // Written by our own recorder for a call that the format cannot express (docs/recording.md).
    {"spawn", Op::Init, Form::Refused, "processes that a program starts or connects to are not simulated"},
    {"partitioned", Op::Init, Form::Refused, "partitioned communication is not simulated"},
    {"persistentCollective", Op::Init, Form::Refused, "persistent collectives are not simulated"},
    {"generalizedRequest", Op::Init, Form::Refused, "what completes a generalized request is lost"},
    {"intercomm_split", Op::Init, Form::Refused, "a part of an intercommunicator is not simulated"},
    {"foreign_comm", Op::Init, Form::Refused, "a communicator or window whose making the recorder did not see"},
    {"threads", Op::Init, Form::Refused, "several threads called MPI at once, so the order of the calls is lost"},
};

// An open-addressed table: one look per line of the trace, so a tree or a string hash would show in the profile.
constexpr size_t SLOTS = 512;

constexpr size_t slot(std::string_view s) {
  size_t h = s.size();
  for (char c : s) h = h * 31 + static_cast<unsigned char>(c);
  return h % SLOTS;
}

constexpr std::array<uint8_t, SLOTS> build_table() {
  static_assert(std::size(WORDS) < 255);
  std::array<uint8_t, SLOTS> table{};
  for (size_t i = 0; i < std::size(WORDS); ++i) {
    size_t at = slot(WORDS[i].name);
    while (table[at] != 0) at = (at + 1) % SLOTS;
    table[at] = static_cast<uint8_t>(i + 1);
  }
  return table;
}
constexpr auto TABLE = build_table();

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

// Levenshtein distance, case-insensitive (SSend is Ssend); words here are short.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      const size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, change});
      diagonal = above;
    }
  }
  return row[b.size()];
}

const Word* find_word(std::string_view name) {
  if (name.empty() || name.size() > 24)  // no name is longer: keeps garbage from being hashed at length
    return nullptr;
  for (size_t at = slot(name); TABLE[at] != 0; at = (at + 1) % SLOTS)
    if (WORDS[TABLE[at] - 1].name == name) return &WORDS[TABLE[at] - 1];
  return nullptr;
}

namespace {

// The word that to_ti writes, by operation and variant: 0 the blocking call on all targets, 1 with a request or with a target; of
// CommNew by its kind of creation.
constexpr size_t VARIANTS = 8;

constexpr std::array<uint8_t, OP_COUNT * VARIANTS> build_names() {
  std::array<uint8_t, OP_COUNT * VARIANTS> table{};
  for (size_t i = 0; i < std::size(WORDS); ++i) {
    const Word& w = WORDS[i];
    if (w.form == Form::Refused || w.form == Form::Ignored || w.form == Form::Location) continue;
    size_t variant = 0;
    if (w.op == Op::CommNew)
      variant = static_cast<size_t>(w.how);
    else if (w.flags != 0 || ((w.op == Op::Flush || w.op == Op::FlushLocal) && w.form == Form::WinTarget))
      variant = 1;
    uint8_t& cell = table[static_cast<size_t>(w.op) * VARIANTS + variant];
    if (cell == 0) cell = static_cast<uint8_t>(i + 1);
  }
  return table;
}
constexpr auto NAMES = build_names();

}  // namespace

const size_t WORD_COUNT = std::size(WORDS);
const Word& word_at(size_t index) { return WORDS[index]; }
size_t word_index(const Word& word) { return static_cast<size_t>(&word - WORDS); }

const Word& word_of(const Action& a) {
  size_t variant = 0;
  if (a.op == Op::CommNew)
    variant = static_cast<size_t>(a.get<action::NewComm>().how) % VARIANTS;
  else if (a.nonblocking() || ((a.op == Op::Flush || a.op == Op::FlushLocal) && a.get<action::WindowSync>().target >= 0))
    variant = 1;
  const uint8_t at = NAMES[static_cast<size_t>(a.op) * VARIANTS + variant];
  return WORDS[at == 0 ? 0 : at - 1];
}

std::string_view canonical_name(Op op) {
  if (op == Op::Mark) return "mark";
  return WORDS[NAMES[static_cast<size_t>(op) * VARIANTS] - 1].name;
}

const char* op_name(Op op) { return canonical_name(op).data(); }  // literals: zero-terminated
const char* action_name(const Action& a) { return a.op == Op::Mark ? "mark" : word_of(a).name.data(); }

bool is_collective(Op op) { return op >= Op::Barrier && op <= Op::NeighborAlltoallw; }
bool is_rooted(Op op) {
  return op == Op::Bcast || op == Op::Reduce || op == Op::Gather || op == Op::Gatherv || op == Op::Scatter || op == Op::Scatterv;
}
bool is_vector(Op op) {
  return op == Op::ReduceScatter || op == Op::Alltoallv || op == Op::Gatherv || op == Op::Allgatherv || op == Op::Scatterv || op == Op::Alltoallw ||
         op == Op::NeighborAllgatherv || op == Op::NeighborAlltoallv || op == Op::NeighborAlltoallw;
}
bool is_one_sided(Op op) { return op >= Op::Put && op <= Op::CompareSwap; }
bool is_window(Op op) { return op >= Op::Put && op <= Op::WinWait; }
bool is_receive(Op op) { return op == Op::Recv || op == Op::Irecv || op == Op::RecvInit; }
bool is_send(Op op) { return (op >= Op::Send && op <= Op::Irsend) || op == Op::Sendrecv; }
bool is_some(Op op) { return kind_of_op(op) == ActionKind::SeveralRequests; }
std::optional<Transfer> sent_by(const Action& a) {
  if (!is_send(a.op)) return std::nullopt;
  if (const auto* both = a.get_if<action::SendReceive>()) return Transfer{both->destination, both->bytes};
  const auto& x = a.get<action::PointToPoint>();
  return Transfer{x.peer, x.bytes};
}

size_t nearest_ops(std::string_view word, std::vector<std::string>& out) {
  out.clear();
  if (word.size() > 64) return 0;
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const Word& w : WORDS)
    if (w.form != Form::Refused)
      if (const size_t d = edit_distance(word, w.name); d <= std::max<size_t>(1, w.name.size() / 3)) near.emplace_back(d, w.name);
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < near.size() && i < 3; ++i) out.emplace_back(near[i].second);
  return out.size();
}

std::string suggestion(std::string_view word) {
  std::vector<std::string> near;
  if (nearest_ops(word, near) == 0)
    return "; known are init, finalize, compute, sleep, send, recv, isend, irecv, wait, waitall, barrier, bcast and others: docs/trace-format.md";
  std::string text = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) text += (i == 0 ? "'" : i + 1 == near.size() ? " or '" : ", '") + near[i] + "'";
  return text + "?";
}

std::string quoted(std::string_view text) {
  constexpr size_t LIMIT = 40;
  static const char* HEX = "0123456789abcdef";
  std::string out = "'";
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == LIMIT) {
      out += "...";
      break;
    }
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x7f)
      out += text[i];
    else
      (out += "\\x") += {HEX[c >> 4], HEX[c & 15]};
  }
  return out + "'";
}

bool is_text(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    size_t more = 0;
    uint32_t code = c;
    if (c < 0x20 || c == 0x7f) return false;
    if (c >= 0x80) {
      if (c >= 0xc2 && c <= 0xdf) {
        more = 1;
        code = c & 0x1f;
      } else if ((c & 0xf0) == 0xe0) {
        more = 2;
        code = c & 0x0f;
      } else if (c >= 0xf0 && c <= 0xf4) {
        more = 3;
        code = c & 0x07;
      } else {
        return false;
      }
      if (s.size() - i <= more) return false;
      for (size_t k = 1; k <= more; ++k) {
        const auto d = static_cast<unsigned char>(s[i + k]);
        if ((d & 0xc0) != 0x80) return false;
        code = code << 6 | (d & 0x3f);
      }
      const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
      if (overlong || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) || code < 0xa0) return false;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace retrompi
