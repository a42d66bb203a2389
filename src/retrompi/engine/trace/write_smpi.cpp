// Writes a trace in the vocabulary of SMPI's replay, and reports the losses. Reference: SimGrid 3.32 and 4.1, smpi_replay.cpp.
#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "trace/trace.hpp"
#include "trace/words.hpp"
#include "trace/write.hpp"

namespace retrompi {
namespace {

struct Reason {
  const char *text;
  bool omitted;  // the line is left out; else it is written in a different form
};
constexpr Reason MODE = {"the mode of the send is lost: it is written as a standard one", false};
constexpr Reason MESSAGE_COMM = {"the communicator of the message is lost: it is matched by source and tag among all", false};
constexpr Reason TAGS = {"the tags of the exchange are lost: both are 0", false};
constexpr Reason NOBODY = {"SMPI's replay fails on MPI_PROC_NULL: left out", true};
constexpr Reason HALF = {"SMPI's replay fails on MPI_PROC_NULL: written as the other half alone", false};
constexpr Reason PART = {"SMPI's replay has no communicators: left out", true};
constexpr Reason DUPLICATE = {"on a duplicate of MPI_COMM_WORLD: written on MPI_COMM_WORLD", false};
constexpr Reason NBC = {"SMPI's replay has no non-blocking collectives: left out", true};
constexpr Reason OTHER_NAME = {"SMPI's replay does not know it: written as the call that moves the same bytes", false};
constexpr Reason RMA = {"SMPI's replay has no one-sided communication: left out", true};
constexpr Reason PROBE = {"SMPI's replay does not probe: left out", true};
constexpr Reason KERNEL = {"SMPI's replay has no kernels: left out", true};
constexpr Reason WHICH = {"which requests it is about is not recorded, and SMPI's replay does not know it: left out", true};
constexpr Reason LOOK = {"a test of several requests that completed none: left out", true};
constexpr Reason FAILED = {"that the test failed is lost: SMPI's replay tests again", false};
constexpr Reason WAITED = {"written as waits for the requests that it completed", false};
constexpr Reason WAITS = {"written as a wait for each request: SMPI's waits for all that are open", false};
constexpr Reason GONE = {"it is about a request of a call that is left out: left out", true};
constexpr Reason NONE = {"a call on no request: left out", true};
constexpr Reason PARTLY = {"some of its requests are of calls that are left out: written for the others", false};
constexpr Reason OLDER = {"SMPI's replay takes the oldest request of the same peers and tag, which this is not", false};
constexpr Reason PERSISTENT = {"SMPI's replay has no persistent requests, and without req= it cannot be told which this is: left out", true};
constexpr Reason TEMPLATE = {"SMPI's replay has no persistent requests: left out, each start is written as a non-blocking call", true};
constexpr Reason STARTED = {"SMPI's replay has no persistent requests: written as a non-blocking call", false};
constexpr Reason MAKING = {"making and freeing communicators and windows takes no time in SMPI's replay: left out", true};

class Smpi {
 public:
  Smpi(const Trace &trace, size_t rank, bool shared, std::string &out, Trace::SmpiLosses &lost)
      : t_(trace), rank_(rank), me_(static_cast<int32_t>(rank)), shared_(shared), out_(out), lost_(lost) {}
  void action(const Action &a);

 private:
  // SMPI files requests under source, destination and tag, first in first out.
  using Key = std::tuple<int32_t, int32_t, int32_t>;

