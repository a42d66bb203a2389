// A switch with flow control (IEEE 802.3x, annex 31B): it drops nothing. Frames that have come from a card and wait for an output port are
// counted; when they are more than the buffer, the switch asks the card to pause, and when half of that is left, to go on. A card that pauses
// ends the frame that it is sending and begins no other, wherever that would go (head-of-line blocking). Hosts do not ask the switch.
//
// Output ports are first come, first served, so a frame's way is planned when its first byte comes to the switch. Which frame a card begins, and
// when, is decided as it happens.
#include <deque>

#include "network/native_wire.hpp"

namespace retrompi {

namespace {

constexpr uint32_t kNobody = UINT32_MAX;
constexpr double kPauseBytes = 84;         // a PAUSE frame on the wire: 64 B, preamble 8, gap 12
constexpr uint64_t kSignals = 1ULL << 62;  // numbers of agenda items that are no frame's: behind all frames of that time

/// What the next agenda item of a frame says; a frame whose last byte is on its way has none but its arrival.
enum class NextStep : uint8_t { SetsOut, CanBegin, Comes, LeavesQueue, Nothing };
/// Times at the output port; `alone`, `rounding`: as of `queue_wire.cpp`.
struct Crossing {
  Ps head = 0, tail = 0, alone = 0, rounding = 0;
  NextStep next = NextStep::SetsOut;
  CriticalPath::Point point = 0;  // when its first byte comes to the port; at the receiver, when it arrives
};
/// A card's link to the switch, and the switch's input.
struct SwitchInput {
  std::deque<uint32_t> line{};  // frames that have set out and not begun
  uint32_t current = kNobody;   // that has begun last
  Ps free = 0;                  // when that has passed
  bool due = false;             // an item of the agenda is, for the first in line
  bool paused = false;          // the card has been asked to
  bool asked = false;           // the switch has asked
  bool held = false;            // a frame waits because of that
  double waiting = 0;           // bytes in the switch
  CriticalPath::Point point = 0;
};
/// A frame's place at an output port.
struct OutputPlace {
  uint32_t slot;
  Ps start, end;
};
struct SwitchOutput {
  Ps free = 0;
  std::deque<OutputPlace> line{};  // those that have not passed
  CriticalPath::Point point = 0;
};

struct PauseParts {
  const double buffer_, ps_per_byte_, latency_;
  const Ps hop_, delay_;  // of a link; from asking a card to pause until it does
  std::vector<SwitchInput> inputs_{};
  std::vector<SwitchOutput> outputs_{};
  std::vector<Crossing> crossings_{};
  std::vector<std::vector<uint32_t>> ways_{};
  uint64_t signals_ = 0;
};

class PauseWire final : public RoutedWire, PauseParts {
 public:
  PauseWire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link)
      : RoutedWire(loop, anatomy, positions, link),
        PauseParts{.buffer_ = link.buffer,
                   .ps_per_byte_ = kPsPerSecond / link.bandwidth,
                   .latency_ = link.latency * kPsPerSecond,
                   .hop_ = whole(link.latency * kPsPerSecond),
                   .delay_ = whole(link.latency * kPsPerSecond + kPauseBytes * (kPsPerSecond / link.bandwidth)),
                   .inputs_ = std::vector<SwitchInput>(positions.size()),
                   .outputs_ = std::vector<SwitchOutput>(positions.size())} {}
  [[nodiscard]] bool overtakes() const override { return false; }
  void ends(CriticalPath::Point at) override {
    for (uint32_t slot = 0; slot < flows_.size(); ++slot)
      if (!flows_[slot].gone) anatomy_.critical.follows(at, crossings_[slot].next == NextStep::Nothing ? crossings_[slot].point : flows_[slot].point);
  }

 private:
  void add_route(size_t /*from*/, const std::vector<uint32_t>& links) override { ways_.push_back(links); }
  [[nodiscard]] const std::vector<uint32_t>& links_of(uint32_t route) const override { return ways_[route]; }
  [[nodiscard]] Ps taken(double bytes) const { return std::max<Ps>(1, static_cast<Ps>(bytes * ps_per_byte_ + 0.5)); }
  [[nodiscard]] uint32_t card_of(uint32_t slot) const { return static_cast<uint32_t>(flows_[slot].from); }
  void plan(uint32_t slot, Ps t, NextStep next) {
    crossings_[slot].next = next;
    agenda_.push({t, flows_[slot].order, slot, flows_[slot].gen});
  }

