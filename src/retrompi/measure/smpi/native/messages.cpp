// Point-to-point messages and requests: the functions that a program calls.
#include <unordered_map>

#include "calls.hpp"

namespace retrompi::online {

Type::Type(MPI_Datatype named) : handle(named) {
  if (!named || named == MPI_DATATYPE_NULL) return;
  int bytes = 0;
  NATIVE(Type_size)(named, &bytes);
  NATIVE(Type_get_extent)(named, &low, &extent);
  size = bytes;
}

std::vector<char> Buffer::packed() const {
  std::vector<char> data(static_cast<size_t>(bytes()));
  if (!data.empty()) pack(type.handle, at, count, data);
  return data;
}

void Buffer::unpack(const std::vector<char>& data) const {
  if (!data.empty() && type.size > 0) online::unpack(type.handle, data, at, static_cast<int>(static_cast<int64_t>(data.size()) / type.size));
}

namespace {
std::unordered_map<MPI_Request, Request*>& handles() {
  static std::unordered_map<MPI_Request, Request*> all;
  return all;
}
}  // namespace

Request* request_of(MPI_Request handle) {
  const auto found = handles().find(handle);
  return found == handles().end() ? nullptr : found->second;
}

void give_handle(Request& r, MPI_Request* where) {
  static char nothing;
  NATIVE(Recv_init)(&nothing, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, where);
  r.handle = *where;
  handles()[*where] = &r;
}

void drop_handle(Request& r, MPI_Request* where) {
  handles().erase(r.handle);
  MPI_Request gone = r.handle;
  NATIVE(Request_free)(&gone);
  *where = MPI_REQUEST_NULL;
}

namespace {

void empty(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  *status = {};
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  status->MPI_ERROR = MPI_SUCCESS;
}

void tell(const Request& r, MPI_Status* status) {
  empty(status);
  if (status == MPI_STATUS_IGNORE) return;
  status->cancelled = r.cancelled ? 1 : 0;
  if (r.kind != Request::Recv) return;
  status->MPI_SOURCE = r.source == MPI_PROC_NULL ? MPI_PROC_NULL : r.comm->rank_of(r.source);
  status->MPI_TAG = r.found_tag;
  status->count = static_cast<int>(r.received);
}

void fill(Request& r, Request::Kind kind, const void* buf, int count, MPI_Datatype type, int peer, int tag, Comm& c) {
  r.kind = kind;
  r.buffer = {const_cast<void*>(buf == MPI_BOTTOM ? nullptr : buf), count, type};
  r.bytes = r.buffer.bytes();
  r.peer = c.peer(peer);
  r.tag = tag;
  r.comm = &c;
  r.context = c.program();
}

int send_now(Rank& rank, Request::Mode mode, const void* buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  Request r;
  fill(r, Request::Send, buf, count, type, to, tag, rank.comm(comm));
  r.mode = mode;
  rank.send(r);
  rank.wait(r);
  return MPI_SUCCESS;
}

int begin_send(Rank& rank, Request::Mode mode, const void* buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  auto* r = new Request;
  fill(*r, Request::Send, buf, count, type, to, tag, rank.comm(comm));
  r->mode = mode;
  give_handle(*r, request);
  rank.send(*r);
  return MPI_SUCCESS;
}

int prepare(Rank& rank, Request::Kind kind, Request::Mode mode, const void* buf, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
            MPI_Request* request) {
  auto* r = new Request;
  fill(*r, kind, buf, count, type, peer, tag, rank.comm(comm));
  r->mode = mode;
  r->persistent = r->done = true;
  r->active = false;
  give_handle(*r, request);
  return MPI_SUCCESS;
}

void start(Rank& rank, Request& r) {
  r.active = true;
  if (r.kind == Request::Send)
    rank.send(r);
  else
    rank.receive(r);
}

/// Finishes a complete request: fills its status and frees it unless it is persistent.
void settle(Request& r, MPI_Request* where, MPI_Status* status) {
  if (r.persistent && !r.active)
    empty(status);
  else
    tell(r, status);
  if (r.persistent) {
    r.active = false;
    return;
  }
  drop_handle(r, where);
  delete &r;
}

bool active(const Request& r) { return !r.persistent || r.active; }

/// Our requests among those of a call; SimGrid's own (one-sided operations, generalized ones) are left to it.
struct Listed {
  Request* r;
  int at;
};
std::vector<Listed> listed(int count, const MPI_Request* requests, bool& foreign) {
  std::vector<Listed> all;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    if (Request* r = request_of(requests[i]))
      all.push_back({r, i});
    else
      foreign = true;
  }
  return all;
}

const Listed* complete(const std::vector<Listed>& all) {
  for (const Listed& l : all)
    if (active(*l.r) && l.r->done) return &l;
  return nullptr;
}

/// A call that does not wait: if it has nothing to test, it costs nothing.
void look(Rank& rank) {
  rank.test_cost();
  rank.progress();
}

bool any_active(const std::vector<Listed>& all) {
  return std::any_of(all.begin(), all.end(), [](const Listed& l) { return active(*l.r); });
}

MPI_Status* at(MPI_Status* statuses, int i) { return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i; }

int settle_all(const std::vector<Listed>& all, MPI_Request* requests, int* indices, MPI_Status* statuses) {
  int n = 0;
  for (const Listed& l : all)
    if (active(*l.r) && l.r->done) {
      settle(*l.r, &requests[l.at], at(statuses, n));
      indices[n++] = l.at;
    }
  return n;
}

}  // namespace