  // At most one loss a line is counted: the first that is told.
  void lose(const Action &a, const Reason &reason) {
    if (told_) return;
    told_ = true;
    ++lost_.counts[{action_name(a), reason.text, reason.omitted}];
    if (lost_.total++ < REMARK_LIMIT) lost_.first.push_back({me_, a.line, action_name(a), reason.text});
  }
  void put(Action a) {
    a.comm = a.request = a.flags = 0;
    write_line(t_, rank_, a, shared_, out_);
  }
  bool everybody(int32_t comm) const {  // a duplicate of MPI_COMM_WORLD will do
    if (comm == 0) return true;
    const Comm &c = t_.comms[static_cast<size_t>(comm)];
    return c.kind != Comm::Inter && c.group == t_.comms[0].group;
  }
  void point_to_point(const Action &a);
  void post(const Action &a, int32_t req);
  void exchange(const Action &a);
  void collective(const Action &a);
  void persistent(const Action &a);
  bool wait(const Action &a, int32_t req);
  void oldest_is_complete(const Key &key);
  void one(const Action &a);
  void start(const Action &a, int32_t req, const action::Envelope *matched);
  void several(const Action &a);
  void all(const Action &a, const std::vector<int64_t> &requests, size_t named);

  struct Posted {
    Action wait;
    Key key;
  };

