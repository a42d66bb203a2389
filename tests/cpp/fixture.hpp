// Shared by the C++ unit tests: hosts with round figures, so that times can be worked out by hand.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "channel/proc.hpp"

namespace retrompi::test {

constexpr Ps kMicrosecond = 1'000'000, kMillisecond = 1'000 * kMicrosecond, kSecond = 1'000 * kMillisecond;

/// One processor, quanta of 20 ms, ticks of 10 ms, a context switch of 1 ms. TCP takes 10 us a segment at either end and nothing else; a
/// card moves 1 byte in a microsecond. A full segment is 980 bytes: with TCP's header 1000 bytes, a millisecond on a card.
inline HostSpec plain_host(const std::string& name = "host") {
  HostSpec h;
  h.name = name;
  h.clock = kReferenceClock;
  h.work = 1;
  h.quantum = 20 * kMillisecond;
  h.tick = 10 * kMillisecond;
  h.dispatch = 1 * kMillisecond;
  h.boost = 1;
  h.l1 = 1e6;
  h.l2 = 1e6;
  h.copy_l1 = h.copy_l2 = h.copy_mem = 1e9;
  h.mem_streams = 1;
  h.tcp_segment = 10 * kMicrosecond;
  h.loopback_segment = 5 * kMicrosecond;
  h.loopback_mss = h.mss = 980;
  h.window = 5880;
  h.sndbuf = 9800;
  h.delayed_ack = 200 * kMillisecond;
  h.rto_first = 3 * kSecond;
  h.rto_min = 1 * kSecond;
  h.rto_max = 64 * kSecond;
  h.tcp_retries = 2;
  h.dup_acks = 3;
  h.nic_rate = 1e6;
  return h;
}

/// A process without behaviour, for use as an endpoint.
class Bystander : public Proc {
 public:
  using Proc::Proc;
  Task handle(Packet) override { co_return; }
};

}  // namespace retrompi::test
