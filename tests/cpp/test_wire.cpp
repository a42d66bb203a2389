// The wire between hosts: a byte per microsecond on every link, a latency of 100 us, max-min fair shares.
#include "fixture.hpp"

namespace retrompi::test {
namespace {

class WireTest : public testing::TestWithParam<const char *> {
 public:
  struct Flow {
    WireTest &test;
    int from, to;
    int64_t bytes;
    Ps arrived = -1, lost = -1;
    void start() { test.wire->send(from, to, bytes, delivery<&Flow::on_arrived, &Flow::on_lost>(*this)); }
    void on_arrived() { arrived = test.loop.now; }
    void on_lost() { lost = test.loop.now; }
  };
  void make(const std::string &kind, size_t hosts) {
    std::vector<size_t> positions;
    for (size_t i = 0; i < hosts; ++i) positions.push_back(i);
    const LinkSpec link{.kind = kind, .shape = {}, .bandwidth = 1e6, .latency = 100e-6};
    wire = native_wire(loop, anatomy, positions, link);
  }
  Flow &send(Ps at, int from, int to, int64_t bytes) {
    Flow &f = flows.emplace_back(Flow{*this, from, to, bytes});
    loop.schedule(at, callback<&Flow::start>(f));
    return f;
  }
  void run() {
    wire->run([] { return false; });
  }
  static Ps us(double n) { return static_cast<Ps>(n * static_cast<double>(kMicrosecond)); }
  Loop loop;
  Anatomy anatomy;
  std::unique_ptr<Wire> wire;
  std::deque<Flow> flows;
};

class EveryKind : public WireTest {};
TEST_P(EveryKind, CarriesAFrameInItsLatencyAndItsBytes) {
  make(GetParam(), 2);
  const Flow &f = send(us(50), 0, 1, 1000);
  run();
  EXPECT_EQ(f.arrived, us(50 + (std::string(GetParam()) == "switch" ? 200 : 100) + 1000));  // a switch: two links, two latencies
}
INSTANTIATE_TEST_SUITE_P(Links, EveryKind, testing::Values("cable", "hub", "switch"));

TEST_F(WireTest, TwoFramesOfOneDirectionShareACable) {
  make("cable", 2);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 0, 1, 1000);
  run();
  EXPECT_EQ(a.arrived, us(2100));
  EXPECT_EQ(b.arrived, us(2100));
}

// a is alone until 500 us and has 500 bytes left; at half the rate they take until 1500. By then b has 500 of its 1000: until 2000 alone.
TEST_F(WireTest, AShareChangesWhenAFrameSetsOutOrArrives) {
  make("cable", 2);
  const Flow &a = send(0, 0, 1, 1000), &b = send(us(500), 0, 1, 1000);
  run();
  EXPECT_EQ(a.arrived, us(1600));
  EXPECT_EQ(b.arrived, us(2100));
}

TEST_F(WireTest, TheDirectionsOfACableAreIndependent) {
  make("cable", 2);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 1, 0, 1000);
  run();
  EXPECT_EQ(a.arrived, us(1100));
  EXPECT_EQ(b.arrived, us(1100));
}

TEST_F(WireTest, AHubIsOneMediumForAll) {
  make("hub", 4);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 1, 0, 1000), &c = send(0, 2, 3, 500);
  run();
  // Three at a third each: c has its 500 bytes after 1500 us. The others have 500 left, at half the rate 1000 us.
  EXPECT_EQ(c.arrived, us(1600));
  EXPECT_EQ(a.arrived, us(2600));
  EXPECT_EQ(b.arrived, us(2600));
}

TEST_F(WireTest, ASwitchKeepsDisjointPairsApart) {
  make("switch", 4);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 2, 3, 1000);
  run();
  EXPECT_EQ(a.arrived, us(1200));
  EXPECT_EQ(b.arrived, us(1200));
}

TEST_F(WireTest, TwoSendersShareTheReceiversPortOfASwitch) {
  make("switch", 3);
  const Flow &a = send(0, 0, 2, 1000), &b = send(0, 1, 2, 1000);
  run();
  EXPECT_EQ(a.arrived, us(2200));
  EXPECT_EQ(b.arrived, us(2200));
}

// Into 3 go three flows, a third of the port each. The port out of 0 has one of them: what it leaves, two thirds, is d's (max-min).
TEST_F(WireTest, SharesAreMaxMinFair) {
  make("switch", 5);
  const Flow &a = send(0, 0, 3, 1000), &b = send(0, 1, 3, 1000), &c = send(0, 2, 3, 1000), &d = send(0, 0, 4, 1000);
  run();
  EXPECT_EQ(d.arrived, us(1700));  // 1000 bytes at 2/3
  for (const Flow *f : {&a, &b, &c}) EXPECT_EQ(f->arrived, us(3200));
}

TEST_F(WireTest, WhatCrossesALinkThatGoesDownIsLost) {
  make("cable", 2);
  wire->fail({{.what = Failure::Pair, .a = 0, .b = 1, .from = us(500), .until = us(800), .name = "link 0-1"}});
  const Flow &a = send(0, 0, 1, 1000), &b = send(us(600), 0, 1, 1000), &c = send(us(900), 0, 1, 1000);
  run();
  EXPECT_EQ(a.lost, us(500));  // in flight when the link went down
  EXPECT_EQ(b.lost, us(600));  // sent while it was down
  EXPECT_EQ(c.arrived, us(2000));
  EXPECT_EQ(a.arrived, -1);
  EXPECT_NE(wire->failed().find("2 frames lost"), std::string::npos);
}

TEST_F(WireTest, ACableJoinsTwoHosts) { EXPECT_THROW(make("cable", 3), ConfigError); }

}  // namespace
}  // namespace retrompi::test
