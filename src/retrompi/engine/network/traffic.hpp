// Cross traffic: frames of other programs on the same wire, and on the job's hosts also through card and processor.
#pragma once
#include "network/world.hpp"

namespace retrompi {

struct TrafficSpec {
  enum Law : uint8_t { Constant, Poisson, OnOff } law = Constant;
  int from = -1, to = -1;  // endpoints of the wire, the job's hosts first; -1: drawn for each frame
  double rate = 0;         // bytes per second on the wire, headers included
  int64_t frame = 0;       // bytes on the wire
  Ps on = 0, off = 0;      // OnOff: mean lengths of the periods with and without frames
};

class Traffic {
 public:
  /// `places`: of the endpoints on the platform; they determine the rail of a pair.
  Traffic(World& w, const std::vector<TrafficSpec>& specs, const std::vector<size_t>& places, size_t rails, int64_t overhead, uint64_t seed);
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  struct Source {
    Traffic& traffic;
    TrafficSpec spec;
    Rng rng;
    Ps gap = 0;      // between two frames at the mean rate
    Ps on_left = 0;  // OnOff: of the present period
    size_t waiting = 0;
    int64_t frames = 0, arrived = 0, bytes = 0, dropped = 0, lost = 0;
    void on_time();
  };
  [[nodiscard]] const std::deque<Source>& sources() const { return sources_; }

 private:
  struct Frame {
    Traffic* traffic;
    Source* source;
    size_t from, to, rail;
    void on_stack_out();
    void on_sent();
    void on_carried();
    void on_in();
    void on_stack_in();
    void on_lost();
  };
  /// A card's queue: frames that arrive when it is full are dropped.
  static constexpr size_t kQueue = 256;
  void next(Source& s, Ps gap);
  void emit(Source& s);
  void free(Frame& f) { free_.push_back(&f); }
  [[nodiscard]] int card(size_t endpoint, size_t rail) const { return static_cast<int>(endpoint * rails_ + rail); }
  [[nodiscard]] Ps stack(const HostSpec& h, const Frame& f) const;
  static Ps drawn(Rng& rng, Ps mean);

  World& w_;
  std::vector<size_t> places_;
  size_t rails_;
  int64_t overhead_;
  std::deque<Source> sources_;
  std::deque<Frame> all_;
  std::vector<Frame*> free_;
};

}  // namespace retrompi
