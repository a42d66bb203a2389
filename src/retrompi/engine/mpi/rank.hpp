// A rank: reads its trace and does what MPI says, by the runtime's protocol. Its parts each do one thing: the sending and the receiving side
// of point-to-point messages, the requests that a trace names, one-sided operations, and collectives.
#pragma once
#include "mpi/collectives.hpp"
#include "mpi/job.hpp"
#include "mpi/one_sided.hpp"
#include "mpi/receive.hpp"
#include "mpi/requests.hpp"
#include "mpi/send.hpp"

namespace retrompi {

class Rank final : public Proc {
 public:
  Rank(Job& job, World& w, Host& h, size_t host_index, int32_t id, const RankSpec& spec);
  /// Carries out its part of the trace, then goes on answering until the job is over.
  Task main();
  Task handle(Packet p) override;
  bool leave_in_pool(const Packet& p) override { return receiver.leave_in_pool(p); }
  void sent(Message& m) override { sender.sent(m); }

  // ---- the library
  /// Work of the library in one call, with its lock around it.
  Task library_call(Ps cost);
  /// Takes in whatever is there, without waiting.
  Task progress();
  Task wait(Request& r);
  /// As Proc::until; collectives under way go on meanwhile.
  template <class F>
  Task until(F cond, WaitPolicy policy, bool progress) {
    return collectives.idle() ? Proc::until(cond, policy, progress) : until_driving(cond, policy, progress);
  }
  /// What MPI_Finalize waits for.
  Task finish_pending();
  [[nodiscard]] bool near(int32_t other) const { return job.rank(other).host_index == host_index; }  // on the same host
  /// Copies between two places of the user's or the library's memory.
  [[nodiscard]] Ps plain_copy(int64_t bytes, double copies = 1) const {
    const double set = 2.0 * static_cast<double>(bytes);
    return static_cast<Ps>(copies * static_cast<double>(host.copy_time(bytes, set, set)));
  }
  /// Conversion of data that go to or come from `peer`, of another byte order.
  [[nodiscard]] Ps conversion(int32_t peer, int64_t bytes) const;
  /// ConfigError about an action of this rank.
  [[noreturn]] void fail(const Action& a, const std::string& why) const;

  Job& job;
  const RankSpec& spec;
  const int32_t id;
  ChannelMap out;   // first hop towards each rank
  ChannelMap bulk;  // the same for the data of a rendezvous; null: as everything else
  Ps end = 0, mpi = 0, compute = 0;
  int64_t sends = 0, receives = 0, bytes_sent = 0, bytes_received = 0;
  const Action* now_at = nullptr;    // the action being executed; stands where `place_` is, also when an error has ended the coroutine
  const Request* awaited = nullptr;  // by a blocking call
  bool finished = false;

  SendSide sender;
  ReceiveSide receiver;
  RequestTable requests;
  OneSided one_sided;
  Collectives collectives;

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
  Task locked_call(Ps cost);
  Task handle_with_work(Packet p, bool called);
  Task handle_now(const Packet& p);

  ActionList::const_iterator place_;  // in its trace
  int32_t tests_ = 0;                 // calls that only looked
};

/// What an action does; marks and what takes no time are not for here (actions.cpp).
Task execute(Rank& rank, const Action& a);
/// Whom a receive or probe is from: as recorded, unless the run leaves wildcards free.
[[nodiscard]] action::Envelope wanted(const Job& job, const Action& a);
/// Computes; cut into parts, because the neighbours on the memory bus may stretch each of them (actions.cpp).
Task compute(Rank& rank, double flops);
/// How members agree on a new communicator (communicators.cpp).
Task make_communicator(Rank& rank, const Action& a);

/// What a rank that cannot go on waits for (awaits.cpp).
struct Awaited {
  int32_t rank = 0;  // of the world; ANY_SOURCE: anybody
  enum What : uint8_t { Message, Receiver, Collective, Lock } what = Message;
  int32_t tag = 0;  // Message, Receiver: ANY_TAG or the tag asked for
  int32_t comm = 0;
  int64_t bytes = 0;  // Receiver: of the message that is to be taken
};
[[nodiscard]] std::vector<Awaited> awaits(const Rank& rank);  // empty: nothing that another rank could give
[[nodiscard]] std::string waits_for(const Rank& rank);        // the same in words

}  // namespace retrompi
