#include <array>
#include <fstream>

#include "fixture.hpp"

namespace retrompi::test {
namespace {

/// Events that log their own name.
class EventLoop : public testing::Test {
 public:
  void say(char c) { said += c; }
  void say_and_schedule(char c) {
    said += c;
    at(loop.now, 'x');      // after everything scheduled earlier for this time
    at(loop.now - 5, 'y');  // the past is now
    at(loop.now + 1, 'z');
  }
  void at(Ps t, char c, bool passive = false) { loop.schedule(t, callback<&EventLoop::say>(*this, static_cast<uint64_t>(c)), passive); }
  void run() {
    while (!loop.empty()) loop.step();
  }
  Loop loop;
  std::string said;
};

TEST_F(EventLoop, RunsByTimeAndAmongEqualTimesInTheOrderOfScheduling) {
  at(20, 'c');
  at(10, 'a');
  at(20, 'd');
  at(10, 'b');
  run();
  EXPECT_EQ(said, "abcd");
  EXPECT_EQ(loop.now, 20);
  EXPECT_EQ(loop.executed(), 4U);
}

// What is left out would have scheduled something for 11 before `a` schedules `z` for it.
TEST_F(EventLoop, KeepsThePlaceOfWhatAnEventThatIsLeftOutWouldHaveScheduled) {
  Loop::Turn turn;
  loop.leave_out(10, 11, turn);
  EXPECT_FALSE(loop.no_event_until(10));
  loop.schedule(10, callback<&EventLoop::say_and_schedule>(*this, 'a'));
  EXPECT_EQ(turn.next, 0U);
  loop.step();
  ASSERT_NE(turn.next, 0U);
  EXPECT_FALSE(loop.past(11, turn.next));
  loop.schedule_reserved(11, turn.next, callback<&EventLoop::say>(*this, static_cast<uint64_t>('k')));
  run();
  EXPECT_EQ(said, "axykz");
  EXPECT_TRUE(loop.past(11, turn.next));
}

TEST_F(EventLoop, RunsWhatIsScheduledForThePresentBeforeTimeGoesOn) {
  loop.schedule(10, callback<&EventLoop::say_and_schedule>(*this, 'a'));
  at(10, 'b');
  run();
  EXPECT_EQ(said, "abxyz");
  EXPECT_EQ(loop.now, 11);
}

TEST_F(EventLoop, KeepsThePlaceOfAReservedSequenceNumber) {
  const uint64_t place = loop.reserve_sequence();
  at(10, 'b');
  loop.schedule_reserved(10, place, callback<&EventLoop::say>(*this, 'a'));
  run();
  EXPECT_EQ(said, "ab");
}

TEST_F(EventLoop, KnowsUntilWhenNothingHappens) {
  at(10, 'a');
  EXPECT_TRUE(loop.no_event_until(9));
  EXPECT_FALSE(loop.no_event_until(10));
  loop.external_event = 5;  // a frame arrives
  EXPECT_TRUE(loop.no_event_until(4));
  EXPECT_FALSE(loop.no_event_until(5));
  loop.external_event = kNever;
  loop.limit = 7;
  EXPECT_TRUE(loop.no_event_until(7));
  EXPECT_FALSE(loop.no_event_until(8));
  loop.stopped = true;
  EXPECT_FALSE(loop.no_event_until(1));
  EXPECT_TRUE(loop.finished());
}

TEST_F(EventLoop, TellsWhenOnlyPassiveEventsAreLeft) {
  at(10, 'a');
  at(20, 'b', true);
  EXPECT_FALSE(loop.only_passive());
  loop.step();
  EXPECT_TRUE(loop.only_passive());
  EXPECT_FALSE(loop.empty());
}

TEST_F(EventLoop, CountsWhatIsPendingForEachOwner) {
  loop.count_owners(3);
  loop.owner = 1;
  at(10, 'a');
  loop.owner = 2;
  at(20, 'b');
  loop.add_pending(2);  // a frame of it is on the wire
  loop.step();
  EXPECT_EQ(loop.owner, 1U);
  EXPECT_TRUE(loop.idle(1));
  loop.step();
  EXPECT_EQ(loop.owner, 2U);
  EXPECT_FALSE(loop.idle(2));
  loop.remove_pending(2);
  EXPECT_TRUE(loop.idle(2));
}

TEST_F(EventLoop, WritesEachEventToATrace) {
  const std::string path = testing::TempDir() + "events.tsv";
  {
    EventTrace trace(path);
    at(20, 'b');
    at(10, 'a');
    loop.write_to(trace);
    loop.effort.start({.events = 1});  // a bound holds all the same
    loop.effort.look_at_each();
    loop.step();
    EXPECT_THROW(loop.step(), Limit);
  }
  std::ifstream file(path);
  std::string line, rest;
  std::getline(file, line);
  EXPECT_EQ(line.substr(0, 5), "10\t-\t");  // it belongs to no process
  EXPECT_EQ(line.substr(line.rfind("::", line.rfind("::") - 1) + 2), "EventLoop::say");
  EXPECT_FALSE(std::getline(file, rest));
  EXPECT_THROW(EventTrace("/nowhere/events.tsv"), ConfigError);
}

/// Two links: what happens at one time happens on both before the host goes on, and after what the host had to do then.
class Links : public Outside {
 public:
  explicit Links(Loop& loop) : loop_(loop) { loop_.external_event = 10; }
  void advance() override {
    loop_.now = loop_.external_event;
    said += 'x';
    loop_.schedule(loop_.now, callback<&Links::say>(*this, 'r'));  // the host reacts
    said += 'y';
    loop_.external_event = kNever;
  }
  [[nodiscard]] bool under_way() const override { return loop_.external_event != kNever; }
  void say(char c) { said += c; }
  std::string said;