  void enter(uint32_t slot, int /*from*/, int /*to*/) override {
    if (crossings_.size() <= slot) crossings_.resize(flows_.size());
    const Flow& f = flows_[slot];
    Crossing& p = crossings_[slot];
    p = {};
    p.alone = f.asked + 2 * hop_ + taken(f.bytes);
    p.rounding = f.asked + whole(f.bytes * ps_per_byte_ + 2 * latency_) - p.alone;
    plan(slot, f.asked, NextStep::SetsOut);
  }
  void change(const Agenda::Item& i) override {
    if ((i.order & kSignals) != 0) {
      loop_.now = i.t;
      SwitchInput& in = inputs_[i.what / 2];
      in.paused = i.what % 2 != 0;
      return go_on(i.what / 2);
    }
    if (i.gen != flows_[i.what].gen) return;
    loop_.now = i.t;
    switch (crossings_[i.what].next) {
      case NextStep::SetsOut:
        inputs_[card_of(i.what)].line.push_back(i.what);
        crossings_[i.what].next = NextStep::CanBegin;
        return go_on(card_of(i.what));
      case NextStep::CanBegin:
        inputs_[card_of(i.what)].due = false;
        return go_on(card_of(i.what));
      case NextStep::Comes:
        return take(i.what);
      case NextStep::LeavesQueue:
        return leave_queue(i.what);
      case NextStep::Nothing:
        break;
    }
  }
  /// A card begins the first frame of its line, if it can.
  void go_on(uint32_t card) {
    SwitchInput& in = inputs_[card];
    while (!in.line.empty() && !in.due) {
      if (in.paused) {
        in.held = true;
        return;
      }
      const uint32_t slot = in.line.front();
      if (in.free > loop_.now) {
        in.due = true;
        return plan(slot, in.free, NextStep::CanBegin);
      }
      in.line.pop_front();
      begin(slot, in);
    }
  }
  void begin(uint32_t slot, SwitchInput& in) {
    const Flow& f = flows_[slot];
    Crossing& p = crossings_[slot];
    in.current = slot;
    in.free = loop_.now + taken(f.bytes);
    p.head = loop_.now + hop_;
    p.tail = in.free + hop_;
    plan(slot, p.head, NextStep::Comes);
    if (anatomy_.critical.on) {
      CriticalPath& path = anatomy_.critical;
      if (in.held) path.unfollowed("senders that a switch asked to pause");
      const CriticalPath::Point sent = path.join(f.point, in.point);
      const CriticalPath::Point began = path.extend(sent, loop_.now, Stage::Queueing, path.place("wire"));
      in.point = path.extend(began, in.free, Stage::Wire, path.place("wire"), passing(f.bytes));
      p.point = path.extend(began, p.head, Stage::Latency, path.place("wire"), latency());
    }
    in.held = false;
  }
  /// A frame that has come to the switch takes the last place at its output port.
  void take(uint32_t slot) {
    const Flow& f = flows_[slot];
    Crossing& p = crossings_[slot];
    SwitchOutput& out = outputs_[static_cast<size_t>(f.to)];
    while (!out.line.empty() && out.line.front().end <= loop_.now) out.line.pop_front();
    const Ps start = std::max(loop_.now, out.free);
    const bool waited = p.next == NextStep::LeavesQueue;
    out.free = std::max(start + taken(f.bytes), p.tail);
    out.line.push_back({slot, start, out.free});
    if (anatomy_.critical.on) extend(slot, out, start);
    tell(slot, out.free + hop_ + p.rounding);
    if (start > loop_.now) {
      plan(slot, start, NextStep::LeavesQueue);
      if (!waited) wait(card_of(slot), f.bytes);
    } else if (waited) {
      leave_queue(slot);
    } else {
      p.next = NextStep::Nothing;
    }
  }
  void wait(uint32_t card, double bytes) {
    SwitchInput& in = inputs_[card];
    in.waiting += bytes;
    if (!in.asked && in.waiting > buffer_) ask(card, true);
  }
  void leave_queue(uint32_t slot) {
    crossings_[slot].next = NextStep::Nothing;
    release(card_of(slot), flows_[slot].bytes);
  }
  void release(uint32_t card, double bytes) {
    SwitchInput& in = inputs_[card];
    in.waiting -= bytes;
    if (in.asked && in.waiting <= buffer_ / 2) ask(card, false);
  }
  void ask(uint32_t card, bool pause) {
    inputs_[card].asked = pause;
    agenda_.push({loop_.now + delay_, kSignals | signals_++, 2 * card + (pause ? 1U : 0U), 0});
  }
  /// The critical path to a frame's arrival.
  void extend(uint32_t slot, SwitchOutput& out, Ps start) {
    CriticalPath& path = anatomy_.critical;
    Crossing& p = crossings_[slot];
    const CriticalPath::Who who = path.place("wire");
    const bool queued = start > p.head && path.time(out.point) == start;
    CriticalPath::Point at = queued ? path.join(out.point, p.point) : path.join(p.point, out.point);
    at = path.extend(at, start, Stage::Queueing, who);
    out.point = path.extend(at, out.free, Stage::Wire, who, passing(flows_[slot].bytes));
    p.point = path.extend(out.point, out.free + hop_ + p.rounding, Stage::Latency, who, latency());
  }
  [[nodiscard]] CriticalPath::Bill passing(double bytes) const {
    return anatomy_.critical.bill({{this, link_number::bandwidth.name, -bytes * ps_per_byte_ * ps_per_byte_ / kPsPerSecond}});
  }
  [[nodiscard]] CriticalPath::Bill latency() const { return anatomy_.critical.bill({{this, link_number::latency.name, 1}}); }
  [[nodiscard]] CriticalPath::Point arrived(uint32_t slot, Ps /*t*/) override { return crossings_[slot].point; }
  void leave(uint32_t slot) override { contended_ += loop_.now > crossings_[slot].alone + crossings_[slot].rounding; }

