// The trace parser: the actions of lines, and the places of errors.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace retrompi::test {
namespace {

Trace read(const std::vector<std::string>& ranks, const ReadOptions& options = {}) {
  std::vector<Source> sources;
  for (size_t r = 0; r < ranks.size(); ++r) sources.push_back({ranks[r], "rank-" + std::to_string(r), static_cast<int32_t>(r)});
  return parse(sources, options);
}

/// "file:line" of the error that reading ends with; empty: none.
std::string place_of_error(const std::vector<std::string>& ranks) {
  try {
    read(ranks);
  } catch (const TraceError& e) {
    return e.file + ":" + std::to_string(e.line);
  }
  return "";
}

TEST(TraceParser, ASendHasADestinationATagAndASizeInBytes) {
  const Trace t = read({"0 init\n0 send 1 7 100 0\n0 finalize\n", "1 init\n1 recv -555 -444 800\n1 finalize\n"});
  const Action send = t.ranks[0][1];
  ASSERT_EQ(send.op, Op::Send);
  EXPECT_EQ(send.line, 2U);
  EXPECT_EQ(send.get<action::PointToPoint>(), (action::PointToPoint{1, 7, 800, {}}));  // 100 doubles
  const Action receive = t.ranks[1][1];
  EXPECT_EQ(receive.get<action::PointToPoint>(), (action::PointToPoint{ANY_SOURCE, ANY_TAG, 800, {}}));
}

TEST(TraceParser, ARecordedMatchIsPutOnTheReceiveThatWasPostedEarlier) {
  const Trace t = read({"0 send 1 7 8\n", "1 irecv -555 -444 8 req=3\n1 compute 1000\n1 wait req=3 from=0 mtag=7\n"});
  const Action receive = t.ranks[1][0];
  ASSERT_TRUE(receive.matched());
  EXPECT_EQ(receive.request, 3);
  EXPECT_EQ(receive.get<action::PointToPoint>().matched, (action::Envelope{0, 7}));
}

TEST(TraceParser, ASendReceiveHasTagsOfItsOwnBothWays) {
  const Trace t = read({"0 sendRecv 10 1 20 1 6 6 stag=4 rtag=5\n", "1 sendRecv 20 0 10 0 6 6 stag=5 rtag=4\n"});
  EXPECT_EQ(t.ranks[0][0].get<action::SendReceive>(), (action::SendReceive{1, 4, 1, 5, 10, 20, {}}));
}

TEST(TraceParser, CountsOfAVectorCollectiveStandInTheTrace) {
  const Trace t = read({"0 gatherv 1 1 2 0 6 6\n", "1 gatherv 2 1 2 0 6 6\n"});
  const auto gather = t.ranks[1][0].get<action::Collective>();  // a copy: the list hands out actions by value
  EXPECT_EQ(gather.root, 0);
  EXPECT_EQ(gather.bytes, 2);
  EXPECT_EQ(gather.receive_bytes, 3);
  EXPECT_EQ(t.vec[static_cast<size_t>(gather.counts)], (std::vector<int64_t>{1, 2}));
}

TEST(TraceParser, AnErrorNamesItsFileAndLine) {
  EXPECT_EQ(place_of_error({"0 init\n0 sent 1 7 8\n0 finalize\n", "1 init\n1 finalize\n"}), "rank-0:2");  // no such action
  EXPECT_EQ(place_of_error({"0 send 2 7 8\n", "1 barrier\n"}), "rank-0:1");                               // no such rank
  EXPECT_EQ(place_of_error({"0 send 1 -7 8\n", "1 barrier\n"}), "rank-0:1");                              // a negative tag
  EXPECT_EQ(place_of_error({"0 compute -1\n"}), "rank-0:1");
  EXPECT_EQ(place_of_error({"0 send 0 7 8x\n"}), "rank-0:1");
  EXPECT_EQ(place_of_error({"0 wait req=3\n"}), "rank-0:1");                               // no call has returned it
  EXPECT_EQ(place_of_error({"0 init\n0 barrier\n", "1 init\n1 finalize\n"}), "rank-0:2");  // truncated
  EXPECT_EQ(place_of_error({""}), "rank-0:0");
}

TEST(TraceParser, CollectivesThatDifferAreRefused) {
  const Trace t = read({"0 barrier\n", "1 bcast 8 0\n"});
  ASSERT_EQ(t.refused_total, 1U);
  EXPECT_EQ(t.refused[0].rank, 1);
}

TEST(TraceParser, WhatIsWrittenReadsAsTheSameTrace) {
  const Trace t = read({"0 init\n0 isend 1 7 8 req=1\n0 waitall reqs=1\n0 win_create 1 64\n0 Win_lock 1 1 win=1\n0 Put 1 0 8 win=1\n"
                        "0 Win_unlock 1 win=1\n0 ibarrier req=2\n0 wait req=2\n0 finalize\n",
                        "1 init\n1 recv 0 7 8\n1 win_create 1 64\n1 ibarrier req=2\n1 testany reqs=2 done=2\n1 finalize\n"},
                       {.partial = true});
  std::vector<std::string> again;
  for (size_t r = 0; r < 2; ++r) again.push_back(t.to_ti(r));
  EXPECT_TRUE(read(again) == t);
  EXPECT_TRUE(Trace::load(t.dump()) == t);
}

}  // namespace
}  // namespace retrompi::test
