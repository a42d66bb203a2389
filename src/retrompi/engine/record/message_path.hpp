// The path of messages: when each packet was copied into a channel and out of it, and the transfers over cards and wires on its behalf.
//
// Recorded on request only, along with the anatomy. The simulation reads nothing here, so no time changes.
#pragma once
#include <algorithm>
#include <vector>

#include "event/core.hpp"

namespace retrompi {

/// Data that kernels, cards and the wire move for a channel; causes of work refer to it.
struct NetworkPacket {
  enum Kind : uint8_t { Segment, Ack, Credit, Datagram, DatagramAck, Transfer, Read, Curve };
  Kind kind;
  int32_t channel;   // number of the channel
  int32_t from, to;  // hosts
  int64_t bytes;     // payload
  int32_t transit;   // of the MPI packet, where there is exactly one; -1
};
inline const char* network_packet_name(NetworkPacket::Kind k) {
  static constexpr const char* names[] = {"segment", "ack", "credit", "datagram", "datagram ack", "transfer", "read", "curve"};
  return names[static_cast<int>(k)];
}

/// The transit of an MPI packet through a channel. Times are -1 until they are known.
struct PacketTransit {
  int32_t channel;                            // -1: none, the receiver copies out of the sender's memory
  int32_t from, to;                           // logs of the processes' threads
  int32_t src, dst;                           // ranks
  uint8_t kind;                               // Packet::Kind
  bool first, last;                           // of its message
  Ps sent;                                    // when the message's send was called
  int64_t message;                            // bytes of the message
  int64_t bytes;                              // payload of the packet
  Ps queued;                                  // its process is ready to send it
  Ps copy_in_begin = -1, copy_in_end = -1;    // into the channel
  Ps copy_out_begin = -1, copy_out_end = -1;  // by the other process
};

class MessagePath {
 public:
  bool on = false;

  int32_t add(const PacketTransit& t) {
    transits_.push_back(t);
    return static_cast<int32_t>(transits_.size()) - 1;
  }
  // Each keeps the first time reported.
  void copy_in_begins(int32_t transit, Ps now) { note(transit, &PacketTransit::copy_in_begin, now); }
  void copy_in_ends(int32_t transit, Ps now) { note(transit, &PacketTransit::copy_in_end, now); }
  void copy_out_begins(int32_t transit, Ps now) { note(transit, &PacketTransit::copy_out_begin, now); }
  void copy_out_ends(int32_t transit, Ps now) { note(transit, &PacketTransit::copy_out_end, now); }

  int32_t add(const NetworkPacket& p) {
    packets_.push_back(p);
    return static_cast<int32_t>(packets_.size()) - 1;
  }
  [[nodiscard]] const std::vector<PacketTransit>& transits() const { return transits_; }
  [[nodiscard]] const std::vector<NetworkPacket>& packets() const { return packets_; }

 private:
  void note(int32_t transit, Ps PacketTransit::*when, Ps now) {
    if (transit < 0) return;
    Ps& t = transits_[static_cast<size_t>(transit)].*when;
    if (t < 0) t = now;
  }
  std::vector<PacketTransit> transits_;
  std::vector<NetworkPacket> packets_;
};

}  // namespace retrompi
