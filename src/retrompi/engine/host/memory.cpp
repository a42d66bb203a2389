// Memory: what copies cost, which caches and buses cores share, and how processors that wait for the same memory slow each other down.
#include "host/host.hpp"

namespace retrompi {

Kinship Host::kinship(int a, int b) const {
  if (a == b) return Kinship::Same;
  return a / spec.l2_shared_by == b / spec.l2_shared_by ? Kinship::Cache : Kinship::Bus;
}

namespace {

CopyCost cost_of(const HostSpec& spec, int64_t bytes, const CopySide& from, const CopySide& to, Kinship kin, double* seconds = nullptr) {
  constexpr double kLine = 64;
  CopyCost c;
  double time = 0, memory = 0;
  // Reading a byte from memory is one transfer, writing one is two: the line is fetched first and written back later.
  auto side = [&](const CopySide& s, double transfers) {
    const bool foreign = s.held != CopySide::Own && kin != Kinship::Same;
    if (!foreign || (s.held == CopySide::Clean && kin == Kinship::Cache)) {
      const HostSpec::PerByte own = spec.copy_side(s.near, s.set, transfers);
      time += own.time;
      memory += own.memory;
      if (s.near > spec.l1) c.bus += spec.misses(s.set) * transfers * static_cast<double>(bytes);
      return;
    }
    const double miss = spec.misses(s.set), missed = miss * (transfers / 3) / spec.copy_mem;
    double hit = 0.5 / spec.copy_l2;
    if (kin == Kinship::Bus) {
      // The line crosses the bus once: from memory while it is clean, else from the cache that modified it, which no prefetcher
      // hides; only as many lines as the core has fill buffers are in flight at a time.
      hit = 1.0 / 3 / spec.copy_mem;
      if (s.held == CopySide::Clean) memory += (1 - miss) * hit;
      if (s.held == CopySide::Dirty) hit = std::max(hit, to_s(spec.line_bus) / kLine / spec.lines_in_flight);
      c.bus += (1 - miss) * static_cast<double>(bytes);
    } else if (s.held == CopySide::Dirty) {
      hit = std::max(hit, to_s(spec.line_shared) / kLine / spec.lines_in_flight);
    }
    time += (1 - miss) * hit + missed;
    memory += missed;
    c.bus += miss * transfers * static_cast<double>(bytes);
  };
  side(from, 1);
  side(to, 2);
  c.core = to_ps(static_cast<double>(bytes) * time);
  if (seconds) *seconds = static_cast<double>(bytes) * time;
  c.memory = memory / time;
  return c;
}

/// How the time of a copy depends on the rates: it is linear in the reciprocal of each, so two values tell.
std::vector<CriticalPath::Term> copy_terms(const HostSpec& spec, int64_t bytes, const CopySide& from, const CopySide& to, Kinship kin) {
  // Lines that another core has written come at the rate of the cache or of the transfers, whichever is slower.
  if (kin != Kinship::Same && (from.held == CopySide::Dirty || to.held == CopySide::Dirty)) return {{&spec, "copy_line", 1}};
  double now = 0, faster = 0;
  cost_of(spec, bytes, from, to, kin, &now);
  std::vector<CriticalPath::Term> terms;
  constexpr std::pair<double HostSpec::*, const char*> kRates[] = {
      {&HostSpec::copy_l1, "copy_l1"}, {&HostSpec::copy_l2, "copy_l2"}, {&HostSpec::copy_mem, "copy_mem"}};
  for (const auto& [rate, name] : kRates) {
    HostSpec twice = spec;
    twice.*rate *= 2;
    cost_of(twice, bytes, from, to, kin, &faster);
    terms.push_back({&spec, name, -2 * (now - faster) / spec.*rate});
  }
  return terms;
}

}  // namespace

CopyCost Host::copy_cost(int64_t bytes, const CopySide& from, const CopySide& to, Kinship kin) const {
  if (bytes <= 0) return {};
  if (!copied_) copied_ = std::make_unique<std::array<Copied, 64>>();
  const auto mixed = [](int64_t n, uint64_t odd) { return static_cast<uint64_t>(n) * odd; };
  Copied& c = (*copied_)[(mixed(bytes, 0x9e3779b97f4a7c15ULL) ^ mixed(from.set, 0xc2b2ae3d27d4eb4fULL) ^ mixed(to.set, 0x165667b19e3779f9ULL)) >> 58];
  if (c.bytes != bytes || c.from != from || c.to != to || c.kin != kin) c = {bytes, from, to, kin, cost_of(spec, bytes, from, to, kin)};
  if (anatomy.critical.on && c.cost.bill == 0) c.cost.bill = anatomy.critical.bill(copy_terms(spec, bytes, from, to, kin));
  return c.cost;
}

Ps Host::claim_bus(int a, int b, const CopyCost& c) {
  if (c.bus <= 0) return loop.now;
  auto claim = [&](int core) {
    Ps& free_at = bus_free_[static_cast<size_t>(core / spec.package_cores)];
    free_at = std::max(free_at, loop.now) + to_ps(c.bus / spec.fsb_rate);
    return free_at;
  };
  Ps end = claim(a);
  if (a / spec.package_cores != b / spec.package_cores) end = std::max(end, claim(b));
  return end;
}

// Each processor is a customer of two stations in turn: itself, and the memory. Mean value analysis: on its arrival it finds there each of the
// others with the probability of that one's share; S are served at full rate, more than S divide that of S. With S = 1 two shares a and b stretch
// each other by 1 + ab. Many long shares would still get more than the memory has, so its capacity bounds them.
double memory_slowdown(double m, std::span<const double> others, double streams) {
  double sum = 0;
  for (const double o : others) sum += o;
  if (m <= 0 || sum <= 0 || static_cast<double>(others.size()) + 1 <= streams) return 1;
  // E[max(1, (1 + N) / S)] is (1 + E[N]) / S, and what is missing to 1 for every N below S - 1.
  double wait = (1 + sum) / streams;
  const auto free = static_cast<size_t>(std::max(0.0, std::ceil(streams - 1)));  // numbers N that leave the memory some rate
  std::vector<double> number(free, 0.0);                                         // N -> its probability
  if (free > 0) number[0] = 1;
  for (const double o : others)
    for (size_t n = free; n-- > 0;) number[n] = number[n] * (1 - o) + (n > 0 ? number[n - 1] * o : 0);
  for (size_t n = 0; n < free; ++n) wait += number[n] * (1 - (1 + static_cast<double>(n)) / streams);
  return std::max({1.0, 1 - m + m * wait, (m + sum) / streams});
}

double Host::slowdown(double memory, const Thread* self) const {
  if (memory <= 0 || using_memory_ < 2) return 1;
  std::vector<double>& others = others_;
  others.clear();
  for (const Core& c : cores_)
    if (c.running && c.running != self && c.running->on_clock_ && c.running->memory_ > 0) others.push_back(c.running->memory_);
  if (self && kernel_.memory > 0) others.push_back(kernel_.memory);
  return memory_slowdown(memory, others, spec.mem_streams);
}

// The factor holds from one change of the neighbours to the next. Where it stays the same, so does the event that ends the interval: its place
// among the events of its time must not depend on neighbours that do not slow it down.
void Host::reshare(const Thread* self) {
  if (using_memory_ < 1) return;
  const uint32_t before = loop.owner;
  for (const Core& c : cores_) {
    Thread* u = c.running;
    if (!u || u == self || !u->on_clock_ || u->memory_ <= 0 || slowdown(u->memory_, u) == u->slow_) continue;
    loop.owner = u->owner_;  // its end is an event of its job
    stop_clock(*u);
    start_clock(*u);
  }
  if (self && kernel_.memory > 0 && slowdown(kernel_.memory, nullptr) != kernel_.slow) {
    const Ps done = loop.now - kernel_.began;
    kernel_.need -= kernel_.slow > 1 ? std::min(kernel_.need, static_cast<Ps>(static_cast<double>(done) / kernel_.slow + 0.5)) : done;
    loop.owner = kjobs_.front().owner;
    start_kernel_clock();
  }
  loop.owner = before;
}

}  // namespace retrompi