 private:
  Loop& loop_;
};

TEST(LoopRunTest, HostsComeFirstAndReactWhenAllHasHappenedOnLinks) {
  Loop loop;
  Links links(loop);
  loop.schedule(10, callback<&Links::say>(links, 'h'));
  loop.schedule(12, callback<&Links::say>(links, 'p'), true);
  EXPECT_TRUE(loop.run(links, [] { return false; }));  // only what passes time is left
  EXPECT_EQ(links.said, "hxyr");
  EXPECT_FALSE(loop.run(links, [&loop] { return loop.stopped = true; }));
  EXPECT_EQ(links.said, "hxyrp");
}

/// Thousands of events that schedule others, some with a sequence number reserved long before.
class RandomEvents : public testing::Test {
 public:
  void on_event(uint64_t place) {
    ++ran;
    const auto now = std::make_pair(loop.now, place);
    EXPECT_LT(last, now);
    last = now;
    if (reserved.second > loop.now) {  // its time has not passed: scheduled late
      loop.schedule_reserved(reserved.second, reserved.first, callback<&RandomEvents::on_event>(*this, reserved.first), true);
      reserved = {};
    }
    for (uint64_t n = rng.next() % 3; n > 0 && asked < 20'000; --n) ask();
    while (asked < 12'000 && loop.empty()) ask();
  }
  void ask() {
    ++asked;
    constexpr std::array<Ps, 5> kLater{1, 1, 2, 7, 30};
    const Ps t = loop.now + kLater[rng.next() % kLater.size()];
    const uint64_t place = loop.reserve_sequence();
    if (reserved.second <= loop.now && rng.next() % 4 == 0)
      reserved = {place, t};
    else
      loop.schedule_reserved(t, place, callback<&RandomEvents::on_event>(*this, place));
  }
  Loop loop;
  Rng rng{7};
  int ran = 0, asked = 0;
  std::pair<Ps, uint64_t> last{-1, 0};
  std::pair<uint64_t, Ps> reserved{};
};

TEST_F(RandomEvents, RunInTheOrderOfTimeAndSequence) {
  for (int i = 0; i < 50; ++i) ask();
  while (!loop.empty()) loop.step();
  EXPECT_GT(ran, 8'000);
}

TEST(CallbackTest, CallsMembersWithAndWithoutANumber) {
  struct Object {
    int plain = 0;
    uint32_t number = 0;
    int64_t lost = 0;
    void on_plain() { ++plain; }
    void on_number(uint32_t n) { number = n; }
    void on_lost(int64_t n) { lost = n; }
  } object;
  callback<&Object::on_plain>(object)();
  EXPECT_EQ(object.plain, 1);
  const Delivery d = delivery<&Object::on_number, &Object::on_lost>(object, 7);
  d.on_delivered()();
  d.on_lost()();
  EXPECT_EQ(object.number, 7U);
  EXPECT_EQ(object.lost, 7);
  EXPECT_FALSE(delivery<&Object::on_plain>(object).on_lost());
}

}  // namespace
}  // namespace retrompi::test
