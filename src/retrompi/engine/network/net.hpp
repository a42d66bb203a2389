// The hosts' cards and the data that cross them: frames of a network stack, and bursts that a card moves from memory to memory.
#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "event/core.hpp"
#include "record/anatomy.hpp"

namespace retrompi {

struct World;
struct Common;

/// What a card does with a burst.
struct HowSent {
  Ps fetch = 0;              // until it has the first bytes
  bool interleaved = false;  // what fits into a frame goes between the frames of longer bursts
};

/// Frames between hosts: card, cable, card. One frame each way at a time crosses a card's bus. A host has a card on every rail.
class Net {
 public:
  struct Rails {
    size_t n = 1;
    bool stripe = false;         // frames use all rails in turn; otherwise each pair of hosts has one
    std::vector<size_t> places;  // of the hosts on the platform; they determine the rail of a pair
  };
  Net(World& w, int64_t overhead, int64_t mtu, Rails rails);
  /// Carries one frame; reports it lost when something on the path is down. `alone`: its delivery asks the receiver's kernel for so much work and
  /// changes nothing else; 0: it does more.
  void frame(Common& job, size_t from, size_t to, int64_t payload, const Delivery& d, Ps alone = 0);
  /// Moves a whole message from memory to memory: its pieces follow each other through bus, wire and bus, so that only one of
  /// them adds to the time of the slowest stage. A packet of `behind` bytes may follow it. Returns when the last byte has left the
  /// sender's memory. `how`: what the card does with it.
  Ps burst(Common& job, size_t from, size_t to, int64_t bytes, double rate, int64_t piece, const Delivery& d, int64_t behind = 0, HowSent how = {});
  [[nodiscard]] int64_t mtu() const { return mtu_; }
  /// Its future, in words.
  void state(State& s) const;
  [[nodiscard]] static State::Call describe(const Callback& c, State& s);
  /// A frame of cross traffic crosses a card of a host, outwards or inwards; returns when it has crossed.
  Ps background(bool out, size_t host, size_t rail, int64_t bytes);

 private:
  struct Flight {
    Net* net;
    size_t from, to;
    int64_t bytes;
    Delivery delivery;
    Cause by;
    Common* job;
    uint32_t rail;
    uint32_t parts = 0;             // of a burst over all rails: parts still in flight
    bool gone = false;              // it is lost, or one of its parts is
    int64_t piece = 0;              // of a burst
    int64_t behind = 0;             // of a burst's bytes: a packet of its own
    Ps left = 0;                    // when a burst has left the sender's memory
    Ps alone = 0;                   // of a frame: the kernel's work, if its delivery changes nothing else
    int64_t number = -1;            // of a frame between its two hosts, where frames may overtake each other
    CriticalPath::Point point = 0;  // when it has crossed the sender's card
    Flight* whole = nullptr;        // of a part
    [[nodiscard]] std::string process_name() const;
    void on_sent();
    void on_carried();
    void on_in();
    void on_burst();
    void on_burst_carried();
    void on_lost();
  };
  /// Frames between two hosts are delivered in the order in which they were sent, also those that use all rails (RFC 1990) or a wire that shares
  /// its links fluidly, where a short frame would overtake a long one.
  struct Order {
    int64_t out = 0, in = 0;
    std::map<int64_t, Flight*> early;  // null: lost
  };
  struct Bus {
    Ps free_at = 0;
    CriticalPath::Point point = 0;  // then; 0: it is not known what keeps it busy
    CriticalPath::Point asked = 0;  // when the last came
  };
  Ps cross(bool out, size_t host, Flight& f);
  [[nodiscard]] size_t card(size_t host, size_t rail) const { return rails_.n == 1 ? host : host * rails_.n + rail; }
  [[nodiscard]] uint32_t rail_of(size_t from, size_t to) const {
    return rails_.n == 1 ? 0 : static_cast<uint32_t>((rails_.places[from] ^ rails_.places[to]) % rails_.n);
  }
  Ps leave(Flight& f, double rate, int64_t piece, HowSent how);
  /// The critical path to the end of a crossing of a card by one that came now and whose turn begins at `start`.
  CriticalPath::Point crossing(bool out, const Flight& f, Ps start, Charge passing, Charge latency);
  void put_on_wire(Flight& f, int64_t bytes, const Delivery& d);
  void hand_over(Flight& f);
  void in_order(Flight& f, bool lost);
  Flight& flight(Common& job);
  World& w_;
  int64_t overhead_, mtu_;
  Rails rails_;
  std::vector<Bus> tx_, rx_;  // by card
  std::vector<Bus> bus_;      // memory and bus of a host, shared by both directions of bursts and by its cards
  std::map<std::pair<size_t, size_t>, Order> orders_;
  std::vector<std::unique_ptr<Flight>> all_;
  std::vector<Flight*> free_;
};

}  // namespace retrompi
