// Calls with counts (compiled twice, see counted.h), barriers, windows, and calls the recorder refuses.
#include "recorder.h"

// "PEER TAG COUNT TYPE"
static char *point(char *p, int peer_rank, int tag, int64_t count, MPI_Datatype type) {
  const Data d = data_of(count, type);
  return num(num(num(num(p, peer_rank), tag), d.count), d.code);
}

// A call that returns a request: `lasting` (persistent) ones are started later.
static void posted(Rank *r, const char *action, Comm *c, ReqKind kind, int peer_rank, int tag, int64_t count, MPI_Datatype type, MPI_Request *request,
                   bool lasting) {
  Req *const q = add_request(r, request, kind, c, peer_rank, tag);
  if (lasting) {
    q->persistent = true;
    q->active = false;
  }
  SIZE(r, bytes_of(count, type), 0);
  char *p = point(line(r, action, 0), peer_rank, tag, count, type);
  end_line(r, ATTR(of_comm(p, c), "req", q->id));
}

// "SCOUNT RCOUNT ROOT STYPE RTYPE"
static char *fields_of(char *p, Data out, Data in, int root) { return num(num(num(num(num(p, out.count), in.count), root), out.code), in.code); }

static void file_line(Rank *r, const char *name, int64_t count, MPI_Datatype type) {
  SIZE(r, bytes_of(count, type), 0);
  char *p = text(line(r, "IO - ", 0), name + strlen("File_"));
  r->state->unsupported++;
  end_line(r, num(p, bytes_of(count, type)));
}

static int beyond(Rank *r, const char *action, MPI_Request *request) {
  unsupported(r, action);
  if (request != NULL) add_request(r, request, REQ_SILENT, r->everybody, 0, 0)->persistent = strcmp(action, "isendRecv") != 0;
  return leave(r, MPI_SUCCESS);
}

#define VECTOR(name, type)                                                              \
  static char *name(char *p, const type *counts, int n, int64_t each, bool with_sum) {  \
    int64_t sum = 0;                                                                    \
    for (int i = 0; i < n; i++) sum += (int64_t)counts[i];                              \
    if (with_sum) p = num(p, sum * each);                                               \
    for (int i = 0; i < n; i++) p = num(p, (int64_t)counts[i] * each);                  \
    return p;                                                                           \
  }                                                                                     \
  static int64_t name##_bytes(const type *counts, int n, MPI_Datatype all) {            \
    int64_t sum = 0;                                                                    \
    for (int i = 0; i < n; i++) sum += (int64_t)counts[i];                              \
    return bytes_of(sum, all);                                                          \
  }                                                                                     \
  static int64_t name##_each_bytes(const type *counts, int n, const MPI_Datatype *of) { \
    int64_t sum = 0;                                                                    \
    for (int i = 0; i < n; i++) sum += bytes_of((int64_t)counts[i], of[i]);             \
    return sum;                                                                         \
  }
VECTOR(int_vector, int)
#define X(name) name
#define COUNT int
#define DISP int
#define vector int_vector
#define vector_bytes int_vector_bytes
#define each_bytes int_vector_each_bytes
#include "counted.h"
#undef X
#undef COUNT
#undef DISP
#undef vector
#undef vector_bytes
#undef each_bytes

#ifdef HAVE_Send_c
VECTOR(long_vector, MPI_Count)
#define X(name) name##_c
#define COUNT MPI_Count
#define DISP MPI_Aint
#define vector long_vector
#define vector_bytes long_vector_bytes
#define each_bytes long_vector_each_bytes
#include "counted.h"
#undef X
#undef COUNT
#undef DISP
#undef vector
#undef vector_bytes
#undef each_bytes
#endif

DEFINE(Barrier, (MPI_Comm comm)) {
  CALL(Barrier, (comm));
  const Comm *const c = comm_of(r, comm);
  end_line(r, of_comm(line(r, "barrier", 0), c));
  return leave(r, rc);
}

DEFINE(Ibarrier, (MPI_Comm comm, MPI_Request *request)) {
  CALL(Ibarrier, (comm, request));
  Comm *const c = comm_of(r, comm);
  char *p = of_comm(line(r, "ibarrier", 0), c);
  end_line(r, ATTR(p, "req", add_request(r, request, REQ_OTHER, c, 0, 0)->id));
  return leave(r, rc);
}

// --- windows ----------------------------------------------------------------------------------------------------------------

