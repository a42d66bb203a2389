// The engine without Python, for the sanitizers (benchmarks/sanitize.sh): small traces over every kind of channel.
//
//   engine_check            one host: ring, pool and stream between two and three ranks
//   engine_check network K            two hosts: the frames of streams, lossy datagrams and cards; K says which
//   engine_check network K simgrid    the same over the reference wire, which allows one simulation in the life of a process
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/sim.hpp"

using namespace retrompi;

namespace {

constexpr Ps kMicrosecond = 1'000'000;

HostSpec computer(const std::string& name) {
  HostSpec h;
  h.name = name;
  h.clock = kReferenceClock;
  h.work = 1;
  h.quantum = 20'000 * kMicrosecond;
  h.tick = 10'000 * kMicrosecond;
  h.dispatch = 15 * kMicrosecond;
  h.syscall = 4 * kMicrosecond;
  h.boost = 1;
  h.l1 = 8192;
  h.l2 = 262144;
  h.copy_l1 = 300e6;
  h.copy_l2 = 178e6;
  h.copy_mem = 82e6;
  h.mem_streams = 1;
  h.tcp_segment = 100 * kMicrosecond;
  h.interrupt = 20 * kMicrosecond;
  h.loopback_segment = 60 * kMicrosecond;
  h.tcp_byte = 60'000;
  h.loopback_mss = h.mss = 1460;
  h.window = 8760;
  h.sndbuf = 8192;
  h.delayed_ack = 200'000 * kMicrosecond;
  h.nic_rate = 3.1e6;
  h.nic_latency = 100 * kMicrosecond;
  h.flops = 22e6;
  h.rto_first = 3'000'000 * kMicrosecond;
  h.rto_min = 300'000 * kMicrosecond;
  h.rto_max = 64'000'000 * kMicrosecond;
  h.tcp_retries = 5;
  h.dup_acks = 3;
  return h;
}

template <class Spec>
Spec hop(const std::string& from = "rank", const std::string& to = "rank") {
  Spec h;
  h.between = {from, to};
  h.packet = 4096;
  h.header = 32;
  if constexpr (!std::is_same_v<Spec, CurveSpec>) {
    h.send_cpu = h.recv_cpu = {5 * kMicrosecond};
    h.space_wait.what = WaitFor::Room;
  }
  if constexpr (std::is_base_of_v<SharedMemorySpec, Spec>) {
    h.ws_message = 2;
    h.event = {30 * kMicrosecond};
  }
  if constexpr (std::is_same_v<Spec, RingSpec>) h.slots = 2;
  if constexpr (std::is_same_v<Spec, PoolSpec>) {
    h.packet = 131072;
    h.pool = 1 << 20;
    h.classes = {64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};
    h.prefix = 32;
    h.hold_unexpected = true;
  }
  if constexpr (std::is_same_v<Spec, StreamSpec>) h.connect = {1000 * kMicrosecond};
  if constexpr (requires { h.call; }) h.call = {50 * kMicrosecond};
  if constexpr (std::is_same_v<Spec, DatagramSpec>) {
    h.window = 2;
    h.retries = 12;
    h.timeout = 100'000 * kMicrosecond;
  }
  if constexpr (std::is_same_v<Spec, DmaSpec>) {
    h.slots = 2;
    h.piece = h.piece_min = 4096;
    h.packet = 1 << 30;
  }
  return h;
}

HopSpec hop(Medium medium) {
  return medium == Medium::Pool ? HopSpec(hop<PoolSpec>()) : medium == Medium::Ring ? HopSpec(hop<RingSpec>()) : HopSpec(hop<StreamSpec>());
}

/// The values of one host, to be changed for it alone.
HostSpec& own(NamedHost& host) {
  auto mine = std::make_shared<HostSpec>(*host.spec);
  host.spec = mine;
  return *mine;
}

SimConfig room(size_t hosts, size_t ranks, std::vector<HopSpec> route, WaitPolicy::Kind waits) {
  SimConfig c;
  for (size_t i = 0; i < hosts; ++i) c.hosts.push_back({std::make_shared<HostSpec>(computer("")), "host" + std::to_string(i)});
  c.link = {.kind = "cable", .shape = {}, .bandwidth = 12.5e6, .latency = 1e-6};
  c.link.frame_overhead = 58;
  c.link.mtu = 1500;
  for (size_t r = 0; r < ranks; ++r) c.placement.push_back(r % hosts);
  (hosts > 1 ? c.remote : c.same) = std::move(route);
  for (size_t i = 0; i < hosts; ++i) c.positions.push_back(i);
  c.rank.same = c.rank.remote = {{0, 100'000, ProtocolRow::Eager}, {100'000, INT64_MAX, ProtocolRow::Rendezvous}};
  c.rank.send_cpu = c.rank.recv_cpu = {50 * kMicrosecond};
  c.rank.test.work = {5 * kMicrosecond};
  c.rank.recv_wait = {.kind = waits, .polls = 10, .poll_cost = 2 * kMicrosecond, .period = 3000 * kMicrosecond};
  c.rank.send_wait = c.rank.recv_wait;
  for (const char* role : {"proxy", "daemon"}) {
    c.idle[role] = {.kind = WaitPolicy::Poll, .period = 3000 * kMicrosecond};
    c.forward_cost[role] = {100 * kMicrosecond};
  }
  return c;
}

Trace job(const std::vector<std::string>& ranks) {
  std::vector<std::string> texts;
  std::vector<Source> sources;
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::string text, line;
    for (const char ch : "init;" + ranks[r] + ";finalize;") {
      if (ch != ';') {
        line += ch;
        continue;
      }
      text += (line.starts_with('#') ? "" : std::to_string(r) + " ") + line + "\n";
      line.clear();
    }
    texts.push_back(text);
  }
  for (size_t r = 0; r < texts.size(); ++r) sources.push_back({texts[r], "rank-" + std::to_string(r), static_cast<int32_t>(r)});
  return parse(sources, {});
}

