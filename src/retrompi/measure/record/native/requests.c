// Requests: which ones a wait or a test was called with, which of them it completed, and what a wildcard matched.
#include "recorder.h"

Req *add_request(Rank *r, MPI_Request *handle, ReqKind kind, Comm *c, int peer_rank, int tag) {
  Req *q = r->spare;
  if (q != NULL)
    r->spare = q->next;
  else if ((q = malloc(sizeof *q)) == NULL)
    abort();
  *q = (Req){.where = handle, .comm = c, .id = kind == REQ_SILENT ? 0 : ++r->next_request, .peer = peer_rank, .tag = tag, .kind = kind};
  q->active = true;
  q->wild = kind == REQ_RECV && (peer_rank == T_ANY_SOURCE || (tag == T_ANY_TAG && peer_rank != T_PROC_NULL));
  c->uses++;
  Req *first = map_get(&r->requests, KEY(*handle));
  if (first == NULL) {
    map_put(&r->requests, KEY(*handle), q);
  } else {
    while (first->next != NULL) first = first->next;
    first->next = q;
  }
  return q;
}

// The request behind a handle. Among several with the same handle the one whose variable this is, else the oldest.
Req *find_request(Rank *r, MPI_Request *where, MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL) return NULL;
  Req *const first = map_get(&r->requests, KEY(handle));
  if (first == NULL) {
    r->state->unknown_requests++;
    return NULL;
  }
  if (first->next == NULL) return first->picked ? NULL : first;
  for (Req *q = first; q != NULL; q = q->next)
    if (q->where == where && !q->picked) return q;
  for (Req *q = first; q != NULL; q = q->next)
    if (!q->picked) return q;
  return NULL;
}

static void drop(Rank *r, MPI_Request handle, Req *q) {
  Req *first = map_get(&r->requests, KEY(handle));
  if (first == q) {
    if (q->next != NULL)
      map_put(&r->requests, KEY(handle), q->next);
    else
      map_remove(&r->requests, KEY(handle));
  } else {
    while (first != NULL && first->next != q) first = first->next;
    if (first == NULL) return;
    first->next = q->next;
  }
  q->comm->uses--;
  release_comm(q->comm);
  q->next = r->spare;
  r->spare = q;
}

char *matched(char *p, const Comm *c, const MPI_Status *status) {
  if (status->MPI_SOURCE == MPI_PROC_NULL) return p;
  p = ATTR(p, "from", peer(c, status->MPI_SOURCE));
  return ATTR(p, "mtag", status->MPI_TAG);
}

// "SRC DST TAG", the key under which SMPI stores it.
static char *key_of(char *p, const Rank *r, const Req *q) {
  if (q->kind == REQ_OTHER) return p;
  const bool receive = q->kind == REQ_RECV;
  p = num(p, receive ? q->peer : r->world);
  p = num(p, receive ? r->world : q->peer);
  return num(p, q->tag);
}

// MPI_Cancel succeeded: the line of the receive or send is removed when the trace is assembled, since it never took place.
static void told_cancelled(Rank *r, const Req *q) {
  char row[48];
  *digits(text(row, "cancelled req="), q->id) = 0;
  comment(r, row);
}

static bool was_cancelled(Rank *r, const Req *q, const MPI_Status *status) {
  if (!q->cancelled) return false;
  int flag = 0;
  PMPI_Test_cancelled(status, &flag);
  if (flag) told_cancelled(r, q);
  return flag != 0;
}

// A request is complete: its record is freed, or becomes inactive when it is persistent.
static void complete(Rank *r, MPI_Request handle, Req *q) {
  q->picked = false;
  if (q->persistent) {
    q->active = q->seen = q->cancelled = false;
    return;
  }
  drop(r, handle, q);
}

static bool silent(const Req *q) { return q == NULL || q->kind == REQ_SILENT || !q->active || q->seen; }
static bool needs_status(const Req *q) { return q != NULL && (q->wild || q->cancelled); }

DEFINE(Wait, (MPI_Request * request, MPI_Status *status)) {
  const MPI_Request handle = *request;
  MPI_Status own;
  Rank *r;
  ENTER(r, "MPI_Wait");
  Req *const q = r != NULL ? find_request(r, request, handle) : NULL;
  if (needs_status(q) && status == MPI_STATUS_IGNORE) status = &own;
  const int rc = REAL(Wait, (request, status));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  if (q == NULL) return leave(r, rc);
  if (!silent(q) && !was_cancelled(r, q, status)) {
    char *p = ATTR(key_of(line(r, "wait", 0), r, q), "req", q->id);
    if (q->wild) p = matched(p, q->comm, status);
    end_line(r, p);
  }
  complete(r, handle, q);
  return leave(r, rc);
}

