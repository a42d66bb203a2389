#include "record/profile.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "trace/trace.hpp"
#include "trace/trace_actions.hpp"

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
  if (is_collective(a.op)) return a.bytes > 0 ? a.bytes : std::max<int64_t>(a.bytes2, 0);
  if ((a.op >= Op::Send && a.op <= Op::Sendrecv) || (a.op >= Op::SendInit && a.op <= Op::RecvInit) || is_one_sided(a.op))
    return std::max<int64_t>(a.bytes, 0);
  return 0;
}

}  // namespace

CallProfile::CallProfile(const Trace& trace, size_t ranks) : finalized(ranks, -1), section_(ranks, -1) {
  level_.reserve(trace.labels.size());
  for (const std::string& label : trace.labels) level_.push_back(level_of(label));
}

void CallProfile::ended(int32_t rank, const Action& a, Ps begin, Ps end) {
  const auto r = static_cast<size_t>(rank);
  switch (a.op) {
    case Op::Mark:
      if (const int32_t level = level_[static_cast<size_t>(a.tag)]; level != kNone) section_[r] = level < 0 ? -1 : level;
      return;
    case Op::Finalize:
      finalized[r] = begin;
      return;
    case Op::Init:
    case Op::Compute:
    case Op::Sleep:
    case Op::Kernel:
      return;
    default:
      Sum& sum = rows[{action_name(a), size_of(a), section_[r]}];
      ++sum.count;
      sum.time += end - begin;
  }
}

}  // namespace retrompi
