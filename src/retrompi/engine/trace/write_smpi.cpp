// Writes a trace in the vocabulary of SMPI's replay, and reports the losses. Reference: SimGrid 3.32 and 4.1, smpi_replay.cpp.
#include <algorithm>
#include <unordered_map>

#include "trace/trace.hpp"
#include "trace/words.hpp"
#include "trace/write.hpp"

namespace retrompi {
namespace {

constexpr const char *MODE = "the mode of the send is lost: it is written as a standard one";
constexpr const char *MESSAGE_COMM = "the communicator of the message is lost: it is matched by source and tag among all";
constexpr const char *TAGS = "the tags of the exchange are lost: both are 0";
constexpr const char *PART = "SMPI's replay has no communicators: left out";
constexpr const char *NBC = "SMPI's replay has no non-blocking collectives: left out";
constexpr const char *RMA = "SMPI's replay has no one-sided communication: left out";
constexpr const char *PROBE = "SMPI's replay does not probe: left out";
constexpr const char *KERNEL = "SMPI's replay has no kernels: left out";
constexpr const char *WHICH = "which requests it is about is not recorded, and SMPI's replay does not know it: left out";
constexpr const char *LOOK = "a test of several requests that completed none: left out";
constexpr const char *PERSISTENT = "SMPI's replay has no persistent requests, and without req= it cannot be told which this is: left out";
constexpr const char *MAKING = "making and freeing communicators and windows takes no time in SMPI's replay: left out";

class Smpi {
 public:
  Smpi(const Trace &trace, size_t rank, bool shared, std::string &out, std::vector<Remark> &lost, size_t &lost_total)
      : t_(trace), rank_(rank), me_(static_cast<int32_t>(rank)), shared_(shared), out_(out), lost_(lost), total_(lost_total) {}
  void action(const Action &a);