static void tested(Rank *r, MPI_Request handle, Req *q, int flag, const MPI_Status *status, bool keep) {
  if (q == NULL) return;
  if (!silent(q) && !(flag && was_cancelled(r, q, status))) {
    char *p = ATTR(key_of(line(r, "test", 0), r, q), "req", q->id);
    p = ATTR(p, "flag", flag != 0);
    if (flag && q->wild) p = matched(p, q->comm, status);
    end_line(r, p);
  }
  if (!flag) return;
  if (keep)
    q->seen = q->active;  // complete in the trace; the later wait has nothing left to wait for
  else
    complete(r, handle, q);
}

DEFINE(Test, (MPI_Request * request, int *flag, MPI_Status *status)) {
  const MPI_Request handle = *request;
  MPI_Status own;
  Rank *r;
  ENTER(r, "MPI_Test");
  Req *const q = r != NULL ? find_request(r, request, handle) : NULL;
  if (needs_status(q) && status == MPI_STATUS_IGNORE) status = &own;
  const int rc = REAL(Test, (request, flag, status));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  tested(r, handle, q, *flag, status, false);
  return leave(r, rc);
}

DEFINE(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status)) {
  MPI_Status own;
  Rank *r;
  ENTER(r, "MPI_Request_get_status");
  Req *const q = r != NULL ? find_request(r, NULL, request) : NULL;
  if (needs_status(q) && status == MPI_STATUS_IGNORE) status = &own;
  const int rc = REAL(Request_get_status, (request, flag, status));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  tested(r, request, q, *flag, status, true);
  return leave(r, rc);
}

// --- several requests at once -----------------------------------------------------------------------------------------------

typedef struct {
  Req **of;              // parallel to the program's array; NULL: null, unknown or already matched
  MPI_Request *handles;  // as they were before the call
  int n, loud;           // loud: number of requests that have a line
  bool status;           // a status is needed
} Many;

static Many look_at(Rank *r, int n, MPI_Request requests[]) {
  Many m = {.n = n};
  const size_t size = (size_t)(n > 0 ? n : 1);
  m.of = scratch(r, 0, size * sizeof *m.of);
  m.handles = scratch(r, 1, size * sizeof *m.handles);
  for (int i = 0; i < n; i++) {
    m.handles[i] = requests[i];
    Req *const q = find_request(r, &requests[i], requests[i]);
    m.of[i] = q;
    if (q == NULL) continue;
    q->picked = true;  // so that the next use of the same handle finds another request
    m.loud += !silent(q);
    m.status |= needs_status(q);
  }
  for (int i = 0; i < n; i++)
    if (m.of[i] != NULL) m.of[i]->picked = false;
  return m;
}

// The same before a call with an array of statuses: they go into a buffer of ours where the program ignores them and the line needs them.
static Many looked_at(Rank *r, int n, MPI_Request requests[], MPI_Status **statuses) {
  Many m = {0};
  if (r == NULL) return m;
  m = look_at(r, n, requests);
  if (m.status && *statuses == MPI_STATUSES_IGNORE) *statuses = scratch(r, 2, (size_t)n * sizeof **statuses);
  return m;
}

static char *named(Rank *r, const char *action, const Many *m) {
  char *p = num(line(r, action, (size_t)m->loud * 6 * SPACE_EACH), m->loud);
  p = text(p, " reqs=");
  bool first = true;
  for (int i = 0; i < m->n; i++) {
    if (silent(m->of[i])) continue;
    if (!first) *p++ = ',';
    first = false;
    p = digits(p, m->of[i]->id);
  }
  return p;
}

// " from=A:R,.. mtag=A:T,.." of the wildcards among the requests whose places are in `which` (NULL: all).
static char *matches(char *p, const Many *m, const int *which, int n, const MPI_Status *statuses, bool by_place) {
  for (int tag = 0; tag < 2; tag++) {
    bool first = true;
    for (int k = 0; k < n; k++) {
      const int i = which != NULL ? which[k] : k;
      const Req *const q = m->of[i];
      if (silent(q) || !q->wild) continue;
      const MPI_Status *const s = &statuses[by_place ? i : k];
      if (s->MPI_SOURCE == MPI_PROC_NULL) continue;
      p = first ? text(p, tag ? " mtag=" : " from=") : text(p, ",");
      first = false;
      p = text(digits(p, q->id), ":");
      p = digits(p, tag ? s->MPI_TAG : peer(q->comm, s->MPI_SOURCE));
    }
  }
  return p;
}

