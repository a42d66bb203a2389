// One simulation: what a compiled model, a platform and a trace say, put together and run.
#pragma once
#include "diagnosis.hpp"
#include "traffic.hpp"

namespace retrompi {

/// What Python hands over: plain rows, no behaviour.
struct SimConfig {
  std::vector<HostSpec> hosts;
  LinkSpec link;
  bool stripe = false;   // rails: all of them carry what goes between two hosts, else one that the pair chooses
  bool simgrid = false;  // the reference carries what crosses the wire
  int64_t frame_overhead = 0, mtu = 1500;
  // Host -> its place in the machine room (a torus has places that no rank uses); then those of machines that only have traffic.
  std::vector<size_t> positions;
  std::vector<TrafficSpec> traffic;
  std::vector<Failure> failures;
  std::vector<size_t> placement;      // rank -> host
  std::vector<int> cores;             // rank -> core it is pinned to; empty: wherever the scheduler puts it
  std::vector<HopSpec> same, remote;  // the hops between two ranks of one host, of two hosts
  std::vector<HopSpec> same_bulk;     // the data of a rendezvous between two ranks of one host, where they go another way
  RankSpec rank;
  RmaSpec rma_same, rma_remote;
  coll::Table collectives;
  bool free_wildcards = false;
  std::map<std::string, WaitPolicy> idle;  // proxy, daemon
  std::map<std::string, Ps> forward_cost;
  std::vector<KernelRow> kernels;
  int64_t unexpected_limit = 0;
  double compute_scale = 1;
  double memory_share = 0;  // of the program's computation, 0..1: waiting for the memory bus
  uint64_t seed = 1;
  double limit_s = 0;  // simulated seconds after which a run is given up; 0: none
  bool anatomy = false;
  int32_t anatomy_rank = 0;
  std::string anatomy_from, anatomy_to;           // labels of marks
  std::vector<std::pair<std::string, Ps>> kills;  // process, and when somebody ends it
  TimelineSpec timeline;
  bool profile = false;  // the calls summed up
};

struct SimResult {
  std::string outcome = "completed", detail;
  Ps time = 0;
  Ps end = 0;  // of the simulation: the last thing that happened
  Counters count;
  uint64_t events = 0;
  struct RankRow {
    int32_t rank;
    std::string host;
    Ps time, mpi, compute, cpu;
    int64_t sends, receives, bytes_sent, bytes_received;
  };
  std::vector<RankRow> ranks;
  std::vector<MarkTime> marks;
  struct WaitRow {
    int32_t rank;
    uint32_t line;
    std::string file, action, on;
  };
  std::vector<WaitRow> waits;
  std::vector<coll::Table::Used> collectives;
  std::vector<Anatomy::Row> anatomy;
  Ps anatomy_total = 0;
  Diagnosis why;  // of a run that did not complete
  std::shared_ptr<const Timeline> timeline;
  std::shared_ptr<const CallProfile> profile;
  struct TrafficRow {
    int64_t frames, arrived, bytes, dropped, lost;
  };
  std::vector<TrafficRow> traffic;  // as in SimConfig
  std::string failed;               // Wire::failed
};

SimResult simulate(const SimConfig& config, const Trace& trace);

}  // namespace retrompi
