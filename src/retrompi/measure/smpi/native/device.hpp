// A rank's MPI device: MPI semantics by the runtime's protocol and its progress rule, at the costs of the curve rung.
//
// Packets between two ranks are handled only while the receiver is inside an MPI call, and the data of a rendezvous message are sent
// only when the sender is inside one.
#pragma once
#include <mpi.h>

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "law.hpp"
#include "processors.hpp"

namespace retrompi::online {

struct Message;
struct Running;

/// A datatype, also once the program has freed it: SimGrid then tells neither its size nor its extent.
struct Type {
  Type(MPI_Datatype named);
  Kept<MPI_Datatype> handle;
  int64_t size = 0;
  MPI_Aint low = 0, extent = 0;
};

/// Data as the program described them; at a null pointer the type has absolute addresses (MPI_BOTTOM).
struct Buffer {
  void* at = nullptr;
  int count = 0;
  Type type = MPI_DATATYPE_NULL;
  [[nodiscard]] int64_t bytes() const { return count * type.size; }
  [[nodiscard]] std::vector<char> packed() const;
  void unpack(const std::vector<char>& data) const;
};

/// A communicator as seen by one of its members.
struct Comm {
  MPI_Comm handle = MPI_COMM_NULL;
  int id = 0;  // the same at all members
  int n = 0, me = 0, remote = 0;
  std::vector<int32_t> world;  // rank -> world rank, the remote group's after the local group's
  std::vector<int32_t> host;   // of the local group
  bool low = true;             // the first of the two groups
  int sequence = 0;            // number of its collectives so far
  [[nodiscard]] int rank_of(int world_rank) const;
  /// The world rank of a rank named by the program; for an intercommunicator, of a member of the remote group.
  [[nodiscard]] int peer(int rank) const;
  [[nodiscard]] int program() const { return 2 * id; }  // context of point-to-point messages
  [[nodiscard]] int collective() const { return 2 * id + 1; }
};

struct Request {
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();
  enum Kind : uint8_t { Send, Recv, Collective } kind = Send;
  enum Mode : uint8_t { Standard, Synchronous, Buffered } mode = Standard;
  int peer = 0, tag = 0, context = 0;  // world rank; a receive's wildcards are kept
  int64_t bytes = 0;
  Buffer buffer;
  const Comm* comm = nullptr;
  bool done = false, persistent = false, active = true, detached = false, cancelled = false;
  int source = MPI_PROC_NULL, found_tag = MPI_ANY_TAG;  // of the received message; source is a world rank
  int64_t received = 0;
  Message* message = nullptr;  // what a send has sent, while it can be cancelled
  MPI_Request handle = MPI_REQUEST_NULL;
};

struct Message {
  int from = 0, to = 0, tag = 0, context = 0;
  int64_t bytes = 0;
  bool sync = false, asks = false, sent = false, settled = false, seen = false, stashed = false, arrived = false, acknowledged = false,
       answered = false, delivered = false, withdrawn = false;
  Request *sender = nullptr, *receiver = nullptr;  // until they are complete
  Request* origin = nullptr;                       // the one that sent it
  std::vector<char> data;
};

struct Packet {
  enum Kind : uint8_t { Data, Ask, Answer, Taken } kind = Data;
  Message* message = nullptr;
  int from = 0, to = 0;
  int64_t bytes = 0;
};

class Rank {
 public:
  explicit Rank(int n);
  const int id;
  const HostSpec& host;

  // ---- time
  void run(Ps ps);  // this rank's processor is busy
  void use(double flops);
  void start();  // waits for a processor
  void end();
  void nap(double seconds);  // rounded up to the clock tick, as the engine's sleep

