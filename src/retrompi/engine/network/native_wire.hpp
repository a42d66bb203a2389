// What the engine's own wires have in common: what is under way, the agenda, routes and failures; derived classes say how links are shared.
#pragma once
#include <optional>

#include "network/outages.hpp"
#include "network/wire.hpp"

namespace retrompi {

// With internal linkage the compiler inlines all of it into each wire.
namespace {

/// The queue of the wire's future actions. At equal times, changes on links come before notifications of hosts, and notifications follow
/// the order of sending.
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
  [[nodiscard]] const std::vector<Item>& items() const { return heap_.items(); }
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

/// A frame, or a burst of a card, that has been sent and not yet arrived.
struct Flow {
  Delivery delivery;
  Ps asked = 0;
  Cause by;
  CriticalPath::Point point = 0;  // when it was sent
  double bytes = 0;
  uint64_t order = 0;  // number of flows sent before it
  uint32_t gen = 0;    // agenda items with an older generation are void
  uint32_t route = 0;
  int32_t from = 0, to = 0;
  bool background = false;
  bool coming = false;  // an agenda item will start it
  bool gone = true;     // delivered, lost or unused
};

/// Flows and the agenda; derived classes define the links.
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
  [[nodiscard]] uint64_t contended() const override { return contended_; }
  void add_contended(uint64_t n) override { contended_ += n; }

  [[nodiscard]] bool under_way() const override { return in_flight_ > 0; }
  void advance() override {
    const Ps t = agenda_.top().t;
    // Everything that arrives at one time arrives before the hosts react to any of it.
    while (!agenda_.empty() && agenda_.top().t == t) {
      const Agenda::Item i = agenda_.pop();
      if (i.tells())
        arrive(i);
      else
        change(i);
    }
  }

  void state(State& s) override {
    if (failing_ || in_flight_ > 0 || !agenda_.empty()) s.refuse();
  }

 protected:
  /// The state of one that can tell what is under way, without that of its links.
  void put_under_way(State& s) {
    // Where something may fail it is refused; what is counted, and which slots are free, has no effect.
    const auto& [loop_, anatomy_, flows_, agenda_, failing_, contended_, free_, in_flight_, sent_] = *this;
    if (failing_) return s.refuse();
    std::vector<Agenda::Item> items;
    for (const Agenda::Item& i : agenda_.items())
      if (i.gen == flows_[i.what].gen) items.push_back(i);
    std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.t != b.t ? a.t < b.t : a.order < b.order; });
    for (const Agenda::Item& i : items) {
      s.put_time(i.t);
      s.put(i.tells());
      put_flow(s, i.what);
    }
    s.put(in_flight_);
  }
  void put_flow(State& s, uint32_t slot) {
    const auto& [delivery, asked, by, point, bytes, order, gen, route, from, to, background, coming, gone] = flows_[slot];
    s.put(from);
    s.put(to);
    s.put(static_cast<int64_t>(bytes));
    s.put_time(asked);
    s.put(delivery.on_delivered());
    s.put(background);
    s.put(coming);
  }

  /// Plans the start of a flow at the requested time, which may be later than now.
  virtual void enter(uint32_t /*slot*/, int /*from*/, int /*to*/) { throw ConfigError("nothing joins these hosts"); }
  /// An agenda item other than a notification; it sets the clock unless it is void.
  virtual void change(const Agenda::Item&) {}
  /// The critical path to the arrival of a flow. Before `leave`.
  [[nodiscard]] virtual CriticalPath::Point arrived(uint32_t slot, Ps t) {
    anatomy_.critical.unfollowed("links shared fluidly");
    return anatomy_.critical.extend(flows_[slot].point, t, Stage::Wire, anatomy_.critical.place("wire"));
  }
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
  uint64_t contended_ = 0;

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
    f.point = loop_.cause;
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
  /// The last byte of a flow has come to its card.
  [[gnu::always_inline]] void arrive(const Agenda::Item& i) {
    if (i.gen != flows_[i.what].gen) return;
    loop_.now = i.t;
    loop_.cause = anatomy_.critical.on ? arrived(i.what, i.t) : 0;
    leave(i.what);
    const Flow& f = flows_[i.what];
    const Callback delivered = f.delivery.on_delivered();
    forget(i.what);
    free_.push_back(i.what);
    loop_.trace(i.t, delivered);
    if (!anatomy_.on || f.background) return delivered();
    const Cause before = anatomy_.current;
    anatomy_.current = f.by;
    anatomy_.current = anatomy_.of(anatomy_.record("wire", Stage::Wire, f.asked, f.asked, i.t));
    delivered();
    anatomy_.current = before;
  }
  std::vector<uint32_t> free_;
  size_t in_flight_ = 0;
  uint64_t sent_ = 0;
};