Win *window_of(Rank *r, MPI_Win handle) {
  Win *w = map_get(&r->windows, KEY(handle));
  if (w == NULL) {  // its creation was not recorded
    unsupported(r, "foreign_comm");
    if ((w = calloc(1, sizeof *w)) == NULL) abort();
    w->id = 1;
    w->comm = r->everybody;
    map_put(&r->windows, KEY(handle), w);
  }
  return w;
}

static int open_window(Rank *r, MPI_Comm comm, int64_t bytes, MPI_Win handle) {
  Comm *const c = comm_of(r, comm);
  Win *const w = calloc(1, sizeof *w);
  if (w == NULL) abort();
  w->comm = c;
  w->id = agree(r, c, comm, 1, c->world != NULL ? c->world[0] : 0);
  c->uses++;
  map_put(&r->windows, KEY(handle), w);
  end_line(r, of_comm(num(num(line(r, "win_create", 0), w->id), bytes), c));
  return leave(r, MPI_SUCCESS);
}

DEFINE(Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)) {
  CALL(Win_create, (base, size, unit, info, comm, win));
  return open_window(r, comm, (int64_t)size, *win);
}

DEFINE(Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)) {
  CALL(Win_allocate, (size, unit, info, comm, base, win));
  return open_window(r, comm, (int64_t)size, *win);
}

DEFINE(Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)) {
  CALL(Win_allocate_shared, (size, unit, info, comm, base, win));
  return open_window(r, comm, (int64_t)size, *win);
}

DEFINE(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win)) {
  CALL(Win_create_dynamic, (info, comm, win));
  return open_window(r, comm, 0, *win);
}

DEFINE(Win_free, (MPI_Win * win)) {
  const MPI_Win handle = *win;
  CALL(Win_free, (win));
  Win *const w = window_of(r, handle);
  end_line(r, num(line(r, "win_free", 0), w->id));
  map_remove(&r->windows, KEY(handle));
  Comm *const c = (Comm *)w->comm;
  c->uses--;
  release_comm(c);
  free(w);
  return leave(r, rc);
}

