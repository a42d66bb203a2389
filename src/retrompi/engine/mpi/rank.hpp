// A rank: reads its trace and does what MPI says, by the runtime's protocol.
#pragma once
#include <optional>
#include <unordered_map>

#include "channel/proc.hpp"
#include "mpi/coll.hpp"
#include "trace/trace.hpp"

namespace retrompi {

struct Request {
  enum Kind : uint8_t { Send, Recv, Collective, OneSided } kind = Send;
  int32_t peer = 0, tag = 0, ctx = 0;  // a receive's wildcards stay as asked for
  int64_t bytes = 0;
  Op mode = Op::Send;
  uint32_t line = 0;  // of the call that began it
  bool done = false, persistent = false, active = true, detached = false;
  Message* m = nullptr;
  int32_t src = 0, dst = 0;  // the key under which a trace files it
  Queued<Request> queued;    // while it is posted
  [[nodiscard]] int32_t envelope_source() const { return peer; }
};

/// Which protocol a message of a size range follows.
struct ProtocolRow {
  int64_t from = 0, to = 0;  // payload, from <= bytes < to
  /// Direct: the receiver is told where the data lie and copies them itself.
  enum Kind : uint8_t { Eager, Rendezvous, Direct } kind = Eager;
};

struct RankSpec {
  std::vector<ProtocolRow> same, remote;
  Ps send_cpu = 0, recv_cpu = 0, test_cpu = 0;  // one call of the library, on the reference host
  // Between hosts of different byte order each end converts: so many picoseconds a byte, and so much for each buffer of it.
  double convert_byte = 0;
  int64_t convert_buffer = 0;
  Ps convert_call = 0;
  Ps lock = 0;         // its lock, taken and released in each
  Ps direct_call = 0;  // the system's part of a direct copy beside a bare system call
  WaitPolicy recv_wait, send_wait;
};

struct MarkTime {
  int32_t rank, label;
  Ps time;
};

/// What a named piece of computation takes: ``seconds[host]`` at one vector length.
struct KernelRow {
  std::string name;
  int64_t n;
  std::vector<double> seconds;
};

/// A communicator as the engine uses it: one for all its members; of an intercommunicator one for each side.
struct Group {
  int32_t comm = 0;            // index in Trace::comms
  int32_t n = 0, remote = 0;   // members, those of the other side
  bool low = true;             // of two sides the first
  std::vector<int32_t> world;  // rank -> rank of the world, the other side's after the own; empty: the same
  std::vector<int32_t> host;   // rank -> host index
  [[nodiscard]] int32_t of_world(int32_t rank) const { return rank < 0 || world.empty() ? rank : world[static_cast<size_t>(rank)]; }
};
/// Matching keeps communicators apart, in each the messages of collectives from the program's, and those of windows from all others.
inline int32_t program_context(int32_t comm) { return 2 * comm; }
inline int32_t collective_context(int32_t comm) { return 2 * comm + 1; }
inline int32_t window_context(int32_t window) { return -1 - window; }

/// A collective under way: the steps of its algorithm and the requests that they have started.
struct Running {
  coll::Steps steps;
  const Group* group = nullptr;
  int32_t tag = 0;
  bool held = false;  // at a step that waits
  size_t passed = 0;  // WaitAll: of `open`, how many are done
  struct Open {
    int32_t slot;
    Request* r;
  };
  std::vector<Open> open;
  Request* request = nullptr;   // non-blocking: the program's
  double amount = 0;            // flops after it
  std::vector<int64_t> counts;  // non-blocking: what Args::out and in name
};

/// What a rank that cannot go on waits for.
struct Awaited {
  int32_t rank = 0;  // of the world; ANY_SOURCE: anybody
  enum What : uint8_t { Message, Receiver, Collective, Lock } what = Message;
  int32_t tag = 0;  // Message, Receiver: ANY_TAG or the tag asked for
  int32_t comm = 0;
  int64_t bytes = 0;  // Receiver: of the message that is to be taken
};

class Job;

class Rank final : public Proc {
 public:
  Rank(Job& job, World& w, Host& h, size_t host_index, int32_t id, const RankSpec& spec);
  Task main();
  Task handle(Packet p) override;
  bool leave_in_pool(const Packet& p) override;
  void sent(Message& m) override;

  const int32_t id;
  ChannelMap out;   // first hop towards each rank
  ChannelMap bulk;  // the same for the data of a rendezvous; null: as everything else
  Ps end = 0, mpi = 0, compute = 0;
  int64_t sends = 0, receives = 0, bytes_sent = 0, bytes_received = 0;
  const Action* now_at = nullptr;  // the action being executed; stands where `place_` is, also when an error has ended the coroutine
  bool finished = false;
  [[nodiscard]] std::vector<Awaited> awaits() const;  // empty: nothing that another rank could give
  [[nodiscard]] std::string waits_for() const;        // the same in words

