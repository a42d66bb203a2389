// Flows, the agenda and the main loop of the wire on the engine's own queue; derived classes define the links.
#pragma once
#include "network/wire.hpp"

namespace retrompi {

// Included by wire.cpp only: with internal linkage the compiler inlines all of it into the wire's main loop.
namespace {

/// The queue of the wire's future actions. At equal times, changes of shares come before notifications of hosts, and notifications follow
/// the order in which the flows started.
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
  uint64_t order = 0;  // number of flows started before it
  uint32_t gen = 0;    // agenda items with an older generation are void
  uint32_t route = 0;
  int32_t from = 0, to = 0;
  bool background = false;
  bool coming = false;  // an agenda item will start it
  bool gone = true;     // delivered, lost or unused
};

/// Flows, the agenda and the main loop; the derived classes below define the links.
class NativeWire : public Wire {
 public:
  NativeWire(Loop& loop, Anatomy& anatomy) : loop_(loop), anatomy_(anatomy), agenda_(loop) {}

  void send(int from, int to, int64_t bytes, const Delivery& d) override { set_out(loop_.now, from, to, bytes, d, false); }
  bool send_at(Ps t, int from, int to, int64_t bytes, const Delivery& d) override {
    if (failing_) return false;  // what will be down by then is unknown
    set_out(t, from, to, bytes, d, false);
    return true;
  }
  void send_background(int from, int to, int64_t bytes, const Delivery& d) override { set_out(loop_.now, from, to, bytes, d, true); }

  bool run(const std::function<bool()>& could_act) override {
    while (!loop_.finished()) {
      // At one time, what happens on the hosts comes first.
      if (!loop_.empty() && (agenda_.empty() || loop_.next_time() <= agenda_.top().t)) {
        if (loop_.only_passive() && in_flight_ == 0 && !could_act()) return true;
        if (loop_.ends_before(loop_.next_time())) break;
        loop_.step();
      } else if (agenda_.empty()) {
        return true;
      } else if (loop_.ends_before(agenda_.top().t)) {
        break;
      } else {
        advance();
      }
    }
    return false;
  }

 protected:
  /// Plans the start of a flow at the requested time, which may be later than now.
  virtual void enter(uint32_t /*slot*/, int /*from*/, int /*to*/) { throw ConfigError("nothing joins these hosts"); }
  /// An agenda item other than a notification; it sets the clock unless it is void.
  virtual void change(const Agenda::Item&) {}
  /// Releases a flow that is over.
  virtual void leave(uint32_t /*slot*/) {}
  /// Whether something between two cards is down; records which failure took the flow.
  virtual bool blocked(uint32_t /*slot*/) { return false; }

  /// The flow's last byte arrives at `t`, unless its plan changes.
  void tell(uint32_t slot, Ps t) {
    const Flow& f = flows_[slot];
    agenda_.push({t, Agenda::kTells | f.order, slot, f.gen});
  }

  /// The flow will not arrive. Its sender is notified by an event, so that no call of the wire re-enters it.
  void lose(uint32_t slot) {
    Flow& f = flows_[slot];
    if (f.delivery.lost) loop_.schedule(loop_.now, f.delivery.on_lost(), f.background);
    forget(slot);
    if (!f.coming) free_.push_back(slot);
  }
  /// An agenda item was still pending for a flow that is lost.
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
    // Everything that arrives at one time arrives before the hosts react to any of it.
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
