#include "record/profile.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "trace/trace.hpp"
#include "trace/words.hpp"

namespace retrompi {
namespace {

constexpr int32_t kNone = std::numeric_limits<int32_t>::min();

/// The recorder writes MPI_Pcontrol(N) as the mark "pcontrol N".
int32_t level_of(std::string_view label) {
  constexpr std::string_view word = "pcontrol ";
  if (!label.starts_with(word)) return kNone;
  label.remove_prefix(word.size());
  int32_t level = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), level);
  return error == std::errc() && end == label.data() + label.size() ? level : kNone;
}

int64_t size_of(const Action& a) {
  switch (a.kind()) {
    case ActionKind::Collective: {
      const auto& x = a.get<action::Collective>();
      return x.bytes > 0 ? x.bytes : std::max<int64_t>(x.receive_bytes, 0);
    }
    case ActionKind::PointToPoint:
      return std::max<int64_t>(a.get<action::PointToPoint>().bytes, 0);  // of a probe 0
    case ActionKind::SendReceive:
      return std::max<int64_t>(a.get<action::SendReceive>().bytes, 0);
    case ActionKind::Rma:
      return std::max<int64_t>(a.get<action::Rma>().bytes, 0);
    default:
      return 0;
  }
}

}  // namespace

CallProfile::CallProfile(const Trace& trace, size_t ranks) : finalized(ranks, -1), section_(ranks, -1) {
  level_.reserve(trace.labels.size());
  for (const std::string& label : trace.labels) level_.push_back(level_of(label));
  for (const Comm& c : trace.comms) alone_.push_back(c.kind == Comm::Intra && c.group.size() == 1);
}

void CallProfile::ended(int32_t rank, const Action& a, Ps begin, Ps end) {
  const auto r = static_cast<size_t>(rank);
  switch (a.op) {
    case Op::Mark:
      if (const int32_t level = level_[static_cast<size_t>(a.get<action::Mark>().label)]; level != kNone) section_[r] = level < 0 ? -1 : level;
      return;
    case Op::Finalize:
      finalized[r] = begin;
      return;
    case Op::Init:
    case Op::Compute:
    case Op::Sleep:
    case Op::Kernel:
      return;
    case Op::CommNew:  // the recorder's description of MPI_COMM_SELF, which no call creates
      if (const auto& x = a.get<action::NewComm>(); x.how == CommHow::CreateGroup && x.made >= 0 && alone_[static_cast<size_t>(x.made)]) return;
      [[fallthrough]];
    default:
      Sum& sum = rows[{action_name(a), size_of(a), section_[r]}];
      ++sum.count;
      sum.time += end - begin;
  }
}

}  // namespace retrompi
