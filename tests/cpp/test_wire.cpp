// The wire between hosts: a byte per microsecond on every link, a latency of 100 us. Fluid: max-min fair shares; native: frames queue.
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
  static std::vector<size_t> places(size_t hosts) {
    std::vector<size_t> positions;
    for (size_t i = 0; i < hosts; ++i) positions.push_back(i);
    return positions;
  }
  static LinkSpec link(const std::string &kind) { return {.kind = kind, .shape = {}, .bandwidth = 1e6, .latency = 100e-6, .file = {}}; }
  void make_fluid(const std::string &kind, size_t hosts) { wire = fluid_wire(loop, anatomy, places(hosts), link(kind)); }
  void make(const LinkSpec &l, size_t hosts) { wire = native_wire(loop, anatomy, places(hosts), l, 1); }
  void make(const std::string &kind, size_t hosts) { make(link(kind), hosts); }
  Flow &send(Ps at, int from, int to, int64_t bytes) {
    Flow &f = flows.emplace_back(Flow{*this, from, to, bytes});
    loop.schedule(at, callback<&Flow::start>(f));
    return f;
  }
  /// The same, decided now: the card needs until then.
  Flow &plan(Ps at, int from, int to, int64_t bytes) {
    Flow &f = flows.emplace_back(Flow{*this, from, to, bytes});
    EXPECT_TRUE(wire->send_at(at, from, to, bytes, delivery<&Flow::on_arrived, &Flow::on_lost>(f)));
    return f;
  }
  void run() {
    wire->run(loop, [] { return false; });
  }
  static Ps us(double n) { return static_cast<Ps>(n * static_cast<double>(kMicrosecond)); }
  Loop loop;
  Anatomy anatomy;
  std::unique_ptr<Wire> wire;
  std::deque<Flow> flows;
};

class EveryKind : public WireTest {};
TEST_P(EveryKind, CarriesAFrameInItsLatencyAndItsBytes) {
  for (const bool fluid : {false, true}) {
    if (fluid)
      make_fluid(GetParam(), 2);
    else
      make(GetParam(), 2);
    const Ps now = loop.now;
    const Flow &f = send(now + us(50), 0, 1, 1000);
    run();
    EXPECT_EQ(f.arrived, now + us(50 + (std::string(GetParam()) == "switch" ? 200 : 100) + 1000));  // a switch: two links, two latencies
    EXPECT_EQ(wire->contended(), 0U);
  }
}
INSTANTIATE_TEST_SUITE_P(Links, EveryKind, testing::Values("cable", "hub", "switch"));

class FluidTest : public WireTest {};

TEST_F(FluidTest, TwoFramesOfOneDirectionShareACable) {
  make_fluid("cable", 2);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 0, 1, 1000);
  run();
  EXPECT_EQ(a.arrived, us(2100));
  EXPECT_EQ(b.arrived, us(2100));
}

// a is alone until 500 us and has 500 bytes left; at half the rate they take until 1500. By then b has 500 of its 1000: until 2000 alone.
TEST_F(FluidTest, AShareChangesWhenAFrameSetsOutOrArrives) {
  make_fluid("cable", 2);
  const Flow &a = send(0, 0, 1, 1000), &b = send(us(500), 0, 1, 1000);
  run();
  EXPECT_EQ(a.arrived, us(1600));
  EXPECT_EQ(b.arrived, us(2100));
}

TEST_F(FluidTest, TheDirectionsOfACableAreIndependent) {
  make_fluid("cable", 2);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 1, 0, 1000);
  run();
  EXPECT_EQ(a.arrived, us(1100));
  EXPECT_EQ(b.arrived, us(1100));
}

TEST_F(FluidTest, AHubIsOneMediumForAll) {
  make_fluid("hub", 4);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 1, 0, 1000), &c = send(0, 2, 3, 500);
  run();
  // Three at a third each: c has its 500 bytes after 1500 us. The others have 500 left, at half the rate 1000 us.
  EXPECT_EQ(c.arrived, us(1600));
  EXPECT_EQ(a.arrived, us(2600));
  EXPECT_EQ(b.arrived, us(2600));
}