  /// A link that carries what is lost is free; what waits for a port is planned anew, in the order in which it came.
  void cut_off(const std::vector<uint32_t>& slots) override {
    for (const uint32_t slot : slots) {
      SwitchInput& in = inputs_[card_of(slot)];
      const bool waits = crossings_[slot].next == NextStep::LeavesQueue;
      const double bytes = flows_[slot].bytes;
      if (in.current == slot) in.free = std::min(in.free, loop_.now);
      if (in.due && in.line.front() == slot) in.due = false;
      std::erase(in.line, slot);
      lose(slot);
      crossings_[slot].next = NextStep::Nothing;
      if (waits) release(card_of(slot), bytes);
    }
    const auto is_lost = [&](uint32_t slot) { return std::find(slots.begin(), slots.end(), slot) != slots.end(); };
    std::vector<uint32_t> again;
    for (SwitchOutput& out : outputs_) {
      std::deque<OutputPlace> kept;
      for (const OutputPlace& e : out.line)
        if (e.start > loop_.now && !is_lost(e.slot))
          again.push_back(e.slot);
        else if (e.end > loop_.now && !is_lost(e.slot))
          kept.push_back(e);
      out.line = std::move(kept);
      out.free = out.line.empty() ? loop_.now : out.line.back().end;
    }
    std::sort(again.begin(), again.end(), [this](uint32_t a, uint32_t b) {
      return crossings_[a].head != crossings_[b].head ? crossings_[a].head < crossings_[b].head : flows_[a].order < flows_[b].order;
    });
    for (const uint32_t slot : again) {
      ++flows_[slot].gen;
      take(slot);
    }
    for (uint32_t card = 0; card < inputs_.size(); ++card) {
      SwitchInput& in = inputs_[card];
      if (in.due) ++flows_[in.line.front()].gen;
      in.due = false;
      go_on(card);
    }
  }
};

}  // namespace

std::unique_ptr<Wire> pause_wire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link, uint64_t /*seed*/) {
  return std::make_unique<PauseWire>(loop, anatomy, positions, link);
}

}  // namespace retrompi