/// Routes that are looked up once, and what is down.
class RoutedWire : public NativeWire {
 public:
  RoutedWire(Loop& loop, Anatomy& anatomy, const std::vector<size_t>& positions, const LinkSpec& link)
      : NativeWire(loop, anatomy), routes_(positions, link) {
    known_.resize(routes_.senders());
  }

  void fail(const std::vector<Failure>& failures) override {
    if (failures.empty()) return;
    failing_ = true;
    outages_.emplace(routes_, failures);
    for (uint32_t i = 0; i < failures.size(); ++i) {
      loop_.schedule(failures[i].from, callback<&RoutedWire::on_down>(*this, i), true);
      if (failures[i].until < kNever) loop_.schedule(failures[i].until, callback<&RoutedWire::on_up>(*this, i), true);
    }
  }
  [[nodiscard]] std::string failed() const override { return outages_ ? outages_->told(loop_.now) : ""; }

 protected:
  /// Halves up. What is half a picosecond before a whole one, to the precision of a double, is that one: an end is never told of in the past.
  static Ps whole(double ps) { return static_cast<Ps>(ps + 0.5); }
  /// What a derived class keeps about the next route: that of a card, over these links.
  virtual void add_route(size_t from, const std::vector<uint32_t>& links) = 0;
  [[nodiscard]] virtual const std::vector<uint32_t>& links_of(uint32_t route) const = 0;
  /// Takes flows off their links, in the order in which they were sent: something on their way is down.
  virtual void cut_off(const std::vector<uint32_t>& slots) = 0;

  /// The number of a route, from 0 on: it is created on first use, so that memory grows with the pairs that communicate.
  uint32_t route(size_t from, size_t to) {
    auto& row = known_[routes_.sender(from)];
    const size_t column = routes_.receiver(to);
    if (row.size() <= column) row.resize(column + 1, -1);
    if (row[column] < 0) {
      row[column] = static_cast<int32_t>(count_++);
      add_route(from, routes_.way(from, to));
    }
    return static_cast<uint32_t>(row[column]);
  }
  bool blocked(uint32_t slot) override {
    const auto from = static_cast<size_t>(flows_[slot].from), to = static_cast<size_t>(flows_[slot].to);
    return outages_->blocks(from, to, links_of(route(from, to)));
  }
  Routes routes_;

 private:
  void on_up(uint32_t i) { outages_->end(i); }
  void on_down(uint32_t i) {
    loop_.cause = anatomy_.appointed(loop_.now, "failures");
    outages_->begin(i);
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < flows_.size(); ++slot)
      if (!flows_[slot].gone && blocked(slot)) slots.push_back(slot);
    std::sort(slots.begin(), slots.end(), [this](uint32_t a, uint32_t b) { return flows_[a].order < flows_[b].order; });
    cut_off(slots);
  }
  std::optional<Outages> outages_;
  std::vector<std::vector<int32_t>> known_;  // from, to -> route
  uint32_t count_ = 0;
};

}  // namespace

}  // namespace retrompi