TEST_F(FluidTest, ASwitchKeepsDisjointPairsApart) {
  make_fluid("switch", 4);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 2, 3, 1000);
  run();
  EXPECT_EQ(a.arrived, us(1200));
  EXPECT_EQ(b.arrived, us(1200));
}

TEST_F(FluidTest, TwoSendersShareTheReceiversPortOfASwitch) {
  make_fluid("switch", 3);
  const Flow &a = send(0, 0, 2, 1000), &b = send(0, 1, 2, 1000);
  run();
  EXPECT_EQ(a.arrived, us(2200));
  EXPECT_EQ(b.arrived, us(2200));
}

// Into 3 go three flows, a third of the port each. The port out of 0 has one of them: what it leaves, two thirds, is d's (max-min).
TEST_F(FluidTest, SharesAreMaxMinFair) {
  make_fluid("switch", 5);
  const Flow &a = send(0, 0, 3, 1000), &b = send(0, 1, 3, 1000), &c = send(0, 2, 3, 1000), &d = send(0, 0, 4, 1000);
  run();
  EXPECT_EQ(d.arrived, us(1700));  // 1000 bytes at 2/3
  for (const Flow *f : {&a, &b, &c}) EXPECT_EQ(f->arrived, us(3200));
}

class QueueTest : public WireTest {};

TEST_F(QueueTest, FramesOfOneDirectionFollowEachOther) {
  make("cable", 2);
  const Flow &a = send(0, 0, 1, 1000), &b = send(us(1), 0, 1, 10);
  run();
  EXPECT_EQ(a.arrived, us(1100));
  EXPECT_EQ(b.arrived, us(1110));  // short as it is
  EXPECT_EQ(wire->contended(), 1U);
}

// Both first bytes come to the port at 100 us; a was sent first. The port has a until 1100 and b until 2100.
TEST_F(QueueTest, APortOfASwitchServesInOrderOfArrival) {
  make("switch", 3);
  const Flow &a = send(0, 0, 2, 1000), &b = send(0, 1, 2, 1000), &c = send(us(50), 2, 0, 1000);
  run();
  EXPECT_EQ(a.arrived, us(1200));
  EXPECT_EQ(b.arrived, us(2200));
  EXPECT_EQ(c.arrived, us(1250));  // the other direction
}

// a is planned for 500 us, with a2 and a3 behind it, when b is sent: b reaches the port first, at 200, and has it until 1200. a starts there at 1200
// instead of 600; a2 follows at 2200, a3 at 3200. d shares no link with any of them.
TEST_F(QueueTest, AFrameThatComesFirstIsServedFirstAlthoughOthersWerePlanned) {
  make("switch", 5);
  const Flow &a = plan(us(500), 0, 2, 1000), &a2 = plan(us(500), 0, 2, 1000), &a3 = plan(us(500), 0, 2, 1000);
  const Flow &b = send(us(100), 1, 2, 1000), &d = send(us(100), 3, 4, 1000);
  run();
  EXPECT_EQ(b.arrived, us(1300));
  EXPECT_EQ(a.arrived, us(2300));
  EXPECT_EQ(a2.arrived, us(3300));
  EXPECT_EQ(a3.arrived, us(4300));
  EXPECT_EQ(d.arrived, us(1300));
}

// A ring of five places: 0 -> 2 goes over 1. x has the link 0-1 from 0 to 1000, so y comes to 1-2 at 1100; z came there at 500 and has it until 1500.
TEST_F(QueueTest, WhatWaitsOnOneLinkComesLaterToTheNext) {
  LinkSpec ring = link("torus");
  ring.shape = {5};
  make(ring, 5);
  const Flow &x = plan(0, 0, 1, 1000), &y = plan(0, 0, 2, 1000), &z = send(us(500), 1, 2, 1000);
  run();
  EXPECT_EQ(x.arrived, us(1100));
  EXPECT_EQ(z.arrived, us(1600));
  EXPECT_EQ(y.arrived, us(2600));
}

