// MPI messages in flight and the packets that carry them.
#pragma once
#include <cstdint>
#include <vector>

#include "channel/queued.hpp"
#include "event/state.hpp"
#include "event/time.hpp"

namespace retrompi {

class Chan;
struct Request;

/// One MPI message in flight.
struct Message {
  int32_t src = 0, dst = 0, tag = 0, ctx = 0;
  int64_t bytes = 0;
  bool rendezvous = false, sync = false;
  bool packed = false, unpacked = false;  // it passes through another buffer of its length at the sender, at the receiver
  bool direct = false;                    // the receiver copies out of the sender's buffer
  bool envelope_known = false;            // the receiver knows the envelope
  Request* sreq = nullptr;                // the sender's request, until it is complete
  Request* rreq = nullptr;                // the receive that matched
  int64_t asked = 0;                      // payload that its request carries (rendezvous)
  int64_t arrived = 0;                    // payload that has reached the receiving process
  int64_t unexpected_bytes = 0;           // of these, bytes in the library's memory waiting for a receive
  bool ack_sent = false, acked = false;   // a synchronous send's match: acknowledged by the receiver, seen by the sender
  bool send_complete = false;             // the sender has nothing more to do with it
  bool sent_all = false, delivered = false;
  bool lost = false;        // a part of it is lost and is not retransmitted
  uint32_t line = 0;        // trace line of the call that sent it
  Ps at = 0;                // time of that call
  Ps unexpected_since = 0;  // since when the library has buffered it for a receive
  int64_t number = -1;      // in the timeline
  struct PoolPacket {
    Chan* chan;
    int32_t buffer;
    int32_t transit;  // in the message path
    int64_t bytes;
  };
  std::vector<PoolPacket> in_pool;  // packets left in the shared pool because no receive is posted
  Queued<Message> queued;           // while no receive has matched it
  [[nodiscard]] int32_t envelope_source() const { return src; }
};

struct Packet {
  enum Kind : uint8_t { Data, Rts, Cts, SyncAck, Done };
  Message* m = nullptr;
  int64_t bytes = 0;         // payload
  int32_t from = 0, to = 0;  // ranks
  Kind kind = Data;
  bool first = false, last = false;
  bool held = false;     // left in the pool: its bytes have not arrived yet
  int32_t transit = -1;  // through the channel that it is in, in the message path
};

void put_message(State& s, const Message* m);
void put_request(State& s, const Request* r);
void put_packet(State& s, const Packet& p);

}  // namespace retrompi
