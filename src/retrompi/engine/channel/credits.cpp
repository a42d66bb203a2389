#include "channel/credits.hpp"

namespace retrompi {

void Credits::send_update() {
  const auto n = static_cast<uint32_t>(pay());
  Host& h = chan_.to.host;
  chan_.attribute(NetworkPacket::Credit, 0, true);
  if (!tcp_.stack())
    chan_.world.loop.schedule(chan_.world.loop.now, callback<&Credits::on_update>(*this, n));
  else if (tcp_.local()) {
    h.kernel(h.charge(host_number::loopback_segment), Stage::Stack, callback<&Credits::on_update>(*this, n));
  } else {
    put_on_wire(n);
  }
}

void Credits::put_on_wire(uint32_t n) { tcp_.send_header(chan_.to, delivery<&Credits::on_update_frame, &Credits::on_update_lost>(*this, n)); }

void Credits::on_update_frame(uint32_t n) {
  Host& h = chan_.from.host;
  retransmits_ = 0;
  h.kernel(h.charge_frame(host_number::tcp_segment), Stage::Stack, callback<&Credits::on_update>(*this, n));
}

void Credits::on_update_lost(uint32_t n) {
  const HostSpec& h = chan_.to.host.spec;
  if (chan_.from.thread.dead() || chan_.to.thread.dead()) return;
  if (retransmits_ >= h.tcp_retries) TcpConnection::give_up(chan_.to, chan_.from, h.tcp_retries);
  // An update is data of the other direction, whose round trips are timed there.
  const Ps rto = tcp_.reverse() ? tcp_.reverse()->rto() : h.rto_first;
  Loop& loop = chan_.world.loop;
  loop.schedule(loop.now + RoundTripTime::backed_off(rto, retransmits_++, h.rto_max), callback<&Credits::send_update_again>(*this, n));
}

void Credits::send_update_again(uint32_t n) {
  if (chan_.to.thread.dead()) return;
  if (CriticalPath& path = chan_.world.anatomy.critical; path.on)
    chan_.world.loop.cause = path.extend(chan_.world.loop.cause, chan_.world.loop.now, Stage::Ack, chan_.to.host.place());
  ++chan_.common.count.retransmissions;
  put_on_wire(n);
}

}  // namespace retrompi