std::string exchange(int me, const std::vector<int>& sizes) {
  std::string s;
  for (const int n : sizes) {
    const std::string peer = std::to_string(1 - me), size = std::to_string(n);
    const std::string out = "send " + peer + " 0 " + size + " 6", in = "recv " + peer + " 0 " + size + " 6";
    s += me == 0 ? out + ";" + in + ";" : in + ";" + out + ";";
    s += "isend " + peer + " 1 " + size + " 6;irecv -555 -444 " + size + " 6;waitall 2;";
    s += "ISsend " + peer + " 2 " + size + " 6;irecv " + peer + " 2 " + size + " 6;test " + peer + " " + std::to_string(me) + " 2;waitall 2;";
    s += "sendRecv " + size + " " + peer + " " + size + " " + peer + " 6 6;";
  }
  return s + "barrier;bcast 5000 0 6;allreduce 9000 100 6;alltoall 300 300 6 6";
}

int failures = 0;
bool simgrid = false;

/// The result of a run in full; the same run with what repeats left out must be equal.
SimResult both_ways(const std::string& what, SimConfig c, const Trace& t, uint64_t* left_out = nullptr) {
  const SimResult full = simulate(c, t);
  c.repetitions = true;
  const SimResult shortened = simulate(c, t);
  bool same = !shortened.state_incomplete && full.outcome == shortened.outcome && full.time == shortened.time && full.ranks == shortened.ranks &&
              full.count.done == shortened.count.done;
  Counters::each([&](auto field) { same = same && full.count.*field == shortened.count.*field; });
  if (left_out) *left_out += shortened.events_left_out;
  if (!same) {
    ++failures;
    std::fprintf(stderr, "engine_check: %s: %s after %.9g s with repetitions left out, in full %s after %.9g s\n", what.c_str(),
                 shortened.outcome.c_str(), to_s(shortened.time), full.outcome.c_str(), to_s(full.time));
  }
  return full;
}

void expect(const std::string& what, SimConfig c, const Trace& t, const std::string& outcome) {
  if (simgrid) c.network = SimConfig::Network::Simgrid;
  const SimResult r = simgrid ? simulate(c, t) : both_ways(what, c, t);
  const bool whole = outcome != "completed" || (r.count.messages == r.count.delivered && r.count.bytes == r.count.delivered_bytes);
  if (r.outcome == outcome && whole) return;
  ++failures;
  std::fprintf(stderr, "engine_check: %s: %s (%s), expected %s\n", what.c_str(), r.outcome.c_str(), r.detail.c_str(), outcome.c_str());
}

