// The sampling of a timeline: what is kept stays bounded and its counters never overflow, however small the limit.
#include <gtest/gtest.h>

#include "record/timeline.hpp"
#include "trace/trace.hpp"

namespace retrompi {
namespace {

TEST(Timeline, KeepsTheFirstCallOfEachRankWhenThereAreMoreRanksThanRoom) {
  constexpr int32_t kRanks = 200, kCalls = 300;
  Timeline t({.limit = 10}, 0, kRanks);
  const Action barrier(Op::Barrier, 1);
  Ps now = 0;
  for (int32_t call = 0; call < kCalls; ++call)
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      t.begin_call(rank, now);
      t.end_call(rank, barrier, now += 1);
    }
  EXPECT_EQ(t.calls_seen(), int64_t{kRanks} * kCalls);
  EXPECT_EQ(t.calls.size(), size_t{kRanks});
  for (const Timeline::Call& c : t.calls) EXPECT_EQ(c.nth, 0u);
  EXPECT_GE(t.every_call(), 1);
  EXPECT_LE(t.every_call(), 512);  // 300 calls are thinned out by then
}

TEST(Timeline, CoarsensNoFurtherThanTimeCanBeCounted) {
  constexpr size_t kProcesses = 50;
  Timeline t({.limit = 4}, kProcesses, 1);
  for (int64_t now = 0; now < 1000; ++now)
    for (size_t p = 0; p < kProcesses; ++p) t.segment(static_cast<int>(p), now, now + 1, static_cast<uint8_t>(now % 3));
  t.finish();
  EXPECT_GT(t.resolution(), 0);
  for (const Timeline::Process& p : t.processes) EXPECT_LE(p.states.size(), 3u);  // each of the three states once
}

TEST(Timeline, ThinsMessagesWithinTheLimit) {
  Timeline t({.limit = 3}, 0, 2);
  for (int64_t now = 0; now < 1000; ++now) t.sent({0, 1, 0, 0, 8, 1, now, -1, false, {}});
  EXPECT_LE(t.messages.size(), 3u);
  EXPECT_EQ(t.messages_seen(), 1000);
  EXPECT_EQ((t.traffic[{0, 1}].messages), 1000);
}

}  // namespace
}  // namespace retrompi
