// The queue in which messages and receives are matched: MPI-1.1 3.5, messages of a pair do not overtake.
#include "fixture.hpp"
#include "mpi/matching.hpp"

namespace retrompi::test {
namespace {

struct Envelope {
  int32_t ctx = 0, source = 0, tag = 0;
  int id = 0;
  Queued<Envelope> queued;
  [[nodiscard]] int32_t envelope_source() const { return source; }
};

class Matching : public testing::Test {
 public:
  Envelope& add(int32_t source, int32_t tag, int32_t ctx = 0) {
    all_.push_back({.ctx = ctx, .source = source, .tag = tag, .id = static_cast<int>(all_.size()), .queued = {}});
    queue.push_back(&all_.back());
    return all_.back();
  }
  static bool fits(int32_t wanted, int32_t actual, int32_t any) { return wanted == any || wanted == actual; }
  /// For a message: the first posted receive that accepts it; its own envelope has no wildcard.
  Envelope* receive_for(int32_t source, int32_t tag, int32_t ctx = 0) {
    return queue.find(ctx, source, tag, true,
                      [=](const Envelope& r) { return r.ctx == ctx && fits(r.source, source, ANY_SOURCE) && fits(r.tag, tag, ANY_TAG); });
  }
  /// For a receive: the first unexpected message that it accepts.
  Envelope* message_for(int32_t source, int32_t tag, int32_t ctx = 0) {
    return queue.find(ctx, source, tag, source != ANY_SOURCE && tag != ANY_TAG,
                      [=](const Envelope& m) { return m.ctx == ctx && fits(source, m.source, ANY_SOURCE) && fits(tag, m.tag, ANY_TAG); });
  }
  MatchQueue<Envelope> queue;

 private:
  std::deque<Envelope> all_;
};

TEST_F(Matching, AnUnexpectedMessageIsFoundByItsEnvelope) {
  add(1, 7);
  Envelope& second = add(2, 7);
  EXPECT_EQ(message_for(2, 7), &second);
  EXPECT_EQ(message_for(2, 8), nullptr);
  EXPECT_EQ(message_for(2, 7, 4), nullptr);  // another communicator
  EXPECT_EQ(queue.size(), 2U);
}

TEST_F(Matching, MessagesOfAPairDoNotOvertake) {
  Envelope& first = add(1, 7);
  Envelope& second = add(1, 7);
  EXPECT_EQ(message_for(1, 7), &first);
  queue.erase(&first);
  EXPECT_EQ(message_for(1, 7), &second);
  queue.erase(&second);
  EXPECT_TRUE(queue.empty());
}

TEST_F(Matching, AWildcardReceiveTakesTheEarliestMessage) {
  Envelope& first = add(3, 9);
  add(1, 7);
  EXPECT_EQ(message_for(ANY_SOURCE, ANY_TAG), &first);
  EXPECT_EQ(message_for(ANY_SOURCE, 7)->source, 1);
  EXPECT_EQ(message_for(3, ANY_TAG), &first);
}

TEST_F(Matching, APostedWildcardGoesBeforeALaterExactReceive) {
  Envelope& wild = add(ANY_SOURCE, ANY_TAG);
  Envelope& exact = add(1, 7);
  EXPECT_EQ(receive_for(1, 7), &wild);
  queue.erase(&wild);
  EXPECT_EQ(receive_for(1, 7), &exact);
}

/// The same with enough entries that each envelope has a separate chain.
class LongQueue : public Matching {
 public:
  static constexpr int kMany = 500;
};

TEST_F(LongQueue, EveryMessageIsFoundInTheOrderOfItsPair) {
  for (int i = 0; i < kMany; ++i) add(i % 50, i % 5);
  for (int round = 0; round < kMany / 50; ++round)
    for (int source = 0; source < 50; ++source) {
      Envelope* m = message_for(source, source % 5);
      ASSERT_NE(m, nullptr);
      EXPECT_EQ(m->id, round * 50 + source);
      queue.erase(m);
    }
  EXPECT_TRUE(queue.empty());
}

TEST_F(LongQueue, WildcardsAndExactReceivesKeepTheirOrder) {
  for (int i = 0; i < kMany; ++i) i % 10 == 3 ? add(ANY_SOURCE, i % 5) : add(1, i % 5);
  // A message of source 1 and tag 3 fits the receives 3, 8, 13, ...: wildcards and exact ones in turn.
  for (int i = 3; i < kMany; i += 5) {
    Envelope* r = receive_for(1, 3);
    ASSERT_NE(r, nullptr);
    EXPECT_EQ(r->id, i);
    queue.erase(r);
  }
  EXPECT_EQ(receive_for(1, 3), nullptr);
}

}  // namespace
}  // namespace retrompi::test
