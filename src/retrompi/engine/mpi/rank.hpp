// A rank: reads its trace and executes the MPI calls by the runtime's protocol. Each part has one task: the sending and the receiving side
// of point-to-point messages, the requests that a trace names, one-sided operations, and collectives.
#pragma once
#include "channel/chan.hpp"
#include "channel/channel_map.hpp"
#include "mpi/collectives.hpp"
#include "mpi/job.hpp"
#include "mpi/one_sided.hpp"
#include "mpi/receive.hpp"
#include "mpi/requests.hpp"
#include "mpi/send.hpp"

namespace retrompi {

/// What a rank has beside what every process has.
class RankParts {
 public:
  Job& job;
  const RankSpec& spec;
  const int32_t id;
  ChannelMap out;   // first hop towards each rank
  ChannelMap bulk;  // the same for the data of a rendezvous; null: the same path as everything else
  Ps end = 0;
  Ps call_began = 0;                 // of `now_at`
  RankCounters count;                // its times are those of the calls that have returned
  const Action* now_at = nullptr;    // the action being executed, at `place_`; kept when an error has ended the coroutine
  const Request* awaited = nullptr;  // by a blocking call
  bool finished = false;

  SendSide sender;
  ReceiveSide receiver;
  RequestTable requests;
  OneSided one_sided;
  Collectives collectives;

 protected:
  RankParts(Rank& rank, Job& job, const RankSpec& spec, int32_t id)
      : job(job), spec(spec), id(id), sender(rank), receiver(rank), requests(rank), one_sided(rank), collectives(rank) {}

 private:
  friend class Rank;
  uint32_t gated_ = 0;                // line of the call whose turn it waits for
  ActionList::const_iterator place_;  // in its trace
  size_t index_ = 0;                  // of `place_`
  size_t left_out_ = 0;               // actions to be left out before the next one
  int32_t tests_ = 0;                 // test calls so far
};

class Rank final : public Proc, public RankParts {
 public:
  Rank(Job& job, World& w, Host& h, size_t host_index, int32_t id, const RankSpec& spec);
  [[nodiscard]] int32_t rank() const override { return id; }
  void fetch() const override {
    fetch_lines(awaited, 2);
    requests.fetch();
  }
  /// Executes its part of the trace, then continues to answer until the job is over.
  Task main();
  Task handle(Packet p) override;
  bool leave_in_pool(const Packet& p) override { return receiver.leave_in_pool(p); }
  void sent(Message& m) override { sender.sent(m); }
  void state(State& s) const override;
  /// The place of the present action in its trace. Actions that are left out count from the instant at which it is decided, though a rank
  /// that is in a call then goes on in the list only when that returns: the action under way is like the one at this place.
  [[nodiscard]] size_t place() const { return index_ + left_out_; }
  [[nodiscard]] const Action& action() const { return *place_; }
  /// So many actions that follow the present one are left out: they have been accounted for.
  void leave_out(size_t actions) { left_out_ += actions; }

  /// Whether it waits for its turn in the order of calls that the run follows; with a line: to begin the call there.
  [[nodiscard]] bool at_gate(uint32_t line = 0) const { return gated_ != 0 && (line == 0 || gated_ == line); }

  // ---- the library
  /// Work of the library in one call, under its lock.
  template <class T>
  Task library_call(const DeclaredNumber<RankSpec, T>& cost) {
    const CallCost call = spec.*cost.member;
    if (!spec.lock.some() && !call.some()) return {};
    return locked_call(host.work_of(spec, cost), host.time(call.system));
  }
  /// Takes in everything that has arrived, without waiting.
  Task progress();
  Task wait(Request& r);
  /// As Proc::until; collectives in progress advance meanwhile.
  template <class F>
  Task until(F cond, WaitPolicy policy, bool progress) {
    return collectives.idle() ? Proc::until(cond, policy, progress) : until_driving(cond, policy, progress);
  }
  /// What MPI_Finalize waits for.
  Task finish_pending();
  [[nodiscard]] bool near(int32_t other) const { return job.rank(other).host_index == host_index; }  // on the same host
  /// Copies between two places of the user's or the library's memory.
  [[nodiscard]] CopyCost plain_copy(int64_t bytes, double copies = 1, double passing = 0) const {
    const double both = 2.0 * static_cast<double>(bytes) + passing;
    const CopySide side{.near = both, .set = both};
    return host.copy_cost(bytes, side, side).times(copies);
  }
  [[nodiscard]] const Staging& staging(int32_t peer) const { return near(peer) ? spec.staging_same : spec.staging_remote; }
  /// Packs or unpacks a message: `copies` of it and work for each byte. What its channel holds of it passes the cache as well.
  Task stage(const Message& m, double copies, double byte);
  /// Conversion of data exchanged with `peer`, if its byte order differs.
  [[nodiscard]] Ps conversion(int32_t peer, int64_t bytes) const;
  /// ConfigError about an action of this rank.
  [[noreturn]] void fail(const Action& a, const std::string& why) const;

 private:
  template <class F>
  Task until_driving(F cond, WaitPolicy policy, bool progress) {
    while (!cond()) {
      if (progress && collectives.can_advance())
        co_await collectives.advance_all();
      else if (progress && !inbox.empty())
        co_await absorb();
      else
        co_await thread.wait(policy);
    }
  }
  Task wait_open(Request& r);
  Task locked_call(Charge work, Charge system);
  Task handle_with_work(Packet p, bool called);
  Task handle_now(const Packet& p);

  void advance();
  void leave_out_now();
  Task turn(uint32_t line);
};

/// Whether an action is the program's own work, not a call of the library.
inline bool computation(Op op) { return op == Op::Compute || op == Op::Kernel || op == Op::Sleep; }
/// Executes an action, except marks and actions that take no time (actions.cpp).
Task execute(Rank& rank, const Action& a);
/// The source of a receive or probe: as recorded, unless the run leaves wildcards free.
[[nodiscard]] action::Envelope wanted(const Job& job, const Action& a);
/// Computes, split into parts, because the neighbours on the memory bus may slow each of them down (actions.cpp).
Task compute(Rank& rank, double flops);
/// How members agree on a new communicator (communicators.cpp).
Task make_communicator(Rank& rank, const Action& a);
/// Steps of the library over one communicator.
struct OverComm {
  int32_t comm = 0;
  coll::Steps steps;
};
[[nodiscard]] std::vector<OverComm> communicator_steps(Rank& rank, const Action& a);

/// What a blocked rank waits for (awaits.cpp).
struct Awaited {
  int32_t rank = 0;  // of the world; ANY_SOURCE: any rank
  enum What : uint8_t { Message, Receiver, Collective, Lock } what = Message;
  int32_t tag = 0;  // Message, Receiver: ANY_TAG or the requested tag
  int32_t comm = 0;
  int64_t bytes = 0;  // Receiver: of the message to be received
};
[[nodiscard]] std::vector<Awaited> awaits(const Rank& rank);  // empty: nothing that another rank could provide
[[nodiscard]] std::string waits_for(const Rank& rank);        // the same in words

}  // namespace retrompi