  const Trace &t_;
  size_t rank_;
  int32_t me_;
  bool shared_;
  bool told_ = false;
  std::string &out_;
  Trace::SmpiLosses &lost_;
  std::unordered_map<int32_t, Action> persistent_;  // by req
  std::unordered_map<int32_t, Posted> open_;        // a wait for it
  std::map<Key, std::deque<int32_t>> filed_;
  bool unnamed_ = false;  // there may be open requests without an identity
};

// A blocking or non-blocking message. A wildcard receive whose match is recorded is written as the receive of that message.
Action message(Op op, uint32_t line, const action::PointToPoint &x, const action::Envelope *matched) {
  Action a(op, line);
  a.get<action::PointToPoint>() = {matched != nullptr ? matched->source : x.peer, matched != nullptr ? matched->tag : x.tag, x.bytes, {}};
  return a;
}

void Smpi::point_to_point(const Action &a) {
  const auto &x = a.get<action::PointToPoint>();
  const bool posts = is(a.op, Trait::Posts);
  // A call with MPI_PROC_NULL does nothing, and SMPI's replay fails on it.
  if (x.peer == PROC_NULL) return lose(a, NOBODY);
  Op op = a.op;
  if (is_send(a.op)) {
    op = posts ? Op::Isend : Op::Send;
    if (a.op != op) lose(a, MODE);
  }
  if (a.comm != 0) lose(a, MESSAGE_COMM);
  const Action plain = message(op, a.line, x, a.matched() ? &x.matched : nullptr);
  if (posts) {
    post(plain, a.request);
  } else {
    put(plain);
  }
}

void Smpi::post(const Action &a, int32_t req) {
  const auto &x = a.get<action::PointToPoint>();
  put(a);
  if (req == 0) {
    unnamed_ = true;
    return;
  }
  const bool receive = a.op == Op::Irecv;
  const int32_t source = receive ? x.peer : me_, destination = receive ? me_ : x.peer;
  Action w(Op::Wait);
  w.get<action::OneRequest>() = {source, destination, x.tag, {}};
  const Key key = {source, destination, x.tag};
  open_.insert_or_assign(req, Posted{w, key});
  filed_[key].push_back(req);
}

void Smpi::exchange(const Action &a) {
  const auto &x = a.get<action::SendReceive>();
  if (x.destination == PROC_NULL && x.source == PROC_NULL) return lose(a, NOBODY);
  if (x.destination == PROC_NULL || x.source == PROC_NULL) lose(a, HALF);
  if (x.send_tag != 0 || x.receive_tag != 0) lose(a, TAGS);
  if (a.comm != 0) lose(a, MESSAGE_COMM);
  const action::Envelope *matched = a.matched() ? &x.matched : nullptr;
  const int32_t source = matched != nullptr ? matched->source : x.source;
  if (x.destination == PROC_NULL) return put(message(Op::Recv, a.line, {source, 0, x.receive_bytes, {}}, nullptr));
  if (x.source == PROC_NULL) return put(message(Op::Send, a.line, {x.destination, 0, x.bytes, {}}, nullptr));
  Action plain = a;
  auto &both = plain.get<action::SendReceive>();
  both.source = source;
  both.send_tag = both.receive_tag = 0;
  both.matched = {};
  put(plain);
}

void Smpi::collective(const Action &a) {
  if (a.nonblocking()) return lose(a, NBC);
  if (!everybody(a.comm) || is_neighbour(a.op)) return lose(a, PART);
  if (a.op == Op::Alltoallw || a.op == Op::ReduceScatterBlock) lose(a, OTHER_NAME);
  if (a.comm != 0) lose(a, DUPLICATE);
  Action plain = a;
  if (a.op == Op::Alltoallw) plain.op = Op::Alltoallv;
  if (a.op != Op::ReduceScatterBlock) return put(plain);
  Action shape(Op::Allreduce);  // of the line's end
  shape.get<action::Collective>().flops = a.get<action::Collective>().flops;
  std::string line;
  write_line(t_, rank_, shape, shared_, line);  // "RANK allreduce 0 FLOPS 6"
  const std::string prefix = std::to_string(rank_);
  (out_ += prefix) += " reducescatter";
  for (size_t i = 0; i < t_.ranks.size(); ++i) (out_ += ' ') += std::to_string(a.get<action::Collective>().bytes);
  out_ += line.substr(prefix.size() + std::string_view(" allreduce 0").size());
}

void Smpi::persistent(const Action &a) {
  lose(a, a.request == 0 ? PERSISTENT : TEMPLATE);
  if (a.request == 0) return;
  Action plain = a;
  plain.op = is_receive(a.op) ? Op::Irecv : Op::Isend;
  persistent_.insert_or_assign(a.request, plain);
}

// Writes the wait for a request; false if the call that returned it is left out.
bool Smpi::wait(const Action &a, int32_t req) {
  const auto found = open_.find(req);
  if (found == open_.end()) return false;
  put(found->second.wait);
  const auto filed = filed_.find(found->second.key);
  if (filed->second.front() != req) lose(a, OLDER);
  std::erase(filed->second, req);
  if (filed->second.empty()) filed_.erase(filed);
  open_.erase(found);
  return true;
}

void Smpi::oldest_is_complete(const Key &key) {
  const auto filed = filed_.find(key);
  if (filed == filed_.end()) return;
  open_.erase(filed->second.front());
  filed->second.pop_front();
  if (filed->second.empty()) filed_.erase(filed);
}

void Smpi::start(const Action &a, int32_t req, const action::Envelope *matched) {
  const auto found = persistent_.find(req);
  if (req == 0 || found == persistent_.end()) return lose(a, PERSISTENT);
  const auto &x = found->second.get<action::PointToPoint>();
  if (x.peer == PROC_NULL) return lose(a, NOBODY);
  lose(a, STARTED);
  post(message(found->second.op, a.line, x, matched), req);
}

void Smpi::one(const Action &a) {
  const auto &x = a.get<action::OneRequest>();
  switch (a.op) {
    case Op::Start:
      return start(a, a.request, a.matched() ? &x.matched : nullptr);
    case Op::RequestFree:
      lose(a, a.request == 0 ? PERSISTENT : TEMPLATE);
      persistent_.erase(a.request);
      return;
    default:
      break;
  }
  if (a.request == 0) {
    if (x.source == PROC_NULL || x.destination == PROC_NULL) return lose(a, NOBODY);
    if (a.told()) lose(a, a.done() ? WAITED : FAILED);
    Action plain = a;
    if (a.told() && a.done()) plain.op = Op::Wait;
    if (plain.op == Op::Wait) oldest_is_complete({x.source, x.destination, x.tag});
    return put(plain);
  }
  if (a.op == Op::Wait || (a.told() && a.done())) {
    if (a.op != Op::Wait) lose(a, WAITED);
    if (!wait(a, a.request)) lose(a, GONE);
    return;
  }
  const auto found = open_.find(a.request);
  if (found == open_.end()) return lose(a, GONE);
  if (a.told()) lose(a, FAILED);
  Action look = found->second.wait;
  look.op = Op::Test;
  put(look);
}

// MPI_Waitall of `named` requests.
void Smpi::all(const Action &a, const std::vector<int64_t> &requests, size_t named) {
  const auto open = static_cast<size_t>(std::count_if(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(named),
                                                      [&](int64_t r) { return open_.contains(static_cast<int32_t>(r)); }));
  if (open == 0) return lose(a, named > 0 ? GONE : NONE);
  if (open < named) lose(a, PARTLY);
  if (open == open_.size() && !unnamed_ && open > 0) {  // SMPI's waitall waits for all open requests
    Action plain = a;
    plain.get<action::SeveralRequests>() = {.count = static_cast<int64_t>(open)};
    open_.clear();
    filed_.clear();
    return put(plain);
  }
  lose(a, WAITS);
  for (size_t i = 0; i < named; ++i) wait(a, static_cast<int32_t>(requests[i]));
}

void Smpi::several(const Action &a) {
  const auto &x = a.get<action::SeveralRequests>();
  if (x.list < 0) {
    if (a.op != Op::Waitall) return lose(a, WHICH);
    open_.clear();
    filed_.clear();
    unnamed_ = false;
    return put(a);
  }
  const std::vector<int64_t> &requests = t_.vec[static_cast<size_t>(x.list)];
  const auto named = static_cast<size_t>(x.count);
  if (a.op == Op::Startall) {
    for (size_t i = 0; i < named; ++i) {
      action::Envelope with;
      bool matched = false;
      for (size_t k = named; k + 2 < requests.size() && !matched; k += 3) {
        matched = requests[k] == requests[i];
        if (matched) with = {static_cast<int32_t>(requests[k + 1]), static_cast<int32_t>(requests[k + 2])};
      }
      start(a, static_cast<int32_t>(requests[i]), matched ? &with : nullptr);
    }
    return;
  }
  if (a.op == Op::Waitall) return all(a, requests, named);
  if (!a.told()) return lose(a, WHICH);
  const size_t completed = a.op == Op::Testall ? (a.done() ? named : 0) : requests.size() - named;
  if (completed == 0) return lose(a, LOOK);
  bool whole = true;
  const size_t first = a.op == Op::Testall ? 0 : named;
  std::vector<int32_t> done;
  for (size_t i = first; i < first + completed; ++i) done.push_back(static_cast<int32_t>(requests[i]));
  for (const int32_t req : done) whole = whole && open_.contains(req);
  lose(a, whole ? WAITED : PARTLY);
  for (const int32_t req : done) wait(a, req);
}

void Smpi::action(const Action &a) {
  told_ = false;
  switch (a.kind()) {
    case ActionKind::Collective:
      return collective(a);
    case ActionKind::SeveralRequests:
      return several(a);
    case ActionKind::OneRequest:
      return one(a);
    case ActionKind::SendReceive:
      return exchange(a);
    case ActionKind::PointToPoint:
      if (is_probe(a.op)) return lose(a, PROBE);
      return is_persistent(a.op) ? persistent(a) : point_to_point(a);
    case ActionKind::Rma:
    case ActionKind::WindowSync:
      return lose(a, RMA);
    case ActionKind::Kernel:
      return lose(a, KERNEL);
    default:
      return is(a.op, Trait::Joint) ? lose(a, MAKING) : put(a);
  }
}

}  // namespace

std::string Trace::to_smpi(size_t rank, bool shared, SmpiLosses &lost) const {
  std::string out;
  Smpi writer(*this, rank, shared, out, lost);
  for (const Action &a : ranks[rank]) writer.action(a);
  return out;
}

}  // namespace retrompi
