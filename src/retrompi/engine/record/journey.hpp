// The journey of messages: when each packet was put into a channel, lay there and was taken out, and what crossed cards and wires for it.
//
// Recorded on request only, beside the anatomy. Nothing here is read by the simulation: no time changes by it.
#pragma once
#include <algorithm>
#include <vector>

#include "event/core.hpp"

namespace retrompi {

/// Something that kernels, cards and the wire move for a channel: it is named by the causes of the work that is done for it.
struct Thing {
  enum Kind : uint8_t { Segment, Ack, Credit, Datagram, DatagramAck, Transfer, Read, Curve };
  Kind kind;
  int32_t channel;   // number of the channel
  int32_t from, to;  // hosts
  int64_t bytes;     // payload
  int32_t passage;   // the packet, where there is exactly one; -1
};
inline const char* thing_name(Thing::Kind k) {
  static constexpr const char* names[] = {"segment", "ack", "credit", "datagram", "datagram ack", "transfer", "read", "curve"};
  return names[static_cast<int>(k)];
}

/// A packet goes through a channel. Times are -1 until they are known.
struct Passage {
  int32_t channel;          // -1: none, the receiver copies out of the sender's memory
  int32_t from, to;         // logs of the processes' threads
  int32_t src, dst;         // ranks
  uint8_t kind;             // Packet::Kind
  bool first, last;         // of its message
  Ps sent;                  // when the message's send was called
  int64_t message;          // bytes of the message
  int64_t bytes;            // payload of the packet
  Ps asked;                 // the process wants to put it in
  Ps in = -1, laid = -1;    // it begins to, and has done so
  Ps out = -1, taken = -1;  // the other process begins to take it out, and has it
};

class Journey {
 public:
  bool on = false;

  int32_t ask(const Passage& p) {
    passages_.push_back(p);
    return static_cast<int32_t>(passages_.size()) - 1;
  }
  // Each keeps the first time that it is told.
  void in(int32_t passage, Ps now) { note(passage, &Passage::in, now); }
  void laid(int32_t passage, Ps now) { note(passage, &Passage::laid, now); }
  void out(int32_t passage, Ps now) { note(passage, &Passage::out, now); }
  void taken(int32_t passage, Ps now) { note(passage, &Passage::taken, now); }

  int32_t thing(const Thing& t) {
    things_.push_back(t);
    return static_cast<int32_t>(things_.size()) - 1;
  }
  [[nodiscard]] const std::vector<Passage>& passages() const { return passages_; }
  [[nodiscard]] const std::vector<Thing>& things() const { return things_; }

 private:
  void note(int32_t passage, Ps Passage::*when, Ps now) {
    if (passage < 0) return;
    Ps& t = passages_[static_cast<size_t>(passage)].*when;
    if (t < 0) t = now;
  }
  std::vector<Passage> passages_;
  std::vector<Thing> things_;
};

}  // namespace retrompi
