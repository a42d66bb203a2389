// Slack and derivatives of a recorded critical path, on networks small enough to be reckoned by hand.
#include <gtest/gtest.h>

#include "record/anatomy.hpp"
#include "record/path_graph.hpp"

using namespace retrompi;

namespace {

constexpr double kPicosecond = 1e-12;

PathGraph graph(const CriticalPath& path, CriticalPath::Point end) {
  return PathGraph::of(
      path, end, [](CriticalPath::Who who) { return "who " + std::to_string(who); },
      [](const CriticalPath::Term& term) {
        return PathGraph::Number{"owner", 0, term.field, term.at};
      });
}

/// Two chains to a join: 100 ps with the number `a`, 70 ps with the number `b`; then 30 ps.
struct Fork {
  CriticalPath path;
  CriticalPath::Point late = 0, early = 0, end = 0;
  Fork() {
    path.on = true;
    late = path.extend(0, 100, Stage::Compute, 0, path.bill({{this, "a", 1}}));
    early = path.extend(0, 70, Stage::Library, 1, path.bill({{this, "b", 2}}));
    end = path.extend(path.join(late, early), 130, Stage::Stack, 2);
  }
  [[nodiscard]] std::vector<double> change(const PathGraph& g, const std::string& field, double ps) const {
    std::vector<double> out(g.numbers.size(), 0.0);
    for (size_t i = 0; i < out.size(); ++i)
      if (std::get<2>(g.numbers[i]) == field) out[i] = ps * kPicosecond;
    return out;
  }
};

TEST(PathGraph, SlackIsHowMuchLaterWhatIsBesideCouldBe) {
  const Fork f;
  const PathGraph g = graph(f.path, f.end);
  const std::vector<int64_t> slack = g.slack_by_point();
  EXPECT_EQ(slack[f.late], 0);
  EXPECT_EQ(slack[f.early], 30);
  EXPECT_EQ(slack[f.end], 0);
  const auto rows = g.slacks();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].beside, 70);  // by stage: library, then stack, then compute
  EXPECT_EQ(rows[0].least, 30);
  EXPECT_EQ(rows[1].on_path, 30);
  EXPECT_EQ(rows[2].on_path, 100);
}

TEST(PathGraph, WhatNothingWaitsForHasNoSlack) {
  Fork f;
  const CriticalPath::Point lost = f.path.extend(f.early, 500, Stage::Copy, 3);
  EXPECT_EQ(graph(f.path, f.end).slack_by_point()[lost], -1);
}

TEST(PathGraph, TheTimeFollowsThePathUntilAnotherIsLonger) {
  const Fork f;
  const PathGraph g = graph(f.path, f.end);
  EXPECT_DOUBLE_EQ(g.slope(f.change(g, "a", 8)), 8);
  EXPECT_DOUBLE_EQ(g.slope(f.change(g, "b", 8)), 0);
  EXPECT_DOUBLE_EQ(g.changed(f.change(g, "a", -40)).ps, -30);  // from there on the other is the longer
  EXPECT_DOUBLE_EQ(g.changed(f.change(g, "b", 20)).ps, 10);    // two units of it
  EXPECT_NEAR(g.reach(f.change(g, "a", -60), 0, 1e-9), 0.5, 1e-6);
  EXPECT_NEAR(g.reach(f.change(g, "b", 60), 0, 1e-9), 0.25, 1e-6);
  EXPECT_DOUBLE_EQ(g.reach(f.change(g, "a", 60), 0, 1e-9), 1);
}

TEST(PathGraph, AnotherOrderEndsTheRange) {
  Fork f;
  CriticalPath::Point last = 0;
  f.path.order(last, f.early);
  f.path.order(last, f.late);
  const PathGraph g = graph(f.path, f.end);
  EXPECT_TRUE(g.changed(f.change(g, "b", 14)).in_order);
  EXPECT_FALSE(g.changed(f.change(g, "b", 16)).in_order);
  EXPECT_NEAR(g.reach(f.change(g, "a", -60), 0, 1e-9), 0.5, 0.01);
}

TEST(PathGraph, AFixedInstantAbsorbsWhatCameBefore) {
  CriticalPath path;
  path.on = true;
  const CriticalPath::Point came = path.extend(0, 10, Stage::Compute, 0, path.bill({{&path, "a", 1}}));
  const CriticalPath::Point end = path.extend_to_fixed(came, 100, Stage::Tick, 0);
  const PathGraph g = graph(path, end);
  EXPECT_EQ(g.slack_by_point()[came], 90);
  EXPECT_DOUBLE_EQ(g.slope({5 * kPicosecond}), 0);
}

TEST(PathGraph, InterruptedWorkIsShorterByWhatWasDone) {
  CriticalPath path;
  path.on = true;
  // Work of 100 ps (number w) begins at 10 ps, which depends on b; at 50 ps (number i) another interrupts it until 80 ps (number j more).
  const CriticalPath::Point begun = path.extend(0, 10, Stage::Compute, 0, path.bill({{&path, "b", 1}}));
  const CriticalPath::Point done = path.extend(begun, 50, Stage::Compute, 0);
  const CriticalPath::Point stopped = path.extend(0, 50, Stage::Stack, 1, path.bill({{&path, "i", 1}}));
  const CriticalPath::Point again = path.resume(path.extend(stopped, 80, Stage::Stack, 1, path.bill({{&path, "j", 1}})), done, stopped);
  const CriticalPath::Point end = path.charge(path.extend(again, 140, Stage::Compute, 0), path.bill({{&path, "w", 1}}));
  const PathGraph g = graph(path, end);
  auto of = [&](const std::string& field) {
    std::vector<double> change(g.numbers.size(), 0.0);
    for (size_t k = 0; k < change.size(); ++k)
      if (std::get<2>(g.numbers[k]) == field) change[k] = kPicosecond;
    return g.slope(change);
  };
  EXPECT_DOUBLE_EQ(of("b"), 1);  // it begins later
  EXPECT_DOUBLE_EQ(of("i"), 0);  // when it is interrupted does not matter
  EXPECT_DOUBLE_EQ(of("j"), 1);
  EXPECT_DOUBLE_EQ(of("w"), 1);
}

TEST(PathGraph, RefusesColumnsThatAreNone) {
  const Fork f;
  PathGraph g = graph(f.path, f.end);
  g.check();
  PathGraph other = g;
  other.from[1] = 7;
  EXPECT_THROW(other.check(), std::invalid_argument);
  other = g;
  other.joins[1] = other.joins[0];
  EXPECT_THROW(other.check(), std::invalid_argument);
  other = g;
  other.end = static_cast<uint32_t>(g.t.size());
  EXPECT_THROW(other.check(), std::invalid_argument);
}

}  // namespace
