#include "network/traffic.hpp"

#include <cmath>

namespace retrompi {

Traffic::Traffic(World& w, const std::vector<TrafficSpec>& specs, const std::vector<size_t>& places, size_t rails, int64_t overhead, uint64_t seed)
    : w_(w), places_(places), rails_(rails), overhead_(overhead) {
  for (const TrafficSpec& t : specs) {
    const Ps gap = std::max<Ps>(1, to_ps(static_cast<double>(t.frame) / t.rate));
    Rng rng(seed ^ 0x7472616666696bULL ^ (0x9e3779b97f4a7c15ULL * (sources_.size() + 1)));
    Source& s = sources_.emplace_back(Source{.traffic = *this, .spec = t, .rng = rng, .gap = gap});
    s.on_left = t.law == TrafficSpec::OnOff ? drawn(s.rng, t.on) : 0;
    // Sources of equal rate are not in phase.
    next(s, static_cast<Ps>(s.rng.uniform() * static_cast<double>(gap)));
  }
}

Ps Traffic::drawn(Rng& rng, Ps mean) { return static_cast<Ps>(-std::log1p(-rng.uniform()) * static_cast<double>(mean)) + 1; }

void Traffic::next(Source& s, Ps gap) {
  Ps at = w_.loop.now;
  if (s.spec.law == TrafficSpec::OnOff) {
    // The mean rate covers on and off periods: within an on period frames come at shorter intervals.
    gap = static_cast<Ps>(static_cast<double>(gap) * static_cast<double>(s.spec.on) / static_cast<double>(s.spec.on + s.spec.off));
    while (gap > s.on_left) {
      gap -= s.on_left;
      at += s.on_left + drawn(s.rng, s.spec.off);
      s.on_left = drawn(s.rng, s.spec.on);
    }
    s.on_left -= gap;
  }
  w_.loop.schedule(at + std::max<Ps>(gap, 1), callback<&Source::on_time>(s), true);
}

void Traffic::Source::on_time() {
  ++frames;
  traffic.w_.loop.cause = traffic.w_.anatomy.appointed(traffic.w_.loop.now, "cross traffic");
  if (waiting < kQueue)
    traffic.emit(*this);
  else
    ++dropped;
  traffic.next(*this, spec.law == TrafficSpec::Poisson ? drawn(rng, gap) : gap);
}

Ps Traffic::stack(const HostSpec& h, const Frame& f) const {
  const int64_t payload = std::max<int64_t>(0, f.source->spec.frame - overhead_);
  return h.tcp_segment + static_cast<Ps>(h.tcp_byte * static_cast<double>(payload));
}

void Traffic::emit(Source& s) {
  const size_t n = places_.size();
  size_t from = static_cast<size_t>(s.spec.from), to = static_cast<size_t>(s.spec.to);
  if (s.spec.from < 0) from = s.rng.next() % (s.spec.to < 0 ? n : n - 1);
  if (s.spec.from < 0 && s.spec.to >= 0 && from >= to) ++from;
  if (s.spec.to < 0) to = (from + 1 + s.rng.next() % (n - 1)) % n;
  Frame* f = nullptr;
  if (free_.empty()) {
    f = &all_.emplace_back();
  } else {
    f = free_.back();
    free_.pop_back();
  }
  *f = {this, &s, from, to, (places_[from] ^ places_[to]) % rails_};
  ++s.waiting;
  if (from < w_.hosts.size())
    w_.hosts[from]->kernel(stack(w_.hosts[from]->spec, *f), Stage::Stack, callback<&Frame::on_stack_out>(*f), true);
  else
    f->on_sent();
}

void Traffic::Frame::on_stack_out() {
  World& w = traffic->w_;
  w.loop.schedule(w.net->background(true, from, rail, source->spec.frame), callback<&Frame::on_sent>(*this), true);
}

void Traffic::Frame::on_sent() {
  const Traffic& t = *traffic;
  t.w_.wire->send_background(t.card(from, rail), t.card(to, rail), source->spec.frame, delivery<&Frame::on_carried, &Frame::on_lost>(*this));
}

void Traffic::Frame::on_carried() {
  World& w = traffic->w_;
  w.loop.owner = 0;
  assert(source->waiting > 0);
  --source->waiting;
  ++source->arrived;
  source->bytes += source->spec.frame;
  if (to < w.hosts.size())
    w.loop.schedule(w.net->background(false, to, rail, source->spec.frame), callback<&Frame::on_in>(*this), true);
  else
    traffic->free(*this);
}

void Traffic::Frame::on_in() {
  Host& h = *traffic->w_.hosts[to];
  const Ps interrupt = h.needs_interrupt() ? h.spec.interrupt : Ps(0);
  h.kernel(interrupt + traffic->stack(h.spec, *this), Stage::Stack, callback<&Frame::on_stack_in>(*this), true);
}

void Traffic::Frame::on_stack_in() { traffic->free(*this); }

void Traffic::Frame::on_lost() {
  assert(source->waiting > 0);
  --source->waiting;
  ++source->lost;
  traffic->free(*this);
}

}  // namespace retrompi