#define SENDS(name, mode)                                                                                           \
  DEFINE(name, (const void* buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)) {                   \
    const Call r("MPI_" #name);                                                                                     \
    return r ? send_now(*r, mode, buf, count, type, to, tag, comm) : NATIVE(name)(buf, count, type, to, tag, comm); \
  }
SENDS(Send, Request::Standard)
SENDS(Rsend, Request::Standard)
SENDS(Ssend, Request::Synchronous)
SENDS(Bsend, Request::Buffered)

#define BEGINS(name, mode)                                                                                                              \
  DEFINE(name, (const void* buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request)) {                 \
    const Call r("MPI_" #name);                                                                                                         \
    return r ? begin_send(*r, mode, buf, count, type, to, tag, comm, request) : NATIVE(name)(buf, count, type, to, tag, comm, request); \
  }
BEGINS(Isend, Request::Standard)
BEGINS(Irsend, Request::Standard)
BEGINS(Issend, Request::Synchronous)
BEGINS(Ibsend, Request::Buffered)

#define PREPARES(name, mode)                                                                                                                        \
  DEFINE(name, (const void* buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request)) {                             \
    const Call r("MPI_" #name);                                                                                                                     \
    return r ? prepare(*r, Request::Send, mode, buf, count, type, to, tag, comm, request) : NATIVE(name)(buf, count, type, to, tag, comm, request); \
  }
PREPARES(Send_init, Request::Standard)
PREPARES(Rsend_init, Request::Standard)
PREPARES(Ssend_init, Request::Synchronous)
PREPARES(Bsend_init, Request::Buffered)

DEFINE(Recv_init, (void* buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request)) {
  const Call r("MPI_Recv_init");
  return r ? prepare(*r, Request::Recv, Request::Standard, buf, count, type, from, tag, comm, request)
           : NATIVE(Recv_init)(buf, count, type, from, tag, comm, request);
}

DEFINE(Recv, (void* buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status)) {
  const Call rank("MPI_Recv");
  if (!rank) return NATIVE(Recv)(buf, count, type, from, tag, comm, status);
  Request r;
  fill(r, Request::Recv, buf, count, type, from, tag, rank->comm(comm));
  rank->receive(r);
  rank->wait(r);
  tell(r, status);
  return MPI_SUCCESS;
}

DEFINE(Irecv, (void* buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request)) {
  const Call rank("MPI_Irecv");
  if (!rank) return NATIVE(Irecv)(buf, count, type, from, tag, comm, request);
  auto* r = new Request;
  fill(*r, Request::Recv, buf, count, type, from, tag, rank->comm(comm));
  give_handle(*r, request);
  rank->receive(*r);
  return MPI_SUCCESS;
}

namespace {
void exchange(Rank& rank, const Buffer& out, int to, int send_tag, const Buffer& in, int from, int receive_tag, MPI_Comm comm, MPI_Status* status) {
  Comm& c = rank.comm(comm);
  Request receive, send;
  fill(receive, Request::Recv, in.at, in.count, in.type.handle, from, receive_tag, c);
  fill(send, Request::Send, out.at, out.count, out.type.handle, to, send_tag, c);
  rank.receive(receive);
  rank.send(send);
  rank.wait(send);
  rank.wait(receive);
  tell(receive, status);
}
}  // namespace

DEFINE(Sendrecv, (const void* out, int out_count, MPI_Datatype out_type, int to, int send_tag, void* in, int in_count, MPI_Datatype in_type, int from,
                  int receive_tag, MPI_Comm comm, MPI_Status* status)) {
  const Call rank("MPI_Sendrecv");
  if (!rank) return NATIVE(Sendrecv)(out, out_count, out_type, to, send_tag, in, in_count, in_type, from, receive_tag, comm, status);
  exchange(*rank, {const_cast<void*>(out), out_count, out_type}, to, send_tag, {in, in_count, in_type}, from, receive_tag, comm, status);
  return MPI_SUCCESS;
}

// The data are copied before anything can arrive in the same buffer.
DEFINE(Sendrecv_replace,
       (void* buf, int count, MPI_Datatype type, int to, int send_tag, int from, int receive_tag, MPI_Comm comm, MPI_Status* status)) {
  const Call rank("MPI_Sendrecv_replace");
  if (!rank) return NATIVE(Sendrecv_replace)(buf, count, type, to, send_tag, from, receive_tag, comm, status);
  const Buffer both{buf, count, type};
  std::vector<char> out = both.packed();
  exchange(*rank, {out.data(), static_cast<int>(out.size()), MPI_BYTE}, to, send_tag, both, from, receive_tag, comm, status);
  return MPI_SUCCESS;
}

DEFINE(Start, (MPI_Request * request)) {
  const Call rank("MPI_Start");
  Request* r = rank ? request_of(*request) : nullptr;
  if (!r) return NATIVE(Start)(request);
  start(*rank, *r);
  return MPI_SUCCESS;
}

DEFINE(Startall, (int count, MPI_Request* requests)) {
  const Call rank("MPI_Startall");
  if (!rank) return NATIVE(Startall)(count, requests);
  for (int i = 0; i < count; ++i)
    if (Request* r = request_of(requests[i])) start(*rank, *r);
  return MPI_SUCCESS;
}

DEFINE(Request_free, (MPI_Request * request)) {
  const Call rank("MPI_Request_free");
  Request* r = rank ? request_of(*request) : nullptr;
  if (!r) return NATIVE(Request_free)(request);
  drop_handle(*r, request);
  if (r->done || !r->active)
    delete r;
  else
    r->detached = true;
  return MPI_SUCCESS;
}

DEFINE(Cancel, (MPI_Request * request)) {
  const Call rank("MPI_Cancel");
  Request* r = rank ? request_of(*request) : nullptr;
  if (!r) return NATIVE(Cancel)(request);
  rank->cancel(*r);
  return MPI_SUCCESS;
}

DEFINE(Request_get_status, (MPI_Request request, int* flag, MPI_Status* status)) {
  const Call rank("MPI_Request_get_status");
  const Request* r = rank ? request_of(request) : nullptr;
  if (!r) return NATIVE(Request_get_status)(request, flag, status);
  if (active(*r)) look(*rank);
  *flag = r->done ? 1 : 0;
  if (r->done) tell(*r, status);
  return MPI_SUCCESS;
}

// ---------------------------------------------------------------- waits

DEFINE(Wait, (MPI_Request * request, MPI_Status* status)) {
  const Call rank("MPI_Wait");
  if (!rank) return NATIVE(Wait)(request, status);
  if (*request == MPI_REQUEST_NULL) {
    empty(status);
    return MPI_SUCCESS;
  }
  Request* r = request_of(*request);
  if (!r) return NATIVE(Wait)(request, status);
  if (active(*r)) rank->wait(*r);
  settle(*r, request, status);
  return MPI_SUCCESS;
}

DEFINE(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses)) {
  const Call rank("MPI_Waitall");
  if (!rank) return NATIVE(Waitall)(count, requests, statuses);
  for (int i = 0; i < count; ++i) {
    Request* r = requests[i] == MPI_REQUEST_NULL ? nullptr : request_of(requests[i]);
    if (r && active(*r)) rank->wait(*r);
    if (r)
      settle(*r, &requests[i], at(statuses, i));
    else if (requests[i] == MPI_REQUEST_NULL)
      empty(at(statuses, i));
    else if (const int rc = NATIVE(Wait)(&requests[i], at(statuses, i)); rc != MPI_SUCCESS)
      return rc;
  }
  return MPI_SUCCESS;
}

DEFINE(Waitany, (int count, MPI_Request* requests, int* index, MPI_Status* status)) {
  const Call rank("MPI_Waitany");
  bool foreign = false;
  const auto all = listed(count, requests, foreign);
  if (!rank || (all.empty() && foreign)) return NATIVE(Waitany)(count, requests, index, status);
  *index = MPI_UNDEFINED;
  empty(status);
  if (!any_active(all)) return MPI_SUCCESS;
  rank->until([&all] { return complete(all) != nullptr; });
  const Listed found = *complete(all);
  *index = found.at;
  settle(*found.r, &requests[found.at], status);
  return MPI_SUCCESS;
}

DEFINE(Waitsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses)) {
  const Call rank("MPI_Waitsome");
  bool foreign = false;
  const auto all = listed(count, requests, foreign);
  if (!rank || (all.empty() && foreign)) return NATIVE(Waitsome)(count, requests, done, indices, statuses);
  *done = MPI_UNDEFINED;
  if (!any_active(all)) return MPI_SUCCESS;
  rank->until([&all] { return complete(all) != nullptr; });
  *done = settle_all(all, requests, indices, statuses);
  return MPI_SUCCESS;
}

// ---------------------------------------------------------------- tests

DEFINE(Test, (MPI_Request * request, int* flag, MPI_Status* status)) {
  const Call rank("MPI_Test");
  if (!rank) return NATIVE(Test)(request, flag, status);
  Request* r = *request == MPI_REQUEST_NULL ? nullptr : request_of(*request);
  if (!r && *request != MPI_REQUEST_NULL) return NATIVE(Test)(request, flag, status);
  *flag = 1;
  empty(status);
  if (!r) return MPI_SUCCESS;
  if (active(*r)) look(*rank);
  *flag = r->done ? 1 : 0;
  if (r->done) settle(*r, request, status);
  return MPI_SUCCESS;
}

DEFINE(Testall, (int count, MPI_Request* requests, int* flag, MPI_Status* statuses)) {
  const Call rank("MPI_Testall");
  bool foreign = false;
  const auto all = listed(count, requests, foreign);
  if (!rank || (all.empty() && foreign)) return NATIVE(Testall)(count, requests, flag, statuses);
  if (any_active(all)) look(*rank);
  *flag = std::all_of(all.begin(), all.end(), [](const Listed& l) { return l.r->done; }) ? 1 : 0;
  if (*flag == 0) return MPI_SUCCESS;
  for (int i = 0; i < count; ++i) empty(at(statuses, i));
  for (const Listed& l : all) settle(*l.r, &requests[l.at], at(statuses, l.at));
  return MPI_SUCCESS;
}

DEFINE(Testany, (int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status)) {
  const Call rank("MPI_Testany");
  bool foreign = false;
  const auto all = listed(count, requests, foreign);
  if (!rank || (all.empty() && foreign)) return NATIVE(Testany)(count, requests, index, flag, status);
  if (any_active(all)) look(*rank);
  *index = MPI_UNDEFINED;
  const Listed* found = complete(all);
  *flag = found || !any_active(all) ? 1 : 0;
  if (!found) {
    empty(status);
    return MPI_SUCCESS;
  }
  *index = found->at;
  settle(*found->r, &requests[found->at], status);
  return MPI_SUCCESS;
}

DEFINE(Testsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses)) {
  const Call rank("MPI_Testsome");
  bool foreign = false;
  const auto all = listed(count, requests, foreign);
  if (!rank || (all.empty() && foreign)) return NATIVE(Testsome)(count, requests, done, indices, statuses);
  if (any_active(all)) look(*rank);
  *done = any_active(all) ? settle_all(all, requests, indices, statuses) : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

// ---------------------------------------------------------------- probes

namespace {
bool found(const Rank& rank, const Request& wanted, MPI_Status* status) {
  if (wanted.peer == MPI_PROC_NULL) {
    empty(status);
    if (status != MPI_STATUS_IGNORE) status->MPI_SOURCE = MPI_PROC_NULL;
    return true;
  }
  const Message* m = rank.unexpected(wanted);
  if (!m) return false;
  empty(status);
  if (status == MPI_STATUS_IGNORE) return true;
  status->MPI_SOURCE = wanted.comm->rank_of(m->from);
  status->MPI_TAG = m->tag;
  status->count = static_cast<int>(m->bytes);
  return true;
}
}  // namespace

DEFINE(Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status)) {
  const Call rank("MPI_Probe");
  if (!rank) return NATIVE(Probe)(source, tag, comm, status);
  Request wanted;
  fill(wanted, Request::Recv, nullptr, 0, MPI_BYTE, source, tag, rank->comm(comm));
  rank->test_cost();
  rank->until([&] { return found(*rank, wanted, status); });
  return MPI_SUCCESS;
}

DEFINE(Iprobe, (int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status)) {
  const Call rank("MPI_Iprobe");
  if (!rank) return NATIVE(Iprobe)(source, tag, comm, flag, status);
  Request wanted;
  fill(wanted, Request::Recv, nullptr, 0, MPI_BYTE, source, tag, rank->comm(comm));
  look(*rank);
  *flag = found(*rank, wanted, status) ? 1 : 0;
  return MPI_SUCCESS;
}

}  // namespace retrompi::online