// Cancelled requests write no further lines; their comments precede the line.
static void drop_cancelled(Rank *r, Many *m, const int *which, int n, const MPI_Status *statuses, bool by_place) {
  for (int k = 0; k < n; k++) {
    const int i = which != NULL ? which[k] : k;
    Req *const q = m->of[i];
    if (silent(q) || !q->cancelled || !was_cancelled(r, q, &statuses[by_place ? i : k])) continue;
    q->seen = true;
    m->loud--;
  }
}

static int all_complete(Rank *r, const char *action, Many *m, const MPI_Status *statuses, bool testing) {
  drop_cancelled(r, m, NULL, m->n, statuses, true);
  if (m->loud > 0) {
    char *p = named(r, action, m);
    if (testing) {
      p = text(p, " done=");
      bool first = true;
      for (int i = 0; i < m->n; i++) {
        if (silent(m->of[i])) continue;
        if (!first) *p++ = ',';
        first = false;
        p = digits(p, m->of[i]->id);
      }
    }
    if (m->status) p = matches(p, m, NULL, m->n, statuses, true);
    end_line(r, p);
  }
  for (int i = 0; i < m->n; i++)
    if (m->of[i] != NULL) complete(r, m->handles[i], m->of[i]);
  return leave(r, MPI_SUCCESS);
}

DEFINE(Waitall, (int n, MPI_Request requests[], MPI_Status *statuses)) {
  Rank *r;
  ENTER(r, "MPI_Waitall");
  Many m = looked_at(r, n, requests, &statuses);
  const int rc = REAL(Waitall, (n, requests, statuses));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  return all_complete(r, "waitall", &m, statuses, false);
}

static int none_complete(Rank *r, const char *action, const Many *m) {
  if (m->loud > 0) end_line(r, text(named(r, action, m), " done=none"));
  return leave(r, MPI_SUCCESS);
}

DEFINE(Testall, (int n, MPI_Request requests[], int *flag, MPI_Status *statuses)) {
  Rank *r;
  ENTER(r, "MPI_Testall");
  Many m = looked_at(r, n, requests, &statuses);
  const int rc = REAL(Testall, (n, requests, flag, statuses));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  return *flag ? all_complete(r, "testall", &m, statuses, true) : none_complete(r, "testall", &m);
}

// Some of them are complete: those at the indices `which`; the k-th has the k-th status.
static int some_complete(Rank *r, const char *action, Many *m, const int *which, int n, const MPI_Status *statuses) {
  drop_cancelled(r, m, which, n, statuses, false);
  if (m->loud > 0) {
    char *p = text(named(r, action, m), " done=");
    bool first = true;
    for (int k = 0; k < n; k++) {
      const Req *const q = m->of[which[k]];
      if (silent(q)) continue;
      if (!first) *p++ = ',';
      first = false;
      p = digits(p, q->id);
    }
    if (first) p = text(p, "none");
    if (m->status) p = matches(p, m, which, n, statuses, false);
    end_line(r, p);
  }
  for (int k = 0; k < n; k++)
    if (m->of[which[k]] != NULL) complete(r, m->handles[which[k]], m->of[which[k]]);
  return leave(r, MPI_SUCCESS);
}

DEFINE(Waitany, (int n, MPI_Request requests[], int *index, MPI_Status *status)) {
  MPI_Status own;
  Rank *r;
  ENTER(r, "MPI_Waitany");
  Many m = {0};
  if (r != NULL) {
    m = look_at(r, n, requests);
    if (m.status && status == MPI_STATUS_IGNORE) status = &own;
  }
  const int rc = REAL(Waitany, (n, requests, index, status));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  if (*index == MPI_UNDEFINED) return leave(r, rc);
  return some_complete(r, "waitAny", &m, index, 1, status);
}

DEFINE(Testany, (int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)) {
  MPI_Status own;
  Rank *r;
  ENTER(r, "MPI_Testany");
  Many m = {0};
  if (r != NULL) {
    m = look_at(r, n, requests);
    if (m.status && status == MPI_STATUS_IGNORE) status = &own;
  }
  const int rc = REAL(Testany, (n, requests, index, flag, status));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  if (!*flag) return none_complete(r, "testany", &m);
  if (*index == MPI_UNDEFINED) return leave(r, rc);
  return some_complete(r, "testany", &m, index, 1, status);
}

DEFINE(Waitsome, (int n, MPI_Request requests[], int *count, int indices[], MPI_Status *statuses)) {
  Rank *r;
  ENTER(r, "MPI_Waitsome");
  Many m = looked_at(r, n, requests, &statuses);
  const int rc = REAL(Waitsome, (n, requests, count, indices, statuses));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  if (*count == MPI_UNDEFINED) return leave(r, rc);
  return some_complete(r, "waitsome", &m, indices, *count, statuses);
}