 private:
  friend class Job;
  friend class Inquest;
  // ---- point to point (rank.cpp)
  Task isend(int32_t dst, int32_t tag, int32_t ctx, int64_t bytes, Op mode, Request& r);
  Task irecv(int32_t src, int32_t tag, int32_t ctx, int64_t bytes, Request& r);
  Task wait(Request& r);
  Task wait_open(Request& r);
  Task isend_working(Message& m, bool buffered);  // with work of the library before the message can leave
  Task depart(Message& m);
  Task push_data(Message& m);
  Task push_packets(Message& m, Chan& c, int64_t packet);
  Task push_bulk(Message& m);
  Task matched(Message& m);
  Task take_in(Message& m);  // what lies in the pool or in the library's buffer
  Task handle_working(Packet p, bool called);
  Task handle_now(const Packet& p);
  Task copy_directly(Message& m);
  Task to_self(Message& m);
  Task library_call(Ps cost);
  Task locked_call(Ps cost);
  Task progress();        // takes in whatever is there, without waiting
  void meet(Message& m);  // an envelope has come: match it or queue it
  void finish_receive(Message& m);
  void settle_send(Message& m);
  void recycle(Message& m);
  [[nodiscard]] bool near(int32_t other) const;  // on the same host
  /// Copies between two places of the user's or the library's memory.
  [[nodiscard]] Ps plain_copy(int64_t bytes, double copies = 1) const {
    const double set = 2.0 * static_cast<double>(bytes);
    return static_cast<Ps>(copies * static_cast<double>(host.copy_time(bytes, set, set)));
  }
  [[nodiscard]] ProtocolRow::Kind protocol(int32_t dst, int64_t bytes) const;
  [[nodiscard]] Ps conversion(int32_t peer, int64_t bytes) const;  // of data that goes to or comes from `peer`
  [[nodiscard]] static bool fits(const Request& r, const Message& m);
  Request& make(Request::Kind k);
  void drop(Request& r);
  /// As Proc::until; collectives under way go on meanwhile.
  template <class F>
  Task until(F cond, WaitPolicy policy, bool progress) {
    return running_.empty() ? Proc::until(cond, policy, progress) : until_driving(cond, policy, progress);
  }
  template <class F>
  Task until_driving(F cond, WaitPolicy policy, bool progress) {
    while (!cond()) {
      if (progress && can_drive())
        co_await drive();
      else if (progress && !inbox.empty())
        co_await absorb();
      else
        co_await thread.wait(policy);
    }
  }

  // ---- actions of a trace (actions.cpp)
  Task step(const Action& a);
  Task nap(Ps ps);
  Task blocking_send(const Action& a);
  Task blocking_receive(const Action& a);
  Task send_and_receive(const Action& a);
  [[noreturn]] void bad(const Action& a, const std::string& why) const;
  Task point_to_point(const Action& a);
  Task probe(const Action& a);
  /// Whom a receive or probe is from: as recorded, unless the run leaves wildcards free.
  [[nodiscard]] action::Envelope asked(const Action& a) const;

  // ---- requests (requests.cpp)
  Task completion(const Action& a);
  Task completion_of_listed(const Action& a);
  Task completion_of_all(const Action& a);
  Task wait_for(const Action& a);
  Task test(const Action& a);
  Task start(size_t i, std::optional<action::Envelope> matched);
  Task start_listed(const Action& a);
  Task release(const Action& a);
  void file(Request& r, int32_t req);
  struct Filed {
    int32_t src, dst, tag;
    int32_t req;  // its identity, 0: none
    Request* r;   // null: completed by a test, its wait is a no-op
  };
  [[nodiscard]] size_t place(const Request& r) const;
  [[nodiscard]] size_t listed(const Action& a, int64_t req, size_t hint = 0) const;
  [[nodiscard]] Request* filed(const Action& a, bool& marker);
  void settle(size_t i);  // a filed request is complete: take it out, or make it inactive
  void settle_complete(bool one);
  std::vector<Filed> store_;

