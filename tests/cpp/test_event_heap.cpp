#include <algorithm>

#include "event/core.hpp"
#include "fixture.hpp"

namespace retrompi::test {
namespace {

struct Entry {
  Ps t;
  uint64_t order;
};

std::vector<std::pair<Ps, uint64_t>> drain(EventHeap<Entry>& heap) {
  std::vector<std::pair<Ps, uint64_t>> out;
  while (!heap.empty()) {
    out.emplace_back(heap.front().t, heap.front().order);
    heap.pop();
    EXPECT_TRUE(heap.is_heap());
  }
  return out;
}

TEST(EventHeap, PopsByTimeAndAmongEqualTimesByOrder) {
  EventHeap<Entry> heap;
  for (const Entry& e : {Entry{5, 2}, {3, 4}, {5, 1}, {3, 3}, {9, 0}}) heap.push(e);
  EXPECT_EQ(drain(heap), (std::vector<std::pair<Ps, uint64_t>>{{3, 3}, {3, 4}, {5, 1}, {5, 2}, {9, 0}}));
}

// Every size from 0 to 70, so that the last node has one, two, three and four children at two depths of the tree.
TEST(EventHeap, SortsEverySizeInEveryShape) {
  for (size_t n = 0; n <= 70; ++n)
    for (const int shape : {0, 1, 2}) {
      EventHeap<Entry> heap;
      std::vector<std::pair<Ps, uint64_t>> all;
      Rng rng(n + 1);
      for (size_t i = 0; i < n; ++i) {
        const Ps t = shape == 0 ? static_cast<Ps>(i) : shape == 1 ? static_cast<Ps>(n - i) : static_cast<Ps>(rng.next() % 8);
        heap.push({t, i});
        all.emplace_back(t, i);
      }
      EXPECT_EQ(heap.size(), n);
      EXPECT_TRUE(heap.is_heap());
      std::sort(all.begin(), all.end());
      EXPECT_EQ(drain(heap), all);
    }
}

TEST(EventHeap, StaysInOrderWhenPushesAndPopsAlternate) {
  EventHeap<Entry> heap;
  Rng rng(3);
  Ps now = 0;
  uint64_t order = 0, popped = 0;
  for (int i = 0; i < 5'000; ++i) {
    for (uint64_t k = rng.next() % 3; k > 0; --k) heap.push({now + static_cast<Ps>(rng.next() % 20), order++});
    if (heap.empty()) continue;
    EXPECT_GE(heap.front().t, now);
    now = heap.front().t;
    heap.pop();
    ++popped;
  }
  EXPECT_TRUE(heap.is_heap());
  EXPECT_EQ(heap.size(), order - popped);
}

// Timers that are due long after all else, bursts at one time, and gaps longer than any width of what counts as near.
TEST(EventQueue, PopsInTheOrderOfOneHeap) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    EventQueue<Entry> queue;
    EventHeap<Entry> heap;
    Rng rng(seed);
    Ps now = 0;
    uint64_t order = 0;
    auto push = [&](Ps t) {
      queue.push({t, order});
      heap.push({t, order++});
    };
    for (int i = 0; i < 20'000; ++i) {
      for (uint64_t k = rng.next() % 3; k > 0; --k) {
        const uint64_t kind = rng.next() % 8;
        push(now + static_cast<Ps>(kind == 0 ? rng.next() % 1'000'000'000'000 : kind == 1 ? 0 : rng.next() % 100'000));
      }
      if (i == 0) push(kNever);
      EXPECT_FALSE(queue.empty());
      if (heap.size() < 2) continue;  // the one that never comes
      ASSERT_EQ(queue.front().t, heap.front().t);
      ASSERT_EQ(queue.front().order, heap.front().order);
      now = heap.front().t;
      queue.pop();
      heap.pop();
    }
    size_t left = 0;
    queue.each([&left](const Entry&) { ++left; });
    EXPECT_EQ(left, heap.size());
    for (; !heap.empty(); heap.pop(), queue.pop()) ASSERT_EQ(queue.front().order, heap.front().order);
    EXPECT_TRUE(queue.empty());
  }
}

}  // namespace
}  // namespace retrompi::test
