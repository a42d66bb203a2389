// One simulation: a compiled model, a platform and a trace, put together and run.
#pragma once
#include "diagnosis/diagnosis.hpp"
#include "diagnosis/message_path_result.hpp"
#include "network/traffic.hpp"
#include "record/path_graph.hpp"

namespace retrompi {

/// One job as handed over by Python: plain data, no behaviour. Hosts are named by their index in the simulation.
struct JobConfig {
  std::string name;                   // of a further job; the names of its processes end with it
  Ps start = 0;                       // of a further job
  bool background = false;            // restarted whenever it ends, until the first job is over
  std::vector<size_t> placement;      // rank -> host
  std::vector<int> cores;             // rank -> core it is pinned to; empty: wherever the scheduler puts it
  std::vector<HopSpec> same, remote;  // the hops between two ranks of one host, of two hosts
  std::vector<HopSpec> same_bulk;     // the data of a rendezvous between two ranks of one host, where they take another path
  RankSpec rank;
  RmaSpec rma_same, rma_remote;
  coll::Table collectives;
  bool free_wildcards = false;
  std::vector<CallOrder::Call> order;      // in which calls begin; empty: as it happens
  std::map<std::string, WaitPolicy> idle;  // proxy, daemon
  std::map<std::string, Work> forward_cost;
  std::vector<KernelRow> kernels;
  int64_t unexpected_limit = 0;
  double compute_scale = 1;
  double memory_share = 0;  // of the program's computation, 0..1: waiting for the memory bus
};

/// A host: those that are alike share the values.
struct NamedHost {
  std::shared_ptr<const HostSpec> spec;
  std::string name;
};

/// The platform, the options of the simulation, and the first job.
struct SimConfig : JobConfig {
  std::vector<NamedHost> hosts;
  LinkSpec link;
  enum class Network : uint8_t { Native, Fluid, Simgrid } network = Network::Native;
  std::string simgrid_model;  // one of SimGrid's network models with its own parameters; empty: plain flows
  // Host -> its place on the platform (a torus has places that no rank uses); then those of machines that only have traffic.
  std::vector<size_t> positions;
  std::vector<TrafficSpec> traffic;
  std::vector<Failure> failures;
  uint64_t seed = 1;
  double limit_s = 0;  // simulated seconds after which a run is given up; 0: none
  LimitSpec limits;
  bool anatomy = false;
  int32_t anatomy_rank = 0;
  std::string anatomy_from, anatomy_to;           // labels of marks
  std::vector<DirectionSpec> directions;          // of a message path, one after the other; none: no path is recorded
  std::vector<std::pair<std::string, Ps>> kills;  // process, and when it is killed
  TimelineSpec timeline;                          // of the first job
  bool profile = false;                           // sum up the first job's calls
  bool critical_path = false;                     // of the first job
  std::string trace_events;                       // a file to which every event is written; empty: none
  bool repetitions = false;                       // periods that only repeat may be left out
  std::vector<JobConfig> further;                 // jobs that share the hosts and the wire
};

/// The result of one job.
struct JobResult {
  Outcome outcome = Outcome::Completed;
  std::string detail;
  Ps start = 0;
  Ps time = 0;       // since its start; of a background job: of its completed runs
  int64_t runs = 0;  // of a background job: how many completed
  Counters count;
  std::vector<RankRow> ranks;  // `host` is an index
  std::vector<WaitRow> waits;
  std::vector<coll::Table::Used> collectives;
  Diagnosis why;                       // of one that did not complete
  std::vector<std::string> leftovers;  // of one that completed
};

/// The result of the first job and of everything else requested.
struct SimResult : JobResult, Totals {
  Ps end = 0;                     // of the first job: its last event
  bool state_incomplete = false;  // what was compared to find repetitions
  bool unconfirmed = false;       // whether what was left out was a repetition: nothing of this result is to be believed
  std::vector<MarkTime> marks;
  std::vector<Anatomy::Row> anatomy;
  Ps anatomy_total = 0;
  std::shared_ptr<const MessagePathResult> message_path;
  std::shared_ptr<const Timeline> timeline;
  std::shared_ptr<const CallProfile> profile;
  std::vector<CriticalPath::Piece> critical_path;  // of a run that completed
  std::vector<std::string> critical_names;         // of those on it
  std::shared_ptr<const PathGraph> path_graph;     // and all that it was the longest path of
  std::vector<JobResult> further;
  std::vector<TrafficRow> traffic;  // as in SimConfig
  std::string failed;               // Wire::failed
};

/// `further`: the traces of the further jobs.
SimResult simulate(const SimConfig& config, const Trace& trace, const std::vector<const Trace*>& further = {});

/// One step of a collective; `kind` is a coll::Step::Kind, `peer` a rank of the world.
struct LibraryStep {
  int32_t kind = 0, peer = 0, slot = 0;
  int64_t bytes = 0;
};
/// A call's messages over one communicator.
struct LibraryCall {
  int32_t context = 0, tag = 0;
  std::vector<LibraryStep> steps;
};
struct LibraryLine {
  uint32_t line = 0;
  std::vector<LibraryCall> calls;
};
/// What the library does for the collectives and new communicators of each rank; nothing is simulated (plan.cpp).
std::vector<std::vector<LibraryLine>> library_steps(const SimConfig& config, const Trace& trace);

}  // namespace retrompi