  // ---- one-sided operations (one_sided.cpp)
  Task one_sided(const Action& a);
  Task window(const Action& a);
  Task make_or_free_window(const Action& a);
  Task lock(int32_t window, Rank& target, bool exclusive);
  Task unlock(int32_t window, Rank& target, bool exclusive);
  Task to_each(std::span<const int64_t> ranks, int32_t ctx, int32_t tag);
  Task from_each(std::span<const int64_t> ranks, int32_t ctx, int32_t tag);
  Task origin(const RmaSpec& s, int32_t other, int64_t bytes, int64_t& calls, int64_t& moved);
  Task put(int32_t target, int64_t bytes);
  Task get(int32_t target, int64_t bytes, Request* later = nullptr);
  Task flush();
  [[nodiscard]] const RmaSpec& rma(int32_t target) const;
  void on_put_done();
  void on_get_done();
  void on_requested_get_done(size_t slot);
  int32_t puts_open_ = 0;
  bool get_open_ = false;
  int32_t gets_open_ = 0;                        // with a request
  std::vector<Request*> open_gets_;              // those; null: a place for another one
  int32_t taken_ = 0;                            // receivers that have copied out of this rank's shared buffer of a broadcast
  struct Epoch {                                 // of this rank in a window
    std::vector<int64_t> exposed_to, access_to;  // world ranks
    std::unordered_map<int32_t, bool> locked;    // whose memory this rank has locked: exclusively
    int32_t shared = 0;                          // locks on this rank's memory, held by others or itself
    bool exclusive = false;
    std::vector<Rank*> wanted;  // who waits for such a lock
  };
  std::unordered_map<int32_t, Epoch> windows_;
  const Rank* lock_of_ = nullptr;  // whose memory this rank waits to lock

  // ---- collectives (coll.cpp)
  Task collective(const Action& a);
  Task new_communicator(const Action& a);
  Task barrier(int32_t comm);
  Task internal(int32_t comm, Op op, int64_t bytes);  // a collective of the library's own
  Task follow(coll::Steps steps, int32_t comm);
  Task start_collective(const Action& a);
  /// Goes on with a collective until it ends; `blocking` false: until it has to wait.
  Task advance(Running& c, bool blocking);
  Task drive();  // all non-blocking collectives that can go on
  [[nodiscard]] bool can_go_on(const Running& c) const;
  [[nodiscard]] bool can_drive() const {
    return !driving_ && std::any_of(running_.begin(), running_.end(), [this](const auto& c) { return can_go_on(*c); });
  }
  [[nodiscard]] coll::Args own_args(int32_t comm);
  [[nodiscard]] coll::Args args(const Action& a);
  [[nodiscard]] coll::Steps steps(const Action& a, coll::Args args);
  struct Member {  // this rank in a communicator
    const Group* group = nullptr;
    int32_t me = 0;
    int32_t tag = 0;  // of the last collective
  };
  [[nodiscard]] Member& member(int32_t comm);
  static int32_t next_tag(Member& m) { return m.tag = (m.tag + 1) & 0x3fffffff; }
  Member world_;
  std::unordered_map<int32_t, Member> members_;
  Running blocking_;                                // there is one at a time
  std::vector<std::unique_ptr<Running>> running_;   // non-blocking, in the order of their calls
  std::vector<std::unique_ptr<Running>> finished_;  // for use again
  bool driving_ = false;
  Task use(double flops);
  Task busy(double seconds);
  void within_horizon(double seconds) const;  // ConfigError for a duration that cannot be counted

  ActionList::const_iterator place_;  // in its trace
  Job& job_;
  const RankSpec& spec_;
  MatchQueue<Request> posted_;
  MatchQueue<Message> unexpected_;
  int64_t unexpected_bytes_ = 0;
  const Request* awaited_ = nullptr;  // by a blocking call
  int32_t open_sends_ = 0;            // sends that MPI_Finalize must see through
  int32_t tests_ = 0;                 // calls that only looked
  struct Bulk {
    std::deque<Message*> waiting;
    bool active = false;
  };
  std::map<int32_t, Bulk> bulk_queue_;
};

/// One MPI job in a world: its ranks, trace and object pools.
class Job : public Common {
 public:
  Job(World& w, const Trace& t, const std::vector<KernelRow>& kernels) : world(w), trace(t), kernels_(kernels) { pool_locks.resize(w.hosts.size()); }
  World& world;
  std::string suffix;  // of the names of its processes: " of NAME" beside another job
  Callback over;       // called when its last rank has finished
  const Trace& trace;
  RmaSpec rma_same, rma_remote;
  coll::Table collectives;
  bool free_wildcards = false;  // receives from any source match whatever comes, not what is recorded
  std::vector<Rank*> ranks;
  std::vector<MarkTime> marks;
  int32_t finished = 0;
  Message& new_message();
  Request& new_request();
  [[nodiscard]] const Group& group(int32_t comm, bool low = true);
  /// Seconds of one repetition of a Kernel action on a host; ConfigError when nobody has said.
  [[nodiscard]] double kernel_seconds(size_t host, const Action& a) const;
  void free_message(Message& m) { free_messages_.push_back(&m); }
  void free_request(Request& r) { free_requests_.push_back(&r); }

 private:
  friend class Inquest;
  const std::vector<KernelRow>& kernels_;
  std::vector<std::unique_ptr<Group>> groups_;  // as they are used
  std::deque<Message> messages_;
  std::deque<Request> requests_;
  std::vector<Message*> free_messages_;
  std::vector<Request*> free_requests_;
};

}  // namespace retrompi
