// The wire on which frames queue plans a frame's whole way when it is sent, and revokes plans. Its oracle is the plain queue: every link serves
// frames in the order in which their first bytes come, one event for each frame and link.
#include <queue>
#include <random>

#include "fixture.hpp"
#include "network/routes.hpp"

namespace retrompi::test {
namespace {

struct Frame {
  Wire* wire = nullptr;
  Loop* loop = nullptr;
  Ps decided, sent;  // when its sender says so, and from when on it is sent
  size_t from, to;
  int64_t bytes;
  uint64_t order = 0;  // among all, as they are decided
  Ps arrived = -1;
  void on_decided() { wire->send_at(sent, static_cast<int>(from), static_cast<int>(to), bytes, delivery<&Frame::on_arrived>(*this)); }
  void on_arrived() { arrived = loop->now; }
};

class PlainQueues {
 public:
  PlainQueues(const std::vector<size_t>& places, const LinkSpec& link) : routes_(places, link), link_(link), free_(routes_.links() + places.size()) {}
  std::vector<Ps> arrivals(const std::vector<Frame>& frames) {
    std::vector<Ps> arrived(frames.size());
    std::vector<std::vector<size_t>> ways;
    for (const Frame& f : frames) {
      ways.emplace_back();
      if (link_.kind == "torus") ways.back().push_back(routes_.links() + f.from);  // its card, behind which others cross the link too
      for (const uint32_t l : routes_.way(f.from, f.to)) ways.back().push_back(l);
    }
    for (size_t i = 0; i < frames.size(); ++i) coming_.push({frames[i].sent, frames[i].order, i, 0, frames[i].sent});
    for (; !coming_.empty();) {
      const Head h = coming_.top();
      coming_.pop();
      const size_t port = ways[h.frame][h.hop];
      const Ps start = std::max(h.t, free_[port]);
      const Ps end = std::max(start + to_ps(static_cast<double>(frames[h.frame].bytes) / link_.bandwidth), h.tail);
      const Ps latency = port < routes_.links() ? to_ps(link_.latency) : Ps(0);
      free_[port] = end;
      if (h.hop + 1 == ways[h.frame].size())
        arrived[h.frame] = end + latency;
      else
        coming_.push({start + latency, h.order, h.frame, h.hop + 1, end + latency});
    }
    return arrived;
  }

 private:
  struct Head {  // the first byte of a frame comes to a link
    Ps t;
    uint64_t order;
    size_t frame, hop;
    Ps tail;
    bool operator<(const Head& o) const { return t != o.t ? t > o.t : order > o.order; }
  };
  Routes routes_;
  LinkSpec link_;
  std::vector<Ps> free_;
  std::priority_queue<Head> coming_;
};

class QueueOracle : public testing::TestWithParam<const char*> {
 public:
  static LinkSpec link(const std::string& kind) {
    return {.kind = kind,
            .shape = kind == "torus" ? std::vector<unsigned long>{3, 3} : std::vector<unsigned long>{},
            .bandwidth = 1e6,
            .latency = 100e-6,
            .file = {}};
  }
  /// Many frames in little time, short and long, decided in another order than they are sent in; `close`: at few instants, so that many tie.
  static std::vector<Frame> frames(std::mt19937_64& random, size_t hosts, bool close) {
    auto below = [&random](uint64_t n) { return static_cast<int64_t>(random() % n); };
    std::vector<Frame> all;
    for (int i = 0; i < 60; ++i) {
      const auto from = static_cast<size_t>(below(hosts));
      const size_t to = (from + 1 + static_cast<size_t>(below(hosts - 1))) % hosts;
      const Ps decided = close ? below(5) * 100 * kMicrosecond : below(20'000) * kMicrosecond;
      const Ps later = below(2) == 0 ? Ps(0) : close ? below(4) * 100 * kMicrosecond : below(5'000) * kMicrosecond;
      all.push_back({.decided = decided, .sent = decided + later, .from = from, .to = to, .bytes = below(3) == 0 ? 1500 : 1 + below(200)});
    }
    std::stable_sort(all.begin(), all.end(), [](const Frame& a, const Frame& b) { return a.decided < b.decided; });
    for (size_t i = 0; i < all.size(); ++i) all[i].order = i;
    return all;
  }
};

TEST_P(QueueOracle, FramesArriveAsFromPlainQueues) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<size_t> places(GetParam() == std::string("cable") ? 2 : 9);
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  uint64_t waited = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<Frame> all = frames(random, places.size(), round % 2 == 0);
    const std::vector<Ps> plain = PlainQueues(places, link(GetParam())).arrivals(all);
    Loop loop;
    Anatomy anatomy;
    const auto wire = native_wire(loop, anatomy, places, link(GetParam()), 1);
    for (Frame& f : all) {
      f.wire = wire.get();
      f.loop = &loop;
      loop.schedule(f.decided, callback<&Frame::on_decided>(f));
    }
    wire->run(loop, [] { return false; });
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i].arrived, plain[i]) << "frame " << i << " of round " << round;
    waited += wire->contended();
  }
  EXPECT_GT(waited, 1000U);
}
INSTANTIATE_TEST_SUITE_P(Links, QueueOracle, testing::Values("cable", "switch", "torus"));

}  // namespace
}  // namespace retrompi::test
