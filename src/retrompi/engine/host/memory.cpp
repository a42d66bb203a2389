// Memory: what copies cost, which caches and buses cores share, and how computations stretch each other on a bus.
#include "host/host.hpp"

namespace retrompi {

Ps Host::copy_time(int64_t bytes, double from_set, double to_set) const {
  if (bytes <= 0) return 0;
  Copied& c =
      copied_[((static_cast<uint64_t>(bytes) * 3 + static_cast<uint64_t>(from_set) * 5 + static_cast<uint64_t>(to_set)) * 0x9e3779b97f4a7c15ULL) >>
              58];
  if (c.bytes != bytes || c.from != from_set || c.to != to_set) c = {bytes, from_set, to_set, spec.copy_time(bytes, from_set, to_set)};
  return c.ps;
}

Kinship Host::kinship(int a, int b) const {
  if (a == b) return Kinship::Same;
  return a / spec.l2_shared_by == b / spec.l2_shared_by ? Kinship::Cache : Kinship::Bus;
}

CopyCost Host::copy_cost(int64_t bytes, const CopySide& from, const CopySide& to, Kinship kin) const {
  constexpr double kLine = 64;
  CopyCost c;
  double per_byte = 0;
  // Reading a byte from memory is one transfer, writing one is two: the line is fetched first and written back later.
  auto side = [&](const CopySide& s, double transfers) {
    const bool foreign = s.held != CopySide::Own && kin != Kinship::Same;
    if (s.near <= spec.l1 && (!foreign || (s.held == CopySide::Clean && kin == Kinship::Cache))) {
      per_byte += 0.5 / spec.copy_l1;
      return;
    }
    const double miss = spec.misses(s.set), memory = transfers / 3 / spec.copy_mem;
    double hit = 0.5 / spec.copy_l2;
    if (foreign && kin == Kinship::Bus) {
      // The line crosses the bus once: from memory while it is clean, else from the cache that modified it, which no prefetcher
      // hides; only as many lines as the core has fill buffers are in flight at a time.
      hit = 1.0 / 3 / spec.copy_mem;
      if (s.held == CopySide::Dirty) hit = std::max(hit, to_s(spec.line_bus) / kLine / spec.lines_in_flight);
      c.bus += (1 - miss) * static_cast<double>(bytes);
    } else if (foreign && s.held == CopySide::Dirty) {
      hit = std::max(hit, to_s(spec.line_shared) / kLine / spec.lines_in_flight);
    }
    per_byte += (1 - miss) * hit + miss * memory;
    c.bus += miss * transfers * static_cast<double>(bytes);
  };
  if (bytes <= 0) return c;
  side(from, 1);
  side(to, 2);
  c.core = to_ps(static_cast<double>(bytes) * per_byte);
  return c;
}

Ps Host::claim_bus(int a, int b, const CopyCost& c) {
  if (c.bus <= 0) return 0;
  auto claim = [&](int core) {
    Ps& free_at = bus_free_[static_cast<size_t>(core / spec.package_cores)];
    free_at = std::max(free_at, loop.now) + to_ps(c.bus / spec.fsb_rate);
    return free_at;
  };
  Ps end = claim(a);
  if (a / spec.package_cores != b / spec.package_cores) end = std::max(end, claim(b));
  return std::max<Ps>(0, end - loop.now - c.core);
}

// Each computation is a customer of two stations in turn: its own processor, and the memory bus, where it queues behind the
// others. Mean value analysis of two customers that spend the shares a and b of their time alone on the bus stretches each by
// 1 + ab; with more processors the others' shares add up. The factor holds from one change of the neighbours to the next.
double Host::slowdown(const Thread& t) const {
  if (t.memory_ <= 0 || cores_.size() < 2) return 1;
  double others = 0;
  for (const Core& c : cores_)
    if (c.running && c.running != &t && c.running->on_clock_) others += c.running->memory_;
  return 1 + t.memory_ * others;
}

void Host::reshare(const Thread& t) {
  for (const Core& c : cores_) {
    Thread* u = c.running;
    if (!u || u == &t || !u->on_clock_ || u->memory_ <= 0) continue;
    stop_clock(*u);
    start_clock(*u);
  }
}

}  // namespace retrompi
