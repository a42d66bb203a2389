#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "event/core.hpp"

namespace retrompi::test {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

TEST(Time, IsExactUpToBothEndsOfItsRange) {
  EXPECT_EQ((Ps(kMost - 1) + 1).count(), kMost);
  EXPECT_EQ((Ps(kLeast + 1) - 1).count(), kLeast);
  EXPECT_EQ((Ps(kMost / 3) * 3).count(), kMost / 3 * 3);
  EXPECT_EQ((-Ps(kMost)).count(), -kMost);
  EXPECT_EQ(to_ps(1.5).count(), 1'500'000'000'000);
  EXPECT_EQ(to_ps(0.0049999e-12).count(), 0);
}

TEST(Time, ThrowsWhereItWouldWrap) {
  EXPECT_THROW((void)(Ps(kMost) + 1), Overflow);
  EXPECT_THROW((void)(Ps(1) + kNever), Overflow);
  EXPECT_THROW((void)(Ps(-2) - kMost), Overflow);
  EXPECT_THROW((void)(-Ps(kLeast)), Overflow);
  EXPECT_THROW((void)(Ps(kMost / 2 + 1) * 2), Overflow);
  EXPECT_THROW((void)(1000000 * Ps(kMost / 10)), Overflow);
  Ps t = kMost;
  EXPECT_THROW(t += 1, Overflow);
  EXPECT_EQ(t.count(), kMost);  // and keeps its value
  EXPECT_THROW((void)(Ps(std::numeric_limits<uint64_t>::max())), Overflow);
}

TEST(Time, AConversionFromSecondsIsWithinTheRangeOrThrows) {
  // 2^63 ps are 9223372.04 s; 2^63 itself is the first double outside.
  EXPECT_THROW((void)(to_ps(9223372.1)), Overflow);
  EXPECT_THROW((void)(to_ps(1e13)), Overflow);
  EXPECT_THROW((void)(Ps(0x1p63)), Overflow);
  EXPECT_EQ(Ps(std::nextafter(0x1p63, 0)).count(), kMost - 1023);  // doubles there are 1024 apart
  EXPECT_THROW((void)(to_ps(std::numeric_limits<double>::quiet_NaN())), Overflow);
  EXPECT_THROW((void)(to_ps(std::numeric_limits<double>::infinity())), Overflow);
  EXPECT_THROW((void)(to_ps(-std::numeric_limits<double>::infinity())), Overflow);
  EXPECT_EQ(to_ps_or_never(1e13), kNever);
  EXPECT_EQ(to_ps_or_never(2).count(), 2'000'000'000'000);
}

TEST(Time, DividesLikeWholeNumbers) {
  EXPECT_EQ(Ps(17) / Ps(5), 3);
  EXPECT_EQ(Ps(17) % Ps(5), 2);
  EXPECT_EQ(Ps(17) / 5, 3);
  EXPECT_EQ(static_cast<double>(Ps(17)), 17.0);
}

TEST(Time, SumsOfBytesLeaveRoomForAWindow) {
  EXPECT_EQ(checked_sum(int64_t{1} << 61, int64_t{1} << 61), int64_t{1} << 62);
  EXPECT_THROW((void)checked_sum(int64_t{1} << 62, 1), Overflow);
  EXPECT_THROW((void)checked_sum(kMost, kMost), Overflow);
}

/// The number of events is exact; what comes after it does not run.
TEST(Effort, EndsAfterItsEvents) {
  struct Counted {
    int n = 0;
    void up() { ++n; }
  } counted;
  Loop loop;
  loop.effort.start({.events = 3});
  for (int i = 0; i < 5; ++i) loop.schedule(i, callback<&Counted::up>(counted));
  EXPECT_THROW(while (!loop.empty()) loop.step(), Limit);
  EXPECT_EQ(counted.n, 3);
  EXPECT_EQ(loop.executed(), 3U);
}

TEST(Effort, AnArrayBeyondTheBoundOnMemoryIsRefused) {
  {
    const MemoryBound bound(64 << 20);
    EXPECT_THROW(std::vector<char>(size_t{1} << 30), std::bad_alloc);
  }
  EXPECT_NO_THROW(std::vector<char>(size_t{256} << 20));
}

}  // namespace
}  // namespace retrompi::test
