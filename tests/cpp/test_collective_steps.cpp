// The steps of collective algorithms: every message that is sent is received, and the volume agrees with the source.
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "coll/coll.hpp"

namespace retrompi::test {
namespace {

using coll::Step;

struct Volume {
  std::map<std::pair<int32_t, int32_t>, std::vector<int64_t>> sent, received;  // by sender and receiver, in order
  int64_t messages = 0, bytes = 0;
};

Volume run(const coll::Algorithm& algorithm, coll::Args args, const coll::Table& table) {
  Volume v;
  args.table = &table;
  for (args.me = 0; args.me < args.n; ++args.me) {
    for (coll::Steps s = algorithm.make(args); s.next();) {
      const Step& step = s.step();
      if (step.kind == Step::Isend) {
        v.sent[{args.me, step.peer}].push_back(step.bytes);
        ++v.messages;
        v.bytes += step.bytes;
      }
      if (step.kind == Step::Irecv) v.received[{step.peer, args.me}].push_back(step.bytes);
    }
  }
  return v;
}

TEST(CollectiveSteps, EverySendOfABroadcastHasItsReceive) {
  const coll::Table table;
  for (const char* name : {"binomial", "linear", "scatter_ring"}) {
    const coll::Algorithm* algorithm = coll::find(Op::Bcast, name);
    if (algorithm == nullptr) continue;
    for (const int32_t n : {1, 2, 3, 7, 8}) {
      coll::Args args;
      args.n = n;
      args.root = n / 2;
      args.bytes = 1000;
      const Volume v = run(*algorithm, args, table);
      EXPECT_EQ(v.sent, v.received) << name << " " << n;
    }
  }
}

TEST(CollectiveSteps, ABinomialBroadcastSendsTheVectorOnceToEachOther) {
  const coll::Table table;
  coll::Args args;
  args.n = 13;
  args.bytes = 100;
  const Volume v = run(*coll::find(Op::Bcast, "binomial"), args, table);
  EXPECT_EQ(v.messages, 12);
  EXPECT_EQ(v.bytes, 1200);
}

TEST(CollectiveSteps, TheChosenAlgorithmOfEachOperationIsComplete) {
  const coll::Table table;  // MPICH 1's
  for (const Op op : {Op::Barrier, Op::Bcast, Op::Reduce, Op::Allreduce, Op::Scan, Op::Alltoall, Op::Gather, Op::Allgather, Op::Scatter})
    for (const int32_t n : {2, 5, 8}) {
      coll::Args args;
      args.n = n;
      args.bytes = args.bytes_in = 64;
      const Volume v = run(table.choose(op, args), args, table);
      EXPECT_EQ(v.sent, v.received) << op_name(op) << " " << n;
      EXPECT_GT(v.messages, 0) << op_name(op);
    }
}

TEST(CollectiveSteps, ATableTakesTheFirstRowThatFits) {
  coll::Table table;
  const coll::Algorithm* linear = coll::find(Op::Bcast, "linear");
  ASSERT_NE(linear, nullptr);
  table.prefer(Op::Bcast, {{.algorithm = linear, .from = 0, .to = 512}});
  coll::Args args;
  args.n = 4;
  args.bytes = 511;
  EXPECT_EQ(&table.choose(Op::Bcast, args), linear);
  args.bytes = 512;
  EXPECT_NE(&table.choose(Op::Bcast, args), linear);
}

}  // namespace
}  // namespace retrompi::test