DEFINE(Testsome, (int n, MPI_Request requests[], int *count, int indices[], MPI_Status *statuses)) {
  Rank *r;
  ENTER(r, "MPI_Testsome");
  Many m = looked_at(r, n, requests, &statuses);
  const int rc = REAL(Testsome, (n, requests, count, indices, statuses));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  if (*count == MPI_UNDEFINED) return leave(r, rc);
  return some_complete(r, "testsome", &m, indices, *count, statuses);
}

// --- persistent requests, freeing, cancelling -------------------------------------------------------------------------------

DEFINE(Start, (MPI_Request * request)) {
  const MPI_Request handle = *request;
  CALL(Start, (request));
  Req *const q = find_request(r, request, handle);
  if (q != NULL && q->kind != REQ_SILENT) {
    q->active = true;
    end_line(r, ATTR(key_of(line(r, "start", 0), r, q), "req", q->id));
  }
  return leave(r, rc);
}

DEFINE(Startall, (int n, MPI_Request requests[])) {
  Rank *r;
  ENTER(r, "MPI_Startall");
  Many m = {0};
  if (r != NULL) m = look_at(r, n, requests);
  const int rc = REAL(Startall, (n, requests));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  m.loud = 0;
  for (int i = 0; i < n; i++)
    if (m.of[i] != NULL && m.of[i]->kind != REQ_SILENT) {
      m.of[i]->active = true;
      m.loud++;
    }
  if (m.loud > 0) end_line(r, named(r, "startall", &m));
  return leave(r, rc);
}

DEFINE(Request_free, (MPI_Request * request)) {
  MPI_Request handle = *request;
  Rank *r;
  ENTER(r, "MPI_Request_free");
  Req *const q = r != NULL ? find_request(r, request, handle) : NULL;
  const int rc = REAL(Request_free, (request));
  if (r == NULL) return rc;
  if (rc != MPI_SUCCESS) return failed(r, rc);
  if (q != NULL) {
    if (q->kind == REQ_RECV && q->cancelled && !q->persistent)
      told_cancelled(r, q);  // whether the cancellation came too late can no longer be determined
    else if (q->kind != REQ_SILENT && !q->seen)
      end_line(r, ATTR(key_of(line(r, "requestFree", 0), r, q), "req", q->id));
    drop(r, handle, q);
  }
  return leave(r, rc);
}

DEFINE(Cancel, (MPI_Request * request)) {
  CALL(Cancel, (request));
  Req *const q = find_request(r, request, *request);
  if (q != NULL) q->cancelled = true;
  r->state->cancels++;
  return leave(r, rc);
}

// --- probes -----------------------------------------------------------------------------------------------------------------

static void probed(Rank *r, const char *action, Comm *c, int source, int tag, int flag, const MPI_Status *status) {
  char *p = num(num(line(r, action, 0), peer(c, source)), tag_of(tag));
  if (flag >= 0) p = ATTR(p, "flag", flag != 0);
  if (flag != 0 && (source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG)) p = matched(p, c, status);
  end_line(r, of_comm(p, c));
}

DEFINE(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status)) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  CALL(Probe, (source, tag, comm, status));
  probed(r, "probe", comm_of(r, comm), source, tag, -1, status);
  return leave(r, rc);
}

DEFINE(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  CALL(Iprobe, (source, tag, comm, flag, status));
  probed(r, "iprobe", comm_of(r, comm), source, tag, *flag != 0, status);
  return leave(r, rc);
}

// A message taken out of the queue by a matched probe is received later by its handle: source and tag are known.
static void hold(Rank *r, Comm *c, MPI_Message message, const MPI_Status *status) {
  Message *m = map_get(&r->messages, KEY(message));
  if (m == NULL) {
    if ((m = malloc(sizeof *m)) == NULL) abort();
    map_put(&r->messages, KEY(message), m);
  }
  *m = (Message){.source = peer(c, status->MPI_SOURCE), .tag = status->MPI_TAG, .comm = c};
}

DEFINE(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  CALL(Mprobe, (source, tag, comm, message, status));
  Comm *const c = comm_of(r, comm);
  probed(r, "probe", c, source, tag, -1, status);
  hold(r, c, *message, status);
  return leave(r, rc);
}

DEFINE(Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  CALL(Improbe, (source, tag, comm, flag, message, status));
  Comm *const c = comm_of(r, comm);
  probed(r, "iprobe", c, source, tag, *flag != 0, status);
  if (*flag) hold(r, c, *message, status);
  return leave(r, rc);
}