#define WIN_BARE(name, params, args)                                    \
  DEFINE(name, params) {                                                \
    CALL(name, args);                                                   \
    end_line(r, ATTR(line(r, #name, 0), "win", window_of(r, win)->id)); \
    return leave(r, rc);                                                \
  }
WIN_BARE(Win_fence, (int assert_, MPI_Win win), (assert_, win))
WIN_BARE(Win_flush_all, (MPI_Win win), (win))
WIN_BARE(Win_flush_local_all, (MPI_Win win), (win))
WIN_BARE(Win_lock_all, (int assert_, MPI_Win win), (assert_, win))
WIN_BARE(Win_unlock_all, (MPI_Win win), (win))

#define WIN_TARGET(name)                                                        \
  DEFINE(name, (int to, MPI_Win win)) {                                         \
    CALL(name, (to, win));                                                      \
    const Win *const w = window_of(r, win);                                     \
    end_line(r, ATTR(num(line(r, #name, 0), peer(w->comm, to)), "win", w->id)); \
    return leave(r, rc);                                                        \
  }
WIN_TARGET(Win_flush)
WIN_TARGET(Win_flush_local)
WIN_TARGET(Win_unlock)

DEFINE(Win_lock, (int kind, int to, int assert_, MPI_Win win)) {
  CALL(Win_lock, (kind, to, assert_, win));
  const Win *const w = window_of(r, win);
  char *p = num(num(line(r, "Win_lock", 0), peer(w->comm, to)), kind == MPI_LOCK_EXCLUSIVE);
  end_line(r, ATTR(p, "win", w->id));
  return leave(r, rc);
}

// An epoch with an empty group is no epoch: the format has no empty group.
static bool epoch(Rank *r, const char *action, MPI_Group group, const Win *w) {
  int n = 0;
  int *const members = ranks_of_group(r, group, &n);
  if (n > 0) {
    char *p = group_text(line(r, action, (size_t)n * SPACE_EACH), members, n);
    end_line(r, ATTR(p, "win", w->id));
  }
  free(members);
  return n > 0;
}

DEFINE(Win_post, (MPI_Group group, int assert_, MPI_Win win)) {
  CALL(Win_post, (group, assert_, win));
  Win *const w = window_of(r, win);
  w->posted = epoch(r, "Win_post", group, w);
  return leave(r, rc);
}

DEFINE(Win_start, (MPI_Group group, int assert_, MPI_Win win)) {
  CALL(Win_start, (group, assert_, win));
  Win *const w = window_of(r, win);
  w->started = epoch(r, "Win_start", group, w);
  return leave(r, rc);
}

static void end_epoch(Rank *r, const char *action, const Win *w, bool *open) {
  if (*open) end_line(r, ATTR(line(r, action, 0), "win", w->id));
  *open = false;
}

DEFINE(Win_complete, (MPI_Win win)) {
  CALL(Win_complete, (win));
  Win *const w = window_of(r, win);
  end_epoch(r, "Win_complete", w, &w->started);
  return leave(r, rc);
}

DEFINE(Win_wait, (MPI_Win win)) {
  CALL(Win_wait, (win));
  Win *const w = window_of(r, win);
  end_epoch(r, "Win_wait", w, &w->posted);
  return leave(r, rc);
}

DEFINE(Win_test, (MPI_Win win, int *flag)) {
  CALL(Win_test, (win, flag));
  Win *const w = window_of(r, win);
  if (*flag) end_epoch(r, "Win_wait", w, &w->posted);
  return leave(r, rc);
}

DEFINE(Fetch_and_op, (const void *buf, void *result, MPI_Datatype type, int to, MPI_Aint at, MPI_Op op, MPI_Win win)) {
  CALL(Fetch_and_op, (buf, result, type, to, at, op, win));
  SIZE(r, bytes_of(1, type), 0);
  const Win *const w = window_of(r, win);
  end_line(r, ATTR(point(line(r, "Fetch_and_op", 0), peer(w->comm, to), 0, 1, type), "win", w->id));
  return leave(r, rc);
}

#ifdef RECORD_SMPI  // smpi.h declares these two without const
#define CONST
#else
#define CONST const
#endif
DEFINE(Compare_and_swap, (const void *buf, CONST void *with, void *result, MPI_Datatype type, int to, MPI_Aint at, MPI_Win win)) {
  CALL(Compare_and_swap, (buf, with, result, type, to, at, win));
  SIZE(r, bytes_of(1, type), 0);
  const Win *const w = window_of(r, win);
  end_line(r, ATTR(point(line(r, "Compare_and_swap", 0), peer(w->comm, to), 0, 1, type), "win", w->id));
  return leave(r, rc);
}

// --- refused calls ----------------------------------------------------------------------------------------------------------

#define REFUSED(name, action, params, args) \
  DEFINE(name, params) {                    \
    CALL(name, args);                       \
    return beyond(r, action, NULL);         \
  }
REFUSED(Comm_spawn, "spawn", (const char *command, char *argv[], int n, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made, int errors[]),
        (command, argv, n, info, root, comm, made, errors))
REFUSED(Comm_spawn_multiple, "spawn",
        (int count, char *commands[], char **argvs[], CONST int n[], CONST MPI_Info info[], int root, MPI_Comm comm, MPI_Comm *made, int errors[]),
        (count, commands, argvs, n, info, root, comm, made, errors))
REFUSED(Comm_accept, "spawn", (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made), (port, info, root, comm, made))
REFUSED(Comm_connect, "spawn", (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made), (port, info, root, comm, made))
REFUSED(Comm_join, "spawn", (int fd, MPI_Comm *made), (fd, made))

DEFINE(Grequest_start, (MPI_Grequest_query_function * query, MPI_Grequest_free_function *free_, MPI_Grequest_cancel_function *cancel, void *extra,
                        MPI_Request *request)) {
  CALL(Grequest_start, (query, free_, cancel, extra, request));
  unsupported(r, "generalizedRequest");
  add_request(r, request, REQ_SILENT, r->everybody, 0, 0);
  return leave(r, rc);
}

#ifdef HAVE_Psend_init
DEFINE(Psend_init,
       (const void *buf, int parts, MPI_Count n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)) {
  CALL(Psend_init, (buf, parts, n, type, to, tag, comm, info, request));
  return beyond(r, "partitioned", request);
}
DEFINE(Precv_init, (void *buf, int parts, MPI_Count n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)) {
  CALL(Precv_init, (buf, parts, n, type, from, tag, comm, info, request));
  return beyond(r, "partitioned", request);
}
#endif
#ifdef HAVE_Bcast_init
DEFINE(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request)) {
  CALL(Barrier_init, (comm, info, request));
  return beyond(r, "persistentCollective", request);
}
#endif

DEFINE(File_open, (MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *f)) {
  CALL(File_open, (comm, name, mode, info, f));
  file_line(r, "File_open", 0, MPI_BYTE);
  return leave(r, rc);
}
DEFINE(File_close, (MPI_File * f)) {
  CALL(File_close, (f));
  file_line(r, "File_close", 0, MPI_BYTE);
  return leave(r, rc);
}
