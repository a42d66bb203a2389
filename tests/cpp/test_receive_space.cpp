// What a TCP receive buffer lets its owner advertise. Segments of 1000 B, except where said otherwise.
#include <gtest/gtest.h>

#include "channel/receive_space.hpp"

namespace retrompi::test {
namespace {

TEST(ReceiveSpace, CountsDataWithoutFrames) {
  const ReceiveSpace space(8000, 1000, 0);
  EXPECT_FALSE(space.counts_memory());
  EXPECT_EQ(space.widest(), 8000);
  EXPECT_EQ(space.window(3000, 8000), 5000);
}

TEST(ReceiveSpace, KeepsBackAQuarterAndASegment) {
  // 12000 usable of 16000, one segment reserved: 11 of them. A frame of 1200 B is worth 900 B of window, less than its data.
  const ReceiveSpace space(16000, 1000, 1200);
  EXPECT_TRUE(space.counts_memory());
  EXPECT_EQ(space.widest(), 11000);
  // Two frames unread: 3/4 (16000 - 2400) = 10200, less than was advertised: whole segments of it. Four: 8400.
  EXPECT_EQ(space.window(2000, 11000), 10000);
  EXPECT_EQ(space.window(4000, 11000), 8000);
  // What was advertised before stays while it fits and no whole segment is gained.
  EXPECT_EQ(space.window(2000, 9500), 9500);
  EXPECT_EQ(space.window(2000, 9000), 10000);
}

TEST(ReceiveSpace, GrowsOnlyAsFarAsFramesFit) {
  // A frame of 4000 B is worth 3000; halved twice, 750, it is worth less than its data: the window grows by 2000 while it is at most a quarter
  // of 12000. It starts at 4000 and stays there.
  EXPECT_EQ(ReceiveSpace(16000, 1000, 4000).widest(), 4000);
  // Four times the buffer: at most 12000, so from 4000 over 6000, 8000, 10000, 12000 to 14000.
  EXPECT_EQ(ReceiveSpace(64000, 1000, 4000).widest(), 14000);
  // The TrendNet's driver with Linux's default buffer: 65535 usable; a quarter is 16384, from 5840 over 8760, 11680, 14600 to 17520.
  EXPECT_EQ(ReceiveSpace(87380, 1460, 6320).widest(), 17520);
}

TEST(ReceiveSpace, ClosesWithoutRoomForASegment) {
  const ReceiveSpace space(16000, 1000, 4000);
  EXPECT_EQ(space.window(4000, 4000), 0);
  EXPECT_EQ(space.window(3000, 4000), 3000);
}

TEST(ReceiveSpace, OffersLessThanASegmentIfItIsAll) {
  // 3000 usable of 4000 for segments of 9000 B: the window is all of it.
  const ReceiveSpace space(4000, 9000, 9200);
  EXPECT_EQ(space.widest(), 3000);
  EXPECT_EQ(space.window(0, 3000), 3000);
  EXPECT_EQ(space.window(1, 3000), 0);
}

}  // namespace
}  // namespace retrompi::test
