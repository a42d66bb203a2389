// Memory shared by the processes of a host: p4's pool of size classes, and rings of packet slots.
#include "channel/shared_segment.hpp"
#include "fixture.hpp"

namespace retrompi::test {
namespace {

const std::vector<int64_t> kClasses{64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};  // p4's

// Each buffer is of a class, 64 bytes to 1 MiB, behind a prefix of the allocator.
TEST(SharedPoolTest, CutsBuffersOfSizeClasses) {
  SharedPool pool(4 * 1024 + 4 * 32, 32, kClasses);
  const Message m;
  EXPECT_GE(pool.take(1000, &m, 0), 0);  // 1024 + 32
  EXPECT_GE(pool.take(1024, &m, 0), 0);
  EXPECT_GE(pool.take(257, &m, 0), 0);
  EXPECT_GE(pool.take(1024, &m, 0), 0);
  EXPECT_EQ(pool.take(1, &m, 0), -1);  // nothing is left
}

// E-P4-03: memory once cut into small buffers is not available for large ones.
TEST(SharedPoolTest, ABufferStaysInItsClass) {
  SharedPool pool(1024, 0, kClasses);
  const Message m;
  std::vector<int32_t> small;
  for (int i = 0; i < 4; ++i) small.push_back(pool.take(256, &m, 0));
  for (const int32_t h : small) pool.give(h);
  EXPECT_EQ(pool.take(1024, &m, 0), -1);
  EXPECT_TRUE(pool.possible(1024));
  EXPECT_GE(pool.take(200, &m, 0), 0);
}

TEST(SharedPoolTest, LargerRequestsAreCutOutAsTheyAreAndGivenBack) {
  constexpr int64_t kMib = 1 << 20;
  SharedPool pool(3 * kMib, 0, kClasses);
  const Message m;
  const int32_t h = pool.take(2 * kMib + 1, &m, 0);
  ASSERT_GE(h, 0);
  EXPECT_EQ(pool.take(kMib, &m, 0), -1);
  pool.give(h);
  EXPECT_GE(pool.take(kMib, &m, 0), 0);
  EXPECT_FALSE(pool.possible(3 * kMib + 1));
}

TEST(SharedPoolTest, TellsWhatFillsIt) {
  SharedPool pool(1024, 16, kClasses);
  const Message m;
  const int32_t h = pool.take(60, &m, 5);
  std::vector<Occupant> used;
  pool.fill(used);
  ASSERT_EQ(used.size(), 1U);
  EXPECT_EQ(used[0].bytes, 64 + 16);
  EXPECT_EQ(used[0].since, 5);
  pool.give(h);
  used.clear();
  pool.fill(used);
  EXPECT_TRUE(used.empty());
}

TEST(SlotRingTest, HasSoManySlots) {
  SlotRing ring(2);
  EXPECT_TRUE(ring.empty());
  EXPECT_TRUE(ring.take());
  EXPECT_TRUE(ring.take());
  EXPECT_FALSE(ring.take());
  ring.give();
  EXPECT_TRUE(ring.take());
}

#ifndef NDEBUG
TEST(SharedMemoryDeathTest, WhatIsGivenBackWasTaken) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SlotRing ring(1);
  EXPECT_DEATH(ring.give(), "free_ < slots_");
  SharedPool pool(1024, 0, kClasses);
  const Message m;
  const int32_t h = pool.take(64, &m, 0);
  pool.give(h);
  EXPECT_DEATH(pool.give(h), "buffers_");
}
#endif

}  // namespace
}  // namespace retrompi::test