 private:
  void lose(const Action &a, const char *reason) {
    if (total_++ < REMARK_LIMIT) lost_.push_back({me_, a.line, action_name(a), reason});
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
  void wait(int32_t req);
  void one(const Action &a);
  void several(const Action &a);

  const Trace &t_;
  size_t rank_;
  int32_t me_;
  bool shared_;
  std::string &out_;
  std::vector<Remark> &lost_;
  size_t &total_;
  std::unordered_map<int32_t, Action> persistent_;  // by req
  std::unordered_map<int32_t, Action> open_;        // a wait for it
  bool unnamed_ = false;                            // there may be open requests without an identity
};

// A blocking or non-blocking message, without what its receive matched.
Action message(Op op, uint32_t line, int32_t peer, int32_t tag, int64_t bytes) {
  Action a(op, line);
  a.get<action::PointToPoint>() = {peer, tag, bytes, {}};
  return a;
}

void Smpi::point_to_point(const Action &a) {
  const auto &x = a.get<action::PointToPoint>();
  const bool starts = a.op >= Op::Isend && a.op <= Op::Irsend;
  Op op = a.op;
  if (is_send(a.op)) {
    op = starts ? Op::Isend : Op::Send;
    if (a.op != op) lose(a, MODE);
  }
  const Action plain = message(op, a.line, x.peer, x.tag, x.bytes);
  if (a.comm != 0 && x.peer != PROC_NULL) lose(a, MESSAGE_COMM);
  if (starts || a.op == Op::Irecv) {
    post(plain, a.request);
  } else if (x.peer != PROC_NULL) {  // a call with MPI_PROC_NULL does nothing, and SMPI's replay fails on it
    put(plain);
  }
}

void Smpi::post(const Action &a, int32_t req) {
  const auto &x = a.get<action::PointToPoint>();
  if (x.peer == PROC_NULL) return;
  put(a);
  const bool receive = a.op == Op::Irecv;
  Action w(Op::Wait);
  w.get<action::OneRequest>() = {receive ? x.peer : me_, receive ? me_ : x.peer, x.tag, {}};
  if (req != 0)
    open_.insert_or_assign(req, w);
  else
    unnamed_ = true;
}

void Smpi::exchange(const Action &a) {
  const auto &x = a.get<action::SendReceive>();
  if (x.send_tag != 0 || x.receive_tag != 0) lose(a, TAGS);
  if (a.comm != 0) lose(a, MESSAGE_COMM);
  if (x.destination == PROC_NULL && x.source == PROC_NULL) return;
  if (x.destination == PROC_NULL) return put(message(Op::Recv, a.line, x.source, 0, x.receive_bytes));
  if (x.source == PROC_NULL) return put(message(Op::Send, a.line, x.destination, 0, x.bytes));
  Action plain = a;
  auto &both = plain.get<action::SendReceive>();
  both.send_tag = both.receive_tag = 0;
  both.matched = {};
  put(plain);
}

void Smpi::collective(const Action &a) {
  if (a.nonblocking()) return lose(a, NBC);
  if (!everybody(a.comm) || a.op >= Op::NeighborAllgather) return lose(a, PART);
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

void Smpi::wait(int32_t req) {
  const auto found = open_.find(req);
  if (found == open_.end()) return;  // of an omitted call, or to MPI_PROC_NULL
  put(found->second);
  open_.erase(found);
}

void Smpi::one(const Action &a) {
  switch (a.op) {
    case Op::Start: {
      const auto found = persistent_.find(a.request);
      if (a.request == 0 || found == persistent_.end()) return lose(a, PERSISTENT);
      Action posted = found->second;
      posted.line = a.line;
      return post(posted, a.request);
    }
    case Op::RequestFree:
      if (a.request == 0) return lose(a, PERSISTENT);
      persistent_.erase(a.request);
      open_.erase(a.request);
      return;
    default:
      break;
  }
  if (a.request == 0) {
    const auto &x = a.get<action::OneRequest>();
    if (x.source == PROC_NULL || x.destination == PROC_NULL) return;
    return put(a);
  }
  if (a.op == Op::Wait || (a.told() && a.done())) return wait(a.request);
  if (const auto found = open_.find(a.request); found != open_.end()) {
    Action look = found->second;
    look.op = Op::Test;
    put(look);
  }
}

void Smpi::several(const Action &a) {
  const auto &x = a.get<action::SeveralRequests>();
  if (x.list < 0) {
    if (a.op != Op::Waitall) return lose(a, WHICH);
    open_.clear();
    unnamed_ = false;
    return put(a);
  }
  const std::vector<int64_t> &all = t_.vec[static_cast<size_t>(x.list)];
  const auto named = static_cast<size_t>(x.count);
  if (a.op == Op::Startall) {
    for (size_t i = 0; i < named; ++i) {
      const auto req = static_cast<int32_t>(all[i]);
      if (const auto found = persistent_.find(req); found != persistent_.end()) post(found->second, req);
    }
    return;
  }
  if (a.op == Op::Waitall) {
    const auto open = static_cast<size_t>(std::count_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(named),
                                                        [&](int64_t r) { return open_.contains(static_cast<int32_t>(r)); }));
    if (open == open_.size() && !unnamed_ && open > 0) {  // SMPI's waitall waits for all open requests
      Action plain = a;
      plain.get<action::SeveralRequests>() = {.count = static_cast<int64_t>(open)};
      open_.clear();
      return put(plain);
    }
    for (size_t i = 0; i < named; ++i) wait(static_cast<int32_t>(all[i]));
    return;
  }
  if (!a.told()) return lose(a, WHICH);
  if (all.size() == named && (a.op != Op::Waitany && a.op != Op::Waitsome)) lose(a, LOOK);
  for (size_t i = named; i < all.size(); ++i) wait(static_cast<int32_t>(all[i]));
}

void Smpi::action(const Action &a) {
  if (is_collective(a.op)) return collective(a);
  if (is_some(a.op)) return several(a);
  switch (a.op) {
    case Op::Init:
    case Op::Finalize:
    case Op::Compute:
    case Op::Sleep:
    case Op::Mark:
      return put(a);
    case Op::Kernel:
      return lose(a, KERNEL);
    case Op::Sendrecv:
      return exchange(a);
    case Op::Wait:
    case Op::Test:
    case Op::Start:
    case Op::RequestFree:
      return one(a);
    case Op::Probe:
    case Op::Iprobe:
      return lose(a, PROBE);
    case Op::SendInit:
    case Op::SsendInit:
    case Op::BsendInit:
    case Op::RsendInit:
    case Op::RecvInit: {
      if (a.request == 0) return lose(a, PERSISTENT);
      if (a.op != Op::SendInit && a.op != Op::RecvInit) lose(a, MODE);
      if (a.comm != 0) lose(a, MESSAGE_COMM);
      Action plain = a;
      plain.op = a.op == Op::RecvInit ? Op::Irecv : Op::Isend;
      persistent_.insert_or_assign(a.request, plain);
      return;
    }
    case Op::CommNew:
    case Op::CommFree:
    case Op::WinNew:
    case Op::WinFree:
      return lose(a, MAKING);
    default:
      if (is_window(a.op)) return lose(a, RMA);
      point_to_point(a);
  }
}

}  // namespace

std::string Trace::to_smpi(size_t rank, bool shared, std::vector<Remark> &lost, size_t &lost_total) const {
  std::string out;
  Smpi writer(*this, rank, shared, out, lost, lost_total);
  for (const Action &a : ranks[rank]) writer.action(a);
  return out;
}

}  // namespace retrompi