const std::vector<int> kSizes = {0, 1, 5000, 70'000, 300'000};

/// Exchanges that are interrupted on one side only, over every medium that can tell its state.
void repetitions() {
  uint64_t left_out = 0;
  for (const int size : {0, 8, 5000, 70'000})
    for (const int every : {7, 10, 17}) {
      const std::string out = "send 1 0 " + std::to_string(size) + " 6;", in = "recv 0 0 " + std::to_string(size) + " 6;";
      const std::string back = "send 0 0 " + std::to_string(size) + " 6;", answer = "recv 1 0 " + std::to_string(size) + " 6;";
      std::string first, second;
      for (int i = 0; i < 120; ++i) {
        if (i > 0 && i % every == 0) first += "compute 1e5;";
        first += out + answer;
        second += in + back;
      }
      first.pop_back(), second.pop_back();
      const Trace t = job({first, second});
      const std::string what = "every " + std::to_string(every) + "th of " + std::to_string(size) + " B, medium ";
      for (const auto wait : {WaitPolicy::Block, WaitPolicy::Spin}) {
        for (const Medium m : {Medium::Ring, Medium::Pool, Medium::Stream})
          both_ways(what + std::to_string(static_cast<int>(m)), room(1, 2, {hop(m)}, wait), t, &left_out);
        both_ways(what + "stream, two hosts", room(2, 2, {hop<StreamSpec>()}, wait), t, &left_out);
        const std::vector<HopSpec> daemons = {hop<StreamSpec>("rank", "daemon@src"), hop<DatagramSpec>("daemon@src", "daemon@dst"),
                                              hop<StreamSpec>("daemon@dst", "rank")};
        both_ways(what + "daemons", room(2, 2, daemons, wait), t, &left_out);
      }
    }
  if (left_out > 0) return;
  ++failures;
  std::fprintf(stderr, "engine_check: nothing was left out of loops\n");
}

void one_host() {
  const Trace pair = job({"# mark anatomy;" + exchange(0, kSizes) + ";# mark end", exchange(1, kSizes)});
  const Trace busy = job({"# mark anatomy;compute 3e6;isend 1 0 70000 6;compute 2e6;recv 1 0 70000 6;waitall 1;compute 1e6;# mark end",
                          "compute 2e6;isend 0 0 70000 6;compute 4e6;recv 0 0 70000 6;waitall 1;compute 1e6"});
  const Trace hungry = job({"recv 1 0 8 6", "bsend 0 1 5000 6"});
  const Trace cut = job({"send 1 0 9000 6", "sleep 0.5;recv 0 0 8 6"});
  const Trace three = job({"bcast 9000 2 6;gather 10 10 1 6 6;scan 8 0 6", "bcast 9000 2 6;gather 10 10 1 6 6;scan 8 0 6",
                           "bcast 9000 2 6;gather 10 10 1 6 6;scan 8 0 6"});
  for (const Medium m : {Medium::Ring, Medium::Pool, Medium::Stream})
    for (const auto wait : {WaitPolicy::Block, WaitPolicy::Spin, WaitPolicy::SpinYield})
      for (const bool anatomy : {false, true}) {
        const std::string what = "medium " + std::to_string(static_cast<int>(m)) + ", wait " + std::to_string(static_cast<int>(wait));
        SimConfig c = room(1, 2, {hop(m)}, wait);
        c.anatomy = anatomy;
        c.anatomy_from = "anatomy";
        c.anatomy_to = "end";
        expect(what, c, pair, "completed");
        SimConfig shared_bus = c;
        own(shared_bus.hosts[0]).cores = 2;
        shared_bus.memory_share = 0.7;
        expect(what + ", shared bus", shared_bus, busy, "completed");
        expect(what + ", no sender", c, hungry, "deadlock");
        expect(what + ", short buffer", c, cut, "aborted");
        c.limit_s = 0.01;
        expect(what + ", out of time", c, pair, "timeout");
        expect(what + ", three ranks", room(1, 3, {hop(m)}, wait), three, "completed");
      }
}

/// Queues in the caches of two cores, a separate copy buffer for long messages, direct copies for the longest.
void cores() {
  const Trace pair = job({"# mark anatomy;" + exchange(0, kSizes) + ";# mark end", exchange(1, kSizes)});
  for (const int other : {0, 1, 4})
    for (const int64_t direct : {200'000L, 1L})
      for (const bool anatomy : {false, true}) {
        RingSpec cells = hop<RingSpec>(), bulk = cells;
        cells.cores = cells.slots_of_sender = bulk.cores = bulk.one_message = true;
        cells.lines_in = cells.lines_out = 1;
        bulk.short_packet = 1024;
        bulk.short_until = 100'000;
        SimConfig c = room(1, 2, {cells}, WaitPolicy::Spin);
        HostSpec& h = own(c.hosts.front());
        h.cores = 8;
        h.l2_shared_by = 2;
        h.package_cores = 4;
        h.line_shared = kMicrosecond / 10;
        h.line_bus = kMicrosecond;
        h.fsb_rate = 100e6;
        c.cores = {0, other};
        c.same_bulk = {bulk};
        c.rank.same = {{0, 4096, ProtocolRow::Eager},
                       {4096, std::max<int64_t>(direct, 4096), ProtocolRow::Rendezvous},
                       {direct, INT64_MAX, ProtocolRow::Direct}};
        c.rank.lock.work = {kMicrosecond};
        c.anatomy = anatomy;
        c.anatomy_from = "anatomy";
        c.anatomy_to = "end";
        expect("cores 0 and " + std::to_string(other), c, pair, "completed");
      }
}

HopSpec curve() {
  CurveSpec h = hop<CurveSpec>();
  h.packet = 1 << 30;
  CurveSet set;
  set.classes = {0, 0};
  set.of = {{0}};
  set.tables.emplace_back().points = {{0, 5, 100, 5, 0, 0, 0, 0}, {100'000, 500, 9000, 500, 9000, 9000, 9000, 9000}};
  h.curve = std::make_shared<const CurveSet>(set);
  return h;
}

template <class Spec>
void locked(const Trace& pair, Spec h) {
  h.lock = h.until_taken = true;
  h.pack = h.unpack = 1;
  expect("lock and one buffer", room(1, 2, {h}, WaitKind::Block), pair, "completed");  // WaitPolicy::Block: gcc 12 fails in a template
}

/// One-sided operations, broadcasts by them and by reference, a lock around copies, deaths of processes.
void others() {
  const std::string put = "Put 1 0 5000 6;Get 1 0 0 6;Accumulate 0 0 7 6;Win_flush_all;Win_fence", idle = "Win_fence";
  const std::string roots = "bcast 5000 0 6;bcast 9000 1 6;bcast 0 2 6;bcast 70000 2 6";
  for (const std::string kind : {"binomial", "put_tree", "by_reference"})
    for (const int cores : {1, 3})
      for (const auto wait : {WaitPolicy::Block, WaitPolicy::SpinYield}) {
        SimConfig c = room(1, 3, {hop<RingSpec>()}, wait);
        own(c.hosts.front()).cores = cores;
        c.rma_same = {{.put_rate = 1e6, .get_rate = 1e6, .cpu = kMicrosecond, .latency = kMicrosecond, .piece = 4096}, true};
        c.collectives.prefer(Op::Bcast, {coll::Row{.algorithm = coll::find(Op::Bcast, kind)}});
        c.collectives.copies_root = c.collectives.copies_leaf = 1;
        expect("broadcast " + kind, c, job({put + ";" + roots, idle + ";" + roots, "compute 1e5;" + idle + ";" + roots}), "completed");
        expect("one fence", c, job({put, "compute 1", "compute 1"}), "deadlock");
        for (const Ps at : {Ps{0}, 400 * kMicrosecond, 5'000 * kMicrosecond}) {
          SimConfig killed = c;
          killed.kills = {{"rank 1", at}};
          const std::string late = ";compute 1e6;barrier";
          expect("killed rank", killed, job({put + ";" + roots + late, idle + ";" + roots + late, idle + ";" + roots + late}), "deadlock");
        }
      }
  const Trace pair = job({exchange(0, kSizes), exchange(1, kSizes)});
  expect("curve", room(1, 2, {curve()}, WaitPolicy::Spin), pair, "completed");
  locked(pair, hop<RingSpec>());
  PoolSpec pool = hop<PoolSpec>();
  pool.hold_unexpected = false;  // otherwise unexpected messages would block their sender
  locked(pair, pool);
}

/// Every kind of link, one rail and several, with cross traffic and with components that fail and recover.
void links(const Trace& pair) {
  const HopSpec card = hop<DmaSpec>();
  const std::vector<std::pair<std::string, std::vector<unsigned long>>> kinds = {
      {"cable", {}}, {"hub", {}}, {"switch", {}}, {"torus", {2, 2}}, {"fat-tree", {2, 2, 1, 2, 1, 2}}, {"wan", {0, 1, 0, 1}}};
  for (const auto& [kind, shape] : kinds)
    for (const int rails : {1, 2, 3})
      for (const HopSpec& h : {HopSpec(hop<StreamSpec>()), card}) {
        SimConfig c = room(2, 2, {h}, WaitPolicy::Spin);
        for (NamedHost& host : c.hosts) own(host).bus_rate = 20e6;
        c.link.kind = kind;
        c.link.shape = shape;
        c.link.wan_bandwidth = 2e6;
        c.link.wan_latency = 3e-3;
        c.link.rails = static_cast<size_t>(rails);
        c.link.rail_policy = rails == 3 ? RailPolicy::Stripe : RailPolicy::Pair;
        expect(kind + " of " + std::to_string(rails), c, pair, "completed");
        const bool others = kind != "cable";
        if (others) c.positions = {0, 1, 2, 3};
        const int far = others ? 3 : 1;
        c.traffic = {{TrafficSpec::Constant, far, 0, 4e5, 1500, 0, 0},
                     {TrafficSpec::Poisson, -1, -1, 2e5, 700, 0, 0},
                     {TrafficSpec::OnOff, 0, far, 3e5, 1500, 2'000 * kMicrosecond, 5'000 * kMicrosecond},
                     {TrafficSpec::Constant, others ? 2 : 0, far, others ? 2e7 : 1e5, 30'000, 0, 0}};
        expect("traffic on a " + kind, c, pair, "completed");
        if (simgrid) continue;
        const auto late = [](int ms) { return ms * 1000 * kMicrosecond; };
        c.failures = {{Failure::Host, 2, 0, late(1), late(9), "link of another"}, {Failure::Host, 1, 0, late(20), kNever, "link host1"}};
        if (rails > 1) c.failures.push_back({Failure::Rail, 1, 0, late(15), late(30), "rail"});
        if (kind == "wan") c.failures.push_back({Failure::Wan, 0, 1, late(18), late(19), "wan"});
        if (kind == "hub" || kind == "switch") c.failures.push_back({Failure::Whole, 0, 0, late(18), late(19), kind});
        if (kind == "fat-tree") c.failures.push_back({Failure::Switch, 2, 1, late(18), late(19), "switch 2.1"});
        if (kind == "torus" || kind == "cable") c.failures.push_back({Failure::Pair, 0, 1, late(18), late(19), "link"});
        c.limit_s = 1;
        const SimResult r = simulate(c, pair);
        if (r.outcome != "completed" && r.count.lost > 0 && r.detail.find(" down from 0.0") != std::string::npos) continue;
        ++failures;
        std::fprintf(stderr, "engine_check: what is down on a %s: %s (%s), %lld lost\n", kind.c_str(), r.outcome.c_str(), r.detail.c_str(),
                     static_cast<long long>(r.count.lost));
      }
}

/// A link that fails repeatedly: protocols that retransmit deliver every byte or give up; the others hang.
void losses(const Trace& pair, const std::vector<HopSpec>& proxies, const std::vector<HopSpec>& daemons) {
  StreamSpec polled = hop<StreamSpec>(), credits = polled;
  const DmaSpec card = hop<DmaSpec>();
  polled.io = SocketIo::Nonblocking;
  polled.packet = 1 << 30;
  polled.first_read = 1024;
  credits.credits = 4;
  credits.nagle = true;
  StreamSpec async = polled;
  async.io = SocketIo::Async;
  Rng rng(5);
  for (const auto& route : {std::vector<HopSpec>{hop<StreamSpec>()}, {polled}, {async}, {credits}, {card}, proxies, daemons})
    for (int k = 0; k < 12; ++k) {
      SimConfig c = room(2, 2, route, WaitPolicy::Block);
      c.anatomy = k == 0;
      c.anatomy_from = "anatomy";
      c.anatomy_to = "end";
      c.timeline.limit = k == 1 ? 50 : 0;
      Ps t = 0;
      for (int i = 0; i < 30; ++i) {
        const Ps from = t + to_ps(rng.uniform() * (k < 6 ? 0.02 : 0.3));
        t = from + to_ps(rng.uniform() * (k % 3 == 0 ? 0.0005 : 0.05));
        c.failures.push_back({Failure::Host, static_cast<size_t>(k) % 2, 0, from, i == 29 && k % 4 == 3 ? kNever : t, "link"});
      }
      if (k == 5) c.kills = {{"rank 1", to_ps(0.1)}};
      const SimResult r = simulate(c, pair);
      const bool whole = r.count.messages == r.count.delivered && r.count.bytes == r.count.delivered_bytes;
      const bool may_end_badly = k % 4 == 3 || k == 5 || std::holds_alternative<DmaSpec>(route.front());
      if (r.outcome == "completed" ? whole : may_end_badly) continue;
      ++failures;
      std::fprintf(stderr, "engine_check: losses %d over %zu hops: %s (%s)\n", k, route.size(), r.outcome.c_str(), r.detail.c_str());
    }
}

/// Jobs that share hosts: started late, restarted, killed, out of buffer space, losing messages; each ends without ending another.
void jobs(const Trace& pair, const std::vector<HopSpec>& proxies, const std::vector<HopSpec>& daemons) {
  const Trace little = job({"send 1 0 100 6;compute 1e4;recv 1 0 5000 6", "recv 0 0 100 6;send 0 0 5000 6"});
  const Trace stuck = job({"recv 1 0 100 6", "recv 0 0 100 6"});
  PoolSpec pool = hop<PoolSpec>();
  pool.pool = 100;
  pool.exhausted_aborts = true;
  for (int k = 0; k < 12; ++k) {
    SimConfig c = room(2, 2, k % 2 == 0 ? proxies : daemons, k % 3 == 0 ? WaitPolicy::Spin : WaitPolicy::Block);
    c.same = {hop<PoolSpec>()};
    c.timeline.limit = 100;
    c.profile = true;
    std::vector<const Trace*> traces;
    const auto add = [&](const std::string& name, const Trace& t, Ps start, bool background) -> JobConfig& {
      JobConfig j = c;
      j.name = name;
      j.start = start;
      j.background = background;
      c.further.push_back(j);
      traces.push_back(&t);
      return c.further.back();
    };
    add("again", little, 1000 * kMicrosecond, true);
    add("late", pair, 50'000 * kMicrosecond, false);
    add("stuck", stuck, 0, k % 4 == 1);
    JobConfig& full = add("full", pair, 3 * kMicrosecond, false);
    full.placement = {0, 0};
    full.same = {pool};
    c.kills = {{"rank 1 of late", (k + 1) * 7'000 * kMicrosecond + 50'000 * kMicrosecond}, {"rank 0 of again", 900'000'000 * kMicrosecond}};
    if (k > 5) c.failures = {{Failure::Host, 1, 0, to_ps(0.1), k > 9 ? kNever : to_ps(0.2), "link"}};
    const Trace& first = k % 4 == 2 ? stuck : pair;
    const SimResult r = simulate(c, first, traces);
    const std::string want = k % 4 == 2 ? "deadlock" : k > 9 ? "aborted" : "completed";
    const bool well = r.outcome == want && r.further[0].outcome == "ended" && r.further[1].outcome != "completed" &&
                      r.further[2].outcome == "deadlock" && r.further[3].outcome == "aborted";
    if (well) continue;
    ++failures;
    std::fprintf(stderr, "engine_check: jobs %d: %s (%s)", k, r.outcome.c_str(), r.detail.c_str());
    for (const JobResult& j : r.further) std::fprintf(stderr, "; %s (%s)", j.outcome.c_str(), j.detail.c_str());
    std::fprintf(stderr, "\n");
  }
}

void network(int which) {
  DatagramSpec bad = hop<DatagramSpec>("daemon@src", "daemon@dst");
  bad.packet = 16384;
  const std::vector<HopSpec> proxies = {hop<RingSpec>("rank", "proxy@src"), hop<StreamSpec>("proxy@src", "proxy@dst"),
                                        hop<RingSpec>("proxy@dst", "rank")};
  const Trace pair = job({"# mark anatomy;" + exchange(0, kSizes) + ";# mark end", exchange(1, kSizes)});
  const auto daemons = [&bad] { return std::vector<HopSpec>{hop<StreamSpec>("rank", "daemon@src"), bad, hop<StreamSpec>("daemon@dst", "rank")}; };
  switch (which) {
    case 0:
      expect("stream", room(2, 2, {hop<StreamSpec>()}, WaitPolicy::Spin), pair, "completed");
      break;
    case 1:
      expect("proxies", room(2, 2, proxies, WaitPolicy::Block), pair, "completed");
      break;
    case 2:
      bad.loss = bad.duplicate = bad.reorder = 0.1;
      bad.reorder_delay = 20'000 * kMicrosecond;
      expect("lossy datagrams", room(2, 2, daemons(), WaitPolicy::Block), pair, "completed");
      break;
    case 3:
    case 4: {
      StreamSpec h = hop<StreamSpec>();
      h.packet = 1 << 30;
      h.io = which == 3 ? SocketIo::Nonblocking : SocketIo::Async;
      h.first_read = 1024;
      SimConfig c = room(2, 2, {h}, WaitPolicy::Spin);
      c.rank.recv_wait.look_every = which == 3 ? 1 : 16;
      expect(which == 3 ? "polled sockets" : "completion port", c, pair, "completed");
      break;
    }
    case 6:
    case 7: {
      DmaSpec h = hop<DmaSpec>();
      h.pieces = 8;
      h.pio_limit = 100;
      h.pin = h.pin_page = {kMicrosecond};
      h.cpu_driven = which == 7;
      SimConfig c = room(2, 2, {h}, WaitPolicy::Spin);
      c.rma_remote = {{.put_rate = 1e6, .get_rate = 1e6, .cpu = kMicrosecond, .latency = kMicrosecond, .piece = 4096}, true};
      const std::string put = "Put 1 0 70000 6;Get 1 0 0 6;Accumulate 1 0 7 6;Put 1 0 70000 6;Win_fence;";
      expect("card", c, job({put + exchange(0, kSizes), "Win_fence;" + exchange(1, kSizes)}), "completed");
      break;
    }
    case 8: {
      StreamSpec h = hop<StreamSpec>();
      h.io = SocketIo::Async;
      h.first_read = 1024;
      SimConfig c = room(2, 2, {h}, WaitPolicy::Spin);
      c.kills = {{"rank 1", 20'000 * kMicrosecond}};
      expect("dead peer", c, job({exchange(0, kSizes), "compute 1e6;" + exchange(1, kSizes)}), "deadlock");
      break;
    }
    case 9:
      links(pair);
      break;
    case 10:
      losses(pair, proxies, daemons());
      break;
    case 11:
      jobs(pair, proxies, daemons());
      break;
    default:
      bad.loss = 1;
      expect("no network", room(2, 2, daemons(), WaitPolicy::Block), pair, "aborted");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "network")
    simgrid = argc > 3, network(std::atoi(argv[2]));
  else
    one_host(), cores(), others(), repetitions();
  if (failures == 0) std::printf("engine_check: no fault\n");
  return failures == 0 ? 0 : 1;
}
