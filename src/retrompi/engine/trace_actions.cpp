#include "trace_actions.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace retrompi {
namespace {

constexpr const char* NBC = "non-blocking collectives are not simulated";
constexpr const char* RMA = "of one-sided communication only Put, Get, Accumulate, Win_fence and Win_flush(_all) are simulated";
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
    {"Put", Op::Put, Form::Send},
    {"Get", Op::Get, Form::Send},
    {"Accumulate", Op::Accumulate, Form::Send},
    {"Win_fence", Op::Fence, Form::All},
    {"Win_flush_all", Op::Flush, Form::All},
    {"Win_flush", Op::Flush, Form::All},
    // Op::Mark has no line of its own: it is a comment, which SMPI skips.
    {"comm_size", Op::Init, Form::Ignored},
    {"comm_split", Op::Init, Form::Ignored},
    {"comm_dup", Op::Init, Form::Ignored},
    {"location", Op::Init, Form::Location},
    {"Start", Op::Init, Form::Refused, START},
    {"Startall", Op::Init, Form::Refused, STARTALL},
    {"isendRecv", Op::Init, Form::Refused, "MPI_Isendrecv is not simulated"},
    {"ibarrier", Op::Init, Form::Refused, NBC},
    {"ibcast", Op::Init, Form::Refused, NBC},
    {"ireduce", Op::Init, Form::Refused, NBC},
    {"iallreduce", Op::Init, Form::Refused, NBC},
    {"igather", Op::Init, Form::Refused, NBC},
    {"igatherv", Op::Init, Form::Refused, NBC},
    {"iscatter", Op::Init, Form::Refused, NBC},
    {"iscatterv", Op::Init, Form::Refused, NBC},
    {"iallgather", Op::Init, Form::Refused, NBC},
    {"iallgatherv", Op::Init, Form::Refused, NBC},
    {"ialltoall", Op::Init, Form::Refused, NBC},
    {"ialltoallv", Op::Init, Form::Refused, NBC},
    {"ialltoallw", Op::Init, Form::Refused, NBC},
    {"iscan", Op::Init, Form::Refused, NBC},
    {"iexscan", Op::Init, Form::Refused, NBC},
    {"ireducescatter", Op::Init, Form::Refused, NBC},
    {"Rput", Op::Init, Form::Refused, RMA},
    {"Rget", Op::Init, Form::Refused, RMA},
    {"Raccumulate", Op::Init, Form::Refused, RMA},
    {"Get_accumulate", Op::Init, Form::Refused, RMA},
    {"Rget_accumulate", Op::Init, Form::Refused, RMA},
    {"Fetch_and_op", Op::Init, Form::Refused, RMA},
    {"Compare_and_swap", Op::Init, Form::Refused, RMA},
    {"Win_post", Op::Init, Form::Refused, RMA},
    {"Win_start", Op::Init, Form::Refused, RMA},
    {"Win_complete", Op::Init, Form::Refused, RMA},
    {"Win_wait", Op::Init, Form::Refused, RMA},
    {"Win_lock", Op::Init, Form::Refused, RMA},
    {"Win_lock_all", Op::Init, Form::Refused, RMA},
    {"Win_unlock", Op::Init, Form::Refused, RMA},
    {"Win_unlock_all", Op::Init, Form::Refused, RMA},
    {"Win_flush_local", Op::Init, Form::Refused, RMA},
    {"Win_flush_local_all", Op::Init, Form::Refused, RMA},
    {"IO", Op::Init, Form::Refused, FILE_IO},
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

// Levenshtein, case counting for nothing (SSend is Ssend); words here are short.
size_t distance(std::string_view a, std::string_view b) {
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

}  // namespace

const Word* find_word(std::string_view name) {
  if (name.empty() || name.size() > 24)  // no name is longer: keeps garbage from being hashed at length
    return nullptr;
  for (size_t at = slot(name); TABLE[at] != 0; at = (at + 1) % SLOTS)
    if (WORDS[TABLE[at] - 1].name == name) return &WORDS[TABLE[at] - 1];
  return nullptr;
}

std::string_view canonical_name(Op op) {
  if (op == Op::Mark) return "mark";
  for (const Word& w : WORDS)
    if (w.op == op) return w.name;
  return "?";
}

const char* op_name(Op op) { return canonical_name(op).data(); }  // literals: zero-terminated

Form form_of(Op op) {
  for (const Word& w : WORDS)
    if (w.op == op) return w.form;
  return Form::Bare;
}

bool is_collective(Op op) { return op >= Op::Barrier && op <= Op::Scatterv; }

size_t nearest_ops(std::string_view word, std::vector<std::string>& out) {
  out.clear();
  if (word.size() > 64) return 0;
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const Word& w : WORDS)
    if (w.form != Form::Refused)
      if (const size_t d = distance(word, w.name); d <= std::max<size_t>(1, w.name.size() / 3)) near.emplace_back(d, w.name);
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