// Two frames of 1000 wait at the port when the fourth comes: with room for 2000 bytes it is dropped. The first is on the port and waits no more.
TEST_F(QueueTest, AFullBufferDropsAFrame) {
  LinkSpec small = link("switch");
  small.buffer = 2000;
  make(small, 6);
  const Flow &a = send(0, 0, 5, 1000), &b = send(us(1), 1, 5, 1000), &c = send(us(2), 2, 5, 1000), &d = send(us(3), 3, 5, 1000);
  const Flow &e = send(us(1050), 4, 5, 1000);  // comes at 1150: b is on the port and only c waits
  run();
  EXPECT_EQ(a.arrived, us(1200));
  EXPECT_EQ(b.arrived, us(2200));
  EXPECT_EQ(c.arrived, us(3200));
  EXPECT_EQ(d.arrived, -1);
  EXPECT_EQ(d.lost, us(103));
  EXPECT_EQ(e.arrived, us(4200));
  EXPECT_EQ(wire->dropped(), 1);
}

// Station 0 has three frames, station 2 one: it gets the second turn, although the first station's frames were there before.
TEST_F(QueueTest, AHubServesItsStationsInTurn) {
  make("hub", 4);
  const Flow &a = send(0, 0, 1, 1000), &b = send(0, 0, 1, 1000), &c = send(0, 0, 1, 1000), &d = send(us(10), 2, 3, 500);
  run();
  EXPECT_EQ(a.arrived, us(1100));
  EXPECT_EQ(d.arrived, us(1600));
  EXPECT_EQ(b.arrived, us(2600));
  EXPECT_EQ(c.arrived, us(3600));
  EXPECT_EQ(wire->contended(), 3U);
}

TEST_F(QueueTest, AFrameThatIsPlannedOnAHubGivesWayToAnEarlierOne) {
  make("hub", 4);
  const Flow &a = plan(us(500), 0, 1, 1000), &b = send(us(100), 2, 3, 1000);
  run();
  EXPECT_EQ(b.arrived, us(1200));
  EXPECT_EQ(a.arrived, us(2200));
}

// A slot, 512 bits, is 64 us here. Who waits for the end of a frame starts with all others who do: a collision, and each draws a delay.
TEST_F(QueueTest, StationsThatStartTogetherCollideAndTryAgain) {
  LinkSpec ether = link("hub");
  ether.access = Access::CsmaCd;
  ether.latency = 10e-6;
  make(ether, 6);
  const Flow &a = send(0, 0, 1, 1000), &b = send(us(200), 2, 3, 1000), &c = send(us(300), 4, 5, 1000);
  run();
  EXPECT_EQ(a.arrived, us(1010));  // alone: nobody else began within a latency
  const Ps first = std::min(b.arrived, c.arrived), second = std::max(b.arrived, c.arrived);
  EXPECT_GE(first, us(1000 + 64 + 1000 + 10));  // the collision at 1000, then the sooner of the two
  EXPECT_GE(second, first + us(1000));
  EXPECT_EQ((first - us(1000 + 64 + 1000 + 10)) % us(64), 0);  // a whole number of slots later
  EXPECT_EQ(wire->dropped(), 0);
}

TEST_F(QueueTest, WhatWaitsBehindALostFrameTakesItsPlace) {
  make("switch", 4);
  wire->fail({{.what = Failure::Host, .a = 0, .from = us(500), .until = us(800), .name = "link 0"}});
  const Flow &a = send(0, 0, 3, 1000), &b = send(us(10), 1, 3, 1000), &c = send(us(20), 2, 3, 1000);
  run();
  EXPECT_EQ(a.lost, us(500));
  EXPECT_EQ(b.arrived, us(1600));  // the port is free from 500 on
  EXPECT_EQ(c.arrived, us(2600));
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
