// TCP between two hosts, with exact times. The transit of a frame of n bytes: 10 us in the sender's kernel, n + 20 us across its card, 100 us
// on the wire, n + 20 us across the receiver's card, 10 us in its kernel. A full segment (980 bytes): 2120 us. An acknowledgement: 160 us.
#include "channel/tcp.hpp"
#include "fixture.hpp"

namespace retrompi::test {
namespace {

constexpr int64_t kMss = 980;

/// One direction of a connection, whose ends log the notifications they get.
class Direction : public Chan, public TcpConnection::User {
 public:
  Direction(World& w, const MediumSpec& s, Proc& a, Proc& b, const TcpConnection::Options& o)
      : Chan(w, s, Medium::Stream, a, b), tcp(*this, *this, o) {}
  Task push(Packet) override { co_return; }
  Task pull(Token) override { co_return; }
  void on_readable() override {
    received.emplace_back(world.loop.now, tcp.rcv_nxt());
    if (reads) tcp.read(tcp.readable());
  }
  void on_acknowledged(bool) override { acknowledged.emplace_back(world.loop.now, tcp.snd_una()); }

  using Log = std::vector<std::pair<Ps, int64_t>>;
  TcpConnection tcp;
  bool reads = true;
  Log received, acknowledged;  // when, rcv_nxt; when, snd_una
};
using Log = Direction::Log;

class Tcp : public testing::Test {
 public:
  void make(const TcpConnection::Options& options = {}, const std::vector<Failure>& failures = {}) {
    for (const char* name : {"a", "b"}) w.hosts.push_back(std::make_unique<Host>(w.loop, w.anatomy, plain_host(name)));
    w.wire = native_wire(w.loop, w.anatomy, {0, 1}, {.kind = "cable", .shape = {}, .bandwidth = 1e18, .latency = 100e-6, .file = {}}, 1);
    if (!failures.empty()) w.wire->fail(failures);
    w.net = std::make_unique<Net>(w, 0, 1500, Net::Rails{1, false, {0, 1}});
    a = std::make_unique<Bystander>(w, job, *w.hosts[0], "a", 0);
    b = std::make_unique<Bystander>(w, job, *w.hosts[1], "b", 1);
    there = std::make_unique<Direction>(w, hop, *a, *b, options);
    back = std::make_unique<Direction>(w, hop, *b, *a, options);
    there->tcp.pair_with(back->tcp);
    back->tcp.pair_with(there->tcp);
  }
  static Failure down(Ps from, Ps until) { return {.what = Failure::Pair, .a = 0, .b = 1, .from = from, .until = until, .name = "link"}; }
  struct Write {
    TcpConnection& tcp;
    int64_t bytes;
    void now() { tcp.write(bytes); }
    void read() { tcp.read(bytes); }
  };
  void write_at(Ps t, Direction& d, int64_t bytes) { w.loop.schedule(t, callback<&Write::now>(writes.emplace_back(Write{d.tcp, bytes}))); }
  void read_at(Ps t, Direction& d, int64_t bytes) { w.loop.schedule(t, callback<&Write::read>(writes.emplace_back(Write{d.tcp, bytes}))); }
  void run() {
    w.wire->run(w.loop, [] { return false; });
  }
  static constexpr Ps us(int64_t n) { return n * kMicrosecond; }
  MediumSpec hop;
  World w;
  Common job;
  std::deque<Write> writes;
  std::unique_ptr<Bystander> a, b;
  std::unique_ptr<Direction> there, back;
};

// The delayed-ACK timer starts when the segment has been received.
TEST_F(Tcp, ASingleSegmentIsAcknowledgedByTheTimer) {
  make();
  write_at(0, *there, kMss);
  run();
  EXPECT_EQ(there->received, (Log{{us(2120), kMss}}));
  EXPECT_EQ(there->acknowledged, (Log{{us(2120 + 200'000 + 160), kMss}}));
  EXPECT_EQ(there->tcp.snd_nxt(), kMss);
  EXPECT_EQ(job.count.frames, 2);
}

// The second segment follows the first across the cards, 1 ms later.
TEST_F(Tcp, EverySecondSegmentIsAcknowledgedAtOnce) {
  make();
  there->reads = false;  // otherwise the opening of the window would be advertised as well
  write_at(0, *there, 2 * kMss);
  run();
  EXPECT_EQ(there->received, (Log{{us(2120), kMss}, {us(3120), 2 * kMss}}));
  EXPECT_EQ(there->acknowledged, (Log{{us(3280), 2 * kMss}}));
  EXPECT_EQ(job.count.frames, 3);
}

// 100 bytes arrive after 10 + 120 + 100 + 120 + 10 = 360 us, their answer is sent at 5 ms.
TEST_F(Tcp, DataOfTheOtherDirectionCarryAnAcknowledgement) {
  make();
  write_at(0, *there, kMss);
  write_at(us(5000), *back, 100);
  run();
  EXPECT_EQ(back->received, (Log{{us(5360), 100}}));
  EXPECT_EQ(there->acknowledged, (Log{{us(5360), kMss}}));
  EXPECT_EQ(back->acknowledged, (Log{{us(5360 + 200'000 + 160), 100}}));
  EXPECT_EQ(job.count.frames, 3);
}

// RFC 896 meets RFC 1122 4.2.3.2: the second write waits for the acknowledgement of the first, which waits for the timer.
TEST_F(Tcp, NagleHoldsASmallSegmentBack) {
  make({.nagle = true});
  write_at(0, *there, 100);
  write_at(0, *there, 100);
  run();
  const Ps acknowledged = us(360 + 200'000 + 160);
  EXPECT_EQ(there->received, (Log{{us(360), 100}, {acknowledged + us(360), 200}}));
}

// Without Nagle it follows the first across the card, 120 us later, and both are acknowledged at once.
TEST_F(Tcp, WithoutNagleItFollowsAtOnce) {
  make();
  write_at(0, *there, 100);
  write_at(0, *there, 100);
  run();
  EXPECT_EQ(there->received, (Log{{us(360), 100}, {us(480), 200}}));
  EXPECT_EQ(there->acknowledged, (Log{{us(480 + 160), 200}}));
}

TEST_F(Tcp, NagleLetsFullSegmentsPass) {
  make({.nagle = true});
  write_at(0, *there, 2 * kMss);
  run();
  EXPECT_EQ(there->received.back(), (std::pair<Ps, int64_t>{us(3120), 2 * kMss}));
}

// Two segments fit into the window. They are not read before 10 ms; then the window opens by at least half a buffer, which is advertised at once.
TEST_F(Tcp, TheWindowStopsTheSenderUntilTheReceiverReads) {
  make({.rcvbuf = 2 * kMss});
  there->reads = false;
  write_at(0, *there, 4 * kMss);
  read_at(us(10'000), *there, 2 * kMss);
  run();
  ASSERT_EQ(there->received.size(), 4U);
  EXPECT_EQ(there->received[1], (std::pair<Ps, int64_t>{us(3120), 2 * kMss}));
  EXPECT_EQ(there->received[2], (std::pair<Ps, int64_t>{us(10'000 + 160 + 2120), 3 * kMss}));
  EXPECT_EQ(there->received[3], (std::pair<Ps, int64_t>{us(10'000 + 160 + 3120), 4 * kMss}));
}

// RFC 1122 4.2.3.3: reading a little of a full buffer is not advertised: less than half of the buffer and less than two segments are free.
TEST_F(Tcp, ASmallOpeningOfTheWindowIsNotTold) {
  make({.rcvbuf = 2 * kMss});
  there->reads = false;
  write_at(0, *there, 4 * kMss);
  read_at(us(10'000), *there, kMss - 1);
  run();
  EXPECT_EQ(there->received.size(), 2U);
  EXPECT_EQ(there->tcp.snd_nxt(), 2 * kMss);
}

TEST_F(Tcp, RoomIsWhatTheSendBufferHasLeft) {
  make({.sndbuf = 3 * kMss});
  write_at(0, *there, kMss);
  w.loop.step();
  EXPECT_EQ(there->tcp.space(), 2 * kMss);
  run();
  EXPECT_EQ(there->tcp.space(), 3 * kMss);
}

// The segment is lost when it is put on the wire, at 1010 us; the timer started when it was sent, and the retransmission takes as long as the first
// try.
TEST_F(Tcp, ALostSegmentIsSentAgainWhenTheTimerEnds) {
  make({}, {down(us(500), us(1500))});
  write_at(0, *there, kMss);
  run();
  EXPECT_EQ(there->received, (Log{{3 * kSecond + us(2120), kMss}}));
  EXPECT_EQ(job.count.retransmissions, 1);
  EXPECT_EQ(job.count.lost, 1);
  EXPECT_FALSE(there->tcp.round_trip().timing());  // Karn: it gives no sample
  EXPECT_EQ(there->tcp.round_trip().srtt(), -1);
}

// Timeouts of 3 and 6 s, then after 12 more the two retransmissions that the host allows are used up.
TEST_F(Tcp, TheTimeoutDoublesUntilTheConnectionIsGivenUp) {
  make({}, {down(us(500), kNever)});
  write_at(0, *there, kMss);
  EXPECT_THROW(run(), Abort);
  EXPECT_EQ(w.loop.now, 21 * kSecond);
  EXPECT_EQ(job.count.retransmissions, 2);
}

// Six segments; the first is lost. Segments 2, 3 and 4 arrive at 3120, 4120 and 5120 us, each acknowledged at once; the third duplicate is
// there at 5280. The retransmission queues behind the sixth on the sender's card, until 6010: it is there at 6010 + 1000 + 100 + 1000 + 10.
TEST_F(Tcp, ThreeDuplicateAcknowledgementsAskForAFastRetransmit) {
  make({}, {down(us(500), us(1200))});
  write_at(0, *there, 6 * kMss);
  run();
  EXPECT_EQ(there->received, (Log{{us(8120), 6 * kMss}}));  // the gap is closed, and everything has arrived
  EXPECT_EQ(there->acknowledged.front(), (std::pair<Ps, int64_t>{us(8280), 6 * kMss}));
  EXPECT_EQ(job.count.retransmissions, 1);
  EXPECT_EQ(there->tcp.congestion().ssthresh(), 3 * kMss);  // half of the data in flight
  // Congestion avoidance: one acknowledgement of new data at cwnd = ssthresh adds mss^2 / cwnd, a third of a segment.
  EXPECT_EQ(there->tcp.congestion().cwnd(), 3 * kMss + kMss / 3);
}

TEST(RoundTripTimeTest, FollowsJacobson) {
  RoundTripTime t;
  EXPECT_EQ(t.rto(3 * kSecond, 1, kSecond), 3 * kSecond);
  t.start(100, 0);
  t.acknowledged(99, 5);
  EXPECT_TRUE(t.timing());
  t.acknowledged(100, 8000);
  EXPECT_EQ(t.srtt(), 8000);
  EXPECT_EQ(t.rttvar(), 4000);
  t.start(200, 10'000);
  t.acknowledged(300, 26'000);  // 16000: 8000 too much
  EXPECT_EQ(t.srtt(), 9000);    // + 8000 / 8
  EXPECT_EQ(t.rttvar(), 5000);  // + (8000 - 4000) / 4
  EXPECT_EQ(t.rto(0, 1, kSecond), 29'000);
  EXPECT_EQ(t.rto(0, 50'000, kSecond), 50'000);
  EXPECT_EQ(t.rto(0, 1, 20'000), 20'000);
}

TEST(RoundTripTimeTest, BacksOffExponentially) {
  EXPECT_EQ(RoundTripTime::backed_off(3, 0, 64), 3);
  EXPECT_EQ(RoundTripTime::backed_off(3, 4, 64), 48);
  EXPECT_EQ(RoundTripTime::backed_off(3, 5, 64), 64);
  EXPECT_EQ(RoundTripTime::backed_off(100, 5, 64), 100);  // never less than without
}

TEST(CongestionTest, StartsSlowlyAfterATimeoutThenGrowsByASegmentARoundTrip) {
  Congestion c(1000, 8000);
  EXPECT_EQ(c.cwnd(), Congestion::kUnlimited);
  c.on_ack(1000);
  EXPECT_EQ(c.cwnd(), Congestion::kUnlimited);
  c.on_timeout(8000);
  EXPECT_EQ(c.ssthresh(), 4000);
  EXPECT_EQ(c.cwnd(), 1000);
  for (int i = 0; i < 3; ++i) c.on_ack(1000);
  EXPECT_EQ(c.cwnd(), 4000);  // slow start: a segment an acknowledgement
  c.on_ack(1000);
  EXPECT_EQ(c.cwnd(), 4250);  // congestion avoidance: 1000 * 1000 / 4000
  for (int i = 0; i < 100; ++i) c.on_ack(1000);
  EXPECT_EQ(c.cwnd(), Congestion::kUnlimited);  // the receiver's window is the narrower one again
}

TEST(CongestionTest, SlowStartThresholdIsTwoSegmentsAtLeast) {
  Congestion c(1000, 8000);
  c.on_timeout(1000);
  EXPECT_EQ(c.ssthresh(), 2000);
}

TEST(CongestionTest, CountsDuplicatesUntilSomethingNewIsAcknowledged) {
  Congestion c(1000, 8000);
  EXPECT_FALSE(c.on_duplicate_ack(3));
  EXPECT_FALSE(c.on_duplicate_ack(3));
  EXPECT_TRUE(c.on_duplicate_ack(3));
  EXPECT_FALSE(c.on_duplicate_ack(3));  // the fourth triggers nothing
  c.forget_duplicates();
  EXPECT_EQ(c.dupacks(), 0);
}

TEST(InFlightTest, OnlyWhatIsLostLeavesByItself) {
  InFlight<int> q;
  std::vector<uint32_t> ids;
  for (int i = 0; i < 9; ++i) ids.push_back(q.put(i));
  EXPECT_EQ(q.lost(ids[4]), 4);
  for (const int i : {0, 1, 2, 3, 5, 6, 7, 8}) EXPECT_EQ(q.arrived(ids[static_cast<size_t>(i)]), i);
  EXPECT_EQ(q.size(), 0U);
}

TEST(InFlightTest, AFrameOutOfOrderOrMissingIsAnError) {
  InFlight<int> q;
  const uint32_t a = q.put(1), b = q.put(2);
  EXPECT_THROW(q.arrived(b), std::logic_error);
  EXPECT_EQ(q.arrived(a), 1);
  EXPECT_THROW(q.lost(b + 1), std::logic_error);
}

}  // namespace
}  // namespace retrompi::test
