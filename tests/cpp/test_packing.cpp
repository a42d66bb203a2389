// The packed storage of actions: a lossless round trip, in a few bytes per action.
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "trace/action_list.hpp"
#include "trace/flat_action.hpp"
#include "trace/trace.hpp"

namespace retrompi::test {
namespace {

/// An action of every operation, each argument with a distinct value.
std::vector<Action> one_of_each() {
  std::vector<Action> all;
  for (int i = 0; i < OP_COUNT; ++i) {
    FlatAction f;
    f.op = static_cast<Op>(i);
    f.flags = FLAG_TOLD;
    f.line = 10U + static_cast<uint32_t>(i);
    f.peer = i, f.tag = 1000 + i, f.peer2 = -i, f.vec = i % 3 - 1;
    f.bytes = int64_t{1} << (i % 48), f.bytes2 = 7 * i;
    f.amount = 1.5 * i, f.comm = i % 5, f.request = 3 * i;
    all.push_back(unflatten(f));
  }
  return all;
}

TEST(Packing, FlatAndBackIsTheSameAction) {
  for (const Action& a : one_of_each()) EXPECT_EQ(flatten(unflatten(flatten(a))), flatten(a)) << static_cast<int>(a.op);
}

TEST(Packing, EveryOperationSurvivesBlocks) {
  ActionList list(5);
  const std::vector<Action> all = one_of_each();
  for (int round = 0; round < 20; ++round)  // several blocks, and some that are not packed yet
    for (const Action& a : all) list.push_back(a);
  size_t i = 0;
  for (const Action& a : list) EXPECT_EQ(flatten(a), flatten(all[i++ % all.size()]));
  EXPECT_EQ(i, 20 * all.size());
  EXPECT_EQ(flatten(list[3 * all.size() + 5]), flatten(all[5]));
}

TEST(Packing, ALoopTakesAByteOrTwoAnAction) {
  ActionList list;
  constexpr size_t kActions = 100 * ActionList::kBlock;
  for (size_t k = 0; k < kActions; ++k) {
    Action a(k % 2 == 0 ? Op::Send : Op::Recv, static_cast<uint32_t>(k + 1));
    a.get<action::PointToPoint>() = {static_cast<int32_t>(k % 4), 7, 8192, {}};
    list.push_back(a);
  }
  list.seal();
  EXPECT_LT(list.memory_use(), 2 * kActions);
}

TEST(Packing, AmountsKeepTheirBits) {
  const std::vector<double> amounts = {0.0, -0.0, 0.1, 0.1, 9007199254740994.0, std::numeric_limits<double>::infinity(), 7, 8, 9};
  ActionList list;
  for (const double v : amounts) {
    Action a(Op::Compute);
    a.get<action::Compute>().flops = v;
    list.push_back(a);
  }
  list.seal();
  for (size_t i = 0; i < amounts.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint64_t>(list[i].get<action::Compute>().flops), std::bit_cast<uint64_t>(amounts[i]));
}

TEST(Packing, AnImageThatIsCutIsAnError) {
  ActionList list;
  for (const Action& a : one_of_each()) list.push_back(a);
  std::string image;
  ListWriter writer(nullptr);
  writer.add(list);
  writer.finish(image);
  std::string_view whole = image;
  EXPECT_EQ(ListReader(whole, nullptr).next().size(), list.size());
  std::string_view half = std::string_view(image).substr(0, image.size() / 2);
  EXPECT_THROW(ListReader(half, nullptr).next(), TraceError);
}

TEST(Packing, RanksThatDoTheSameTowardsTheirNeighboursShareBlocks) {
  constexpr int kRanks = 100;
  std::vector<ActionList> ranks;
  std::unordered_set<const void*> counted;
  size_t memory = 0;
  for (int r = 0; r < kRanks; ++r) {
    ActionList& list = ranks.emplace_back(r);
    for (int k = 0; k < 600; ++k) {
      Action send(Op::Send, static_cast<uint32_t>(2 * k + 1)), wait(Op::Wait, static_cast<uint32_t>(2 * k + 2));
      send.get<action::PointToPoint>() = {r + 3, 7, 8192, {}};
      wait.get<action::OneRequest>() = {r, r + 3, 7, {}};
      list.push_back(send);
      list.push_back(wait);
    }
    list.seal();
    memory += list.memory_use(counted);
  }
  EXPECT_EQ(counted.size(), 3U);
  EXPECT_LT(memory, kRanks * 400U);
  std::string image;
  ListWriter writer(nullptr);
  for (const ActionList& list : ranks) writer.add(list);
  writer.finish(image);
  std::string_view whole = image;
  ListReader reader(whole, nullptr);
  for (int r = 0; r < kRanks; ++r) {
    const ActionList again = reader.next(), moved = ranks[0].of_rank(r);
    for (const ActionList* list : {&again, &moved}) {
      ASSERT_EQ(list->size(), 1200U);
      size_t k = 0;
      for (const Action& a : *list) {
        if (k++ % 2 == 0) {
          ASSERT_EQ(a.get<action::PointToPoint>().peer, r + 3);
        } else {
          ASSERT_EQ(a.get<action::OneRequest>().source, r);
          ASSERT_EQ(a.get<action::OneRequest>().destination, r + 3);
        }
      }
      ASSERT_EQ((*list)[700].get<action::PointToPoint>().peer, r + 3);
    }
  }
}

}  // namespace
}  // namespace retrompi::test
