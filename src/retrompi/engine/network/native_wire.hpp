// Flows, the agenda and the drive of the wire on the engine's own queue; what links there are is a matter of who derives from it.
#pragma once
#include "network/wire.hpp"

namespace retrompi {

// Part of wire.cpp and of nothing else: without linkage the compiler puts all of it into the loop that drives the wire.
namespace {

/// A queue of what the wire will do. Whatever changes shares goes before what is told to hosts at the same time; those hear it in the
/// order in which the flows set out.
class Agenda {
 public:
  explicit Agenda(Loop& loop) : loop_(loop) {}
  struct Item {
    Ps t;
    uint64_t order;
    uint32_t what, gen;
    [[nodiscard]] bool tells() const { return (order >> 63) != 0; }
  };
  static constexpr uint64_t kTells = 1ULL << 63;
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const Item& top() const { return heap_.front(); }
  void push(const Item& i) {
    heap_.push(i);
    loop_.external_event = heap_.front().t;
  }
  Item pop() {
    const Item i = heap_.front();
    heap_.pop();
    loop_.external_event = heap_.empty() ? kNever : heap_.front().t;
    return i;
  }

 private:
  Loop& loop_;
  EventHeap<Item> heap_;
};

struct Flow {
  Delivery delivery;
  Ps asked = 0;
  Cause by;
  double bytes = 0;
  uint64_t order = 0;  // how many set out before it
  uint32_t gen = 0;    // agenda items of an older plan are void
  uint32_t route = 0;
  int32_t from = 0, to = 0;
  bool background = false;
  bool coming = false;  // it will set out by an item of the agenda
  bool gone = true;     // nobody waits for it any more
};

/// Flows, the agenda and the drive; what links there are is a matter of the kinds below.
class NativeWire : public Wire {
 public:
  NativeWire(Loop& loop, Anatomy& anatomy) : loop_(loop), anatomy_(anatomy), agenda_(loop) {}

  void send(int from, int to, int64_t bytes, const Delivery& d) override { set_out(loop_.now, from, to, bytes, d, false); }
  bool send_at(Ps t, int from, int to, int64_t bytes, const Delivery& d) override {
    if (failing_) return false;  // nobody knows now what will be down then
    set_out(t, from, to, bytes, d, false);
    return true;
  }
  void send_background(int from, int to, int64_t bytes, const Delivery& d) override { set_out(loop_.now, from, to, bytes, d, true); }

  bool run(const std::function<bool()>& could_act) override {
    while (!loop_.finished()) {
      // At one time, what happens on the hosts comes first.
      if (!loop_.empty() && (agenda_.empty() || loop_.next_time() <= agenda_.top().t)) {
        if (loop_.only_passive() && in_flight_ == 0 && !could_act()) return true;
        loop_.step();
      } else if (agenda_.empty()) {
        return true;
      } else {
        advance();
      }
    }
    return false;
  }

 protected:
  /// A flow sets out at the time it was asked for, which may be later than now: plan it.
  virtual void enter(uint32_t /*slot*/, int /*from*/, int /*to*/) { throw ConfigError("nothing joins these hosts"); }
  /// An agenda item that is not about telling; it sets the clock unless it is void.
  virtual void change(const Agenda::Item&) {}
  /// A flow is over and forgotten.
  virtual void leave(uint32_t /*slot*/) {}
  /// Whether something between two cards is down; remembers what took the flow.
  virtual bool blocked(uint32_t /*slot*/) { return false; }

  /// The flow's last byte has come at `t`, unless its plan changes.
  void tell(uint32_t slot, Ps t) {
    const Flow& f = flows_[slot];
    agenda_.push({t, Agenda::kTells | f.order, slot, f.gen});
  }

  /// The flow will not arrive. Its sender is told by an event, so that no call of the wire comes back before it ends.
  void lose(uint32_t slot) {
    Flow& f = flows_[slot];
    if (f.delivery.lost) loop_.schedule(loop_.now, f.delivery.on_lost(), f.background);
    forget(slot);
    if (!f.coming) free_.push_back(slot);
  }
  /// An item of the agenda was still to come for a flow that is lost.
  void give_back(uint32_t slot) { free_.push_back(slot); }

  Loop& loop_;
  Anatomy& anatomy_;
  std::vector<Flow> flows_;
  Agenda agenda_;
  bool failing_ = false;

 private:
  [[gnu::always_inline]] void set_out(Ps t, int from, int to, int64_t bytes, const Delivery& d, bool background) {
    uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<uint32_t>(flows_.size());
      flows_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    Flow& f = flows_[slot];
    f.delivery = d;
    f.asked = t;
    f.by = anatomy_.current;
    f.bytes = static_cast<double>(bytes);
    f.order = sent_++;
    ++f.gen;
    f.from = from;
    f.to = to;
    f.background = background;
    f.gone = false;
    if (!background) ++in_flight_;
    if (failing_ && blocked(slot)) return lose(slot);
    enter(slot, from, to);
  }
  [[gnu::always_inline]] void forget(uint32_t slot) {
    Flow& f = flows_[slot];
    ++f.gen;
    f.gone = true;
    if (!f.background) --in_flight_;
  }
  void advance() {
    const Ps t = agenda_.top().t;
    // Everything that comes at one time comes before the hosts react to any of it.
    while (!agenda_.empty() && agenda_.top().t == t) {
      const Agenda::Item i = agenda_.pop();
      if (!i.tells()) {
        change(i);
        continue;
      }
      if (i.gen != flows_[i.what].gen) continue;
      loop_.now = t;
      leave(i.what);
      const Flow& f = flows_[i.what];
      const Callback delivered = f.delivery.on_delivered();
      forget(i.what);
      free_.push_back(i.what);
      if (anatomy_.on && !f.background) {
        const Cause before = anatomy_.current;
        anatomy_.current = f.by;
        anatomy_.current = anatomy_.of(anatomy_.record("wire", Stage::Wire, f.asked, f.asked, t));
        delivered();
        anatomy_.current = before;
      } else {
        delivered();
      }
    }
  }
  std::vector<uint32_t> free_;
  size_t in_flight_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace

}  // namespace retrompi
