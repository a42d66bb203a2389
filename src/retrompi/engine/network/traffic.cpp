#include "network/traffic.hpp"

#include <cmath>

namespace retrompi {

Traffic::Traffic(World& w, const std::vector<TrafficSpec>& specs, const std::vector<size_t>& places, size_t rails, int64_t overhead, uint64_t seed)
    : w_(w), places_(places), rails_(rails), overhead_(overhead) {
  w.wire->background_lost = &Traffic::on_lost;
  for (const TrafficSpec& t : specs) {
    const Ps gap = std::max<Ps>(1, to_ps(static_cast<double>(t.frame) / t.rate));
    Rng rng(seed ^ 0x7472616666696bULL ^ (0x9e3779b97f4a7c15ULL * (sources_.size() + 1)));
    Source& s = sources_.emplace_back(Source{.spec = t, .rng = rng, .gap = gap});
    s.on_left = t.law == TrafficSpec::OnOff ? drawn(s.rng, t.on) : 0;
    // Sources of one rate do not go in step.
    next(s, static_cast<Ps>(s.rng.uniform() * static_cast<double>(gap)));
  }
}

Ps Traffic::drawn(Rng& rng, Ps mean) { return static_cast<Ps>(-std::log1p(-rng.uniform()) * static_cast<double>(mean)) + 1; }

void Traffic::next(Source& s, Ps gap) {
  Ps at = w_.loop.now;
  if (s.spec.law == TrafficSpec::OnOff) {
    // The mean rate is that of all the time: within a period frames come closer together.
    gap = static_cast<Ps>(static_cast<double>(gap) * static_cast<double>(s.spec.on) / static_cast<double>(s.spec.on + s.spec.off));
    while (gap > s.on_left) {
      gap -= s.on_left;
      at += s.on_left + drawn(s.rng, s.spec.off);
      s.on_left = drawn(s.rng, s.spec.on);
    }
    s.on_left -= gap;
  }
  w_.loop.at(at + std::max<Ps>(gap, 1), &Traffic::on_time, &s, reinterpret_cast<uint64_t>(this), true);
}

void Traffic::on_time(void* p, uint64_t traffic) {
  auto& t = *reinterpret_cast<Traffic*>(traffic);
  auto& s = *static_cast<Source*>(p);
  ++s.frames;
  if (s.waiting < kQueue)
    t.emit(s);
  else
    ++s.dropped;
  t.next(s, s.spec.law == TrafficSpec::Poisson ? drawn(s.rng, s.gap) : s.gap);
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
    w_.hosts[from]->kernel(stack(w_.hosts[from]->spec, *f), Stage::Stack, &Traffic::on_out, f, 0, true);
  else
    on_sent(f, 0);
}

void Traffic::on_out(void* p, uint64_t) {
  const auto& f = *static_cast<Frame*>(p);
  World& w = f.traffic->w_;
  w.loop.at(w.net->background(true, f.from, f.rail, f.source->spec.frame), &Traffic::on_sent, p, 0, true);
}

void Traffic::on_sent(void* p, uint64_t) {
  const auto& f = *static_cast<Frame*>(p);
  const Traffic& t = *f.traffic;
  t.w_.wire->send_background(t.card(f.from, f.rail), t.card(f.to, f.rail), f.source->spec.frame, &Traffic::on_carried, p, 0);
}

void Traffic::on_carried(void* p, uint64_t) {
  auto& f = *static_cast<Frame*>(p);
  World& w = f.traffic->w_;
  w.loop.owner = 0;
  --f.source->waiting;
  ++f.source->arrived;
  f.source->bytes += f.source->spec.frame;
  if (f.to < w.hosts.size())
    w.loop.at(w.net->background(false, f.to, f.rail, f.source->spec.frame), &Traffic::on_in, p, 0, true);
  else
    f.traffic->free(f);
}

void Traffic::on_in(void* p, uint64_t) {
  const auto& f = *static_cast<Frame*>(p);
  Host& h = *f.traffic->w_.hosts[f.to];
  h.kernel(h.spec.interrupt + f.traffic->stack(h.spec, f), Stage::Stack, &Traffic::on_taken, p, 0, true);
}

void Traffic::on_taken(void* p, uint64_t) {
  auto& f = *static_cast<Frame*>(p);
  f.traffic->free(f);
}

void Traffic::on_lost(void* p, uint64_t) {
  auto& f = *static_cast<Frame*>(p);
  --f.source->waiting;
  ++f.source->lost;
  f.traffic->free(f);
}

}  // namespace retrompi