  // ---- messages
  void send(Request& r);
  void receive(Request& r);
  void wait(Request& r);
  void test_cost() { run(host.time(environment().test.work) + host.time(environment().test.system)); }
  void progress();  // handles everything that has arrived, without waiting
  template <class F>
  void until(F condition) {
    while (!condition()) {
      if (can_drive())
        drive();
      else if (!inbox_.empty())
        absorb();
      else
        doze();
    }
  }
  [[nodiscard]] const Message* unexpected(const Request& wanted) const;
  void cancel(Request& r);
  void put(int target, int64_t bytes);
  void arrive(const Packet& p);
  void signal();
  /// A copy between two buffers in ordinary memory.
  [[nodiscard]] Ps copy_cost(int64_t bytes, double copies = 1) const {
    const double set = 2.0 * static_cast<double>(bytes);
    return static_cast<Ps>(copies * static_cast<double>(host.copy_time(bytes, set, set)));
  }

  // ---- collectives
  void follow(coll::Steps steps, Comm& c);  // to completion
  void begin(std::unique_ptr<Running> c);   // as far as possible without waiting
  coll::Args args(Comm& c) const;
  int taken = 0;  // readers of this rank's shared buffer that have copied

  // ---- the program
  Comm& comm(MPI_Comm handle);
  int next_number(MPI_Comm handle);  // for a communicator that is being created
  void forget(MPI_Comm handle) {     // pending operations continue
    if (auto gone = comms_.extract(handle)) freed_.push_back(std::move(gone.mapped()));
  }
  int open_sends = 0;
  std::string inside;  // the MPI call that has not returned
  [[nodiscard]] bool settled() const { return open_sends == 0 && running_.empty(); }
  [[nodiscard]] std::string waits_for() const;
  int64_t clock = 0, pending = 0;  // clock: between calls, ns; pending: computation not yet simulated, ns
  bool told = false;               // the recorder reports the computation
  bool finished = false;

 private:
  void depart(Message& m);
  void push(const Packet& p);
  void fly(Channel& c, const Packet& p, Ps end);
  void absorb();
  void handle(const Packet& p);
  void meet(Message& m);
  void matched(Message& m);
  void take_in(Message& m);
  void finish_receive(Message& m);
  void settle(Message& m);
  void withdraw(Request& r);
  void sent(Message& m);
  void doze();
  void advance(Running& c, bool blocking);
  void drive();
  [[nodiscard]] bool can_go_on(const Running& c) const;
  [[nodiscard]] bool can_drive() const;
  static bool fits(const Request& r, const Message& m);
  static void drop(Message& m);

  std::deque<Packet> inbox_;
  std::list<Request*> posted_;
  std::list<Message*> unexpected_;
  int64_t unexpected_bytes_ = 0;
  const Request* awaited_ = nullptr;
  bool dozing_ = false, driving_ = false;
  Ps put_until_ = 0;
  std::list<std::unique_ptr<Running>> running_;
  std::unordered_map<MPI_Comm, std::unique_ptr<Comm>> comms_;
  std::vector<std::unique_ptr<Comm>> freed_;
  std::map<std::vector<int32_t>, int> made_;  // communicators with these members that this rank has seen
  Sleeper sleeper_;
  std::unique_ptr<Thread> thread_;  // where ranks share processors
};

/// A collective under way.
struct Running {
  coll::Steps steps;
  Comm* comm = nullptr;
  int tag = 0;
  bool held = false;  // at a step that waits
  size_t passed = 0;
  struct Open {
    int32_t slot;
    std::unique_ptr<Request> request;
  };
  std::vector<Open> open;
  Request* request = nullptr;    // non-blocking: the program's
  std::vector<int64_t> out, in;  // what its arguments name
  std::function<void()> finish;  // gives the program its data
};

/// The rank whose actor runs now; null outside of MPI_Init .. MPI_Finalize.
Rank* self();
Rank& enrol(int world_rank);  // the actor that runs now
Rank& rank(int world_rank);
const std::vector<Rank*>& everybody();

/// The run ended badly: its reason is told, and nothing goes on.
[[noreturn]] void abort_run(Outcome outcome, const std::string& reason, int code);

struct Counters {
  int64_t messages = 0, bytes = 0;
};
Counters& counters();

}  // namespace retrompi::online
