// The queue without memory of its own, beside std::deque over the same random operations.
#include <gtest/gtest.h>

#include <deque>

#include "event/core.hpp"
#include "event/fifo.hpp"

namespace retrompi {
namespace {

TEST(Fifo, BehavesAsADeque) {
  Rng rng(1);
  Fifo<int> mine;
  std::deque<int> theirs;
  for (int i = 0; i < 20'000; ++i) {
    const auto what = rng.next() % 8;
    if (what < 4) {
      mine.push_back(i);
      theirs.push_back(i);
    } else if (what == 4) {
      mine.push_front(i);
      theirs.push_front(i);
    } else if (!theirs.empty() && what < 7) {
      ASSERT_EQ(mine.front(), theirs.front());
      mine.pop_front();
      theirs.pop_front();
    } else if (!theirs.empty()) {
      const auto at = static_cast<std::ptrdiff_t>(rng.next() % theirs.size());
      mine.erase(mine.begin() + at);
      theirs.erase(theirs.begin() + at);
    }
    ASSERT_EQ(mine.size(), theirs.size());
    ASSERT_EQ(mine.empty(), theirs.empty());
    if (i % 64 == 0) {
      ASSERT_TRUE(std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end()));
    }
  }
}

TEST(Fifo, TakesNoMemoryUntilItIsUsedAndCanBeMoved) {
  EXPECT_EQ(sizeof(Fifo<int>), 24U);
  Fifo<int> a;
  EXPECT_TRUE(a.empty());
  a.push_back(1);
  a.push_back(2);
  Fifo<int> b = std::move(a);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(b.front(), 1);
  b.clear();
  EXPECT_TRUE(b.empty());
}

}  // namespace
}  // namespace retrompi
