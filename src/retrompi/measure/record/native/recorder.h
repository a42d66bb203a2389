// The recorder: an interposition library between a program and its MPI. One line of the trace extension
// (docs/trace-format.md) a call, written when the call returns.
//
// A function MPI_X of the program arrives here as MPI_X or, from Fortran bindings that call the profiling interface, as PMPI_X; the
// library's own is looked up as the next PMPI_X. What the library calls itself while it serves a call is not recorded.
#ifndef RETROMPI_RECORDER_H
#define RETROMPI_RECORDER_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

// Values of the trace format.
enum { T_ANY_SOURCE = -555, T_ANY_TAG = -444, T_PROC_NULL = -666, T_ROOT = -777, T_BYTE = 6 };

// A hash table from handles to records. One record may hang on another under the same handle (Req).
typedef struct {
  uint64_t *key;
  void **value;
  size_t slots, used;
} Map;
void *map_get(const Map *m, uint64_t key);
void map_put(Map *m, uint64_t key, void *value);  // replaces
void map_remove(Map *m, uint64_t key);
#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

typedef struct {
  int id;  // 0 MPI_COMM_WORLD; -1 unknown
  int size, me;
  int *world;  // rank of the communicator -> rank of the world; NULL: the same
  bool inter;
  int remote_size;
  int *remote;  // of the other side's group
  int in, out;  // neighbours
  int made;     // communicators and windows made from it so far
  int uses;     // requests that still need it
  bool freed;
} Comm;

typedef struct {
  int id;
  const Comm *comm;
  bool posted, started;  // with a group that is not empty
} Win;

typedef enum { REQ_SEND, REQ_RECV, REQ_OTHER, REQ_SILENT } ReqKind;  // REQ_SILENT: has no line of its own
typedef struct Req {
  struct Req *next;    // under the same handle: libraries give one handle to all sends that are complete at once
  MPI_Request *where;  // the program's variable, which tells such requests apart
  Comm *comm;
  int id, peer, tag;
  ReqKind kind;
  bool persistent, active, wild, seen, cancelled, picked;
} Req;

typedef struct {
  int source, tag;  // of the world
  Comm *comm;
} Message;

// What survives the process: a page of a file, mapped. The command line reads it (retrompi/measure/record/rank_state.py has the same layout).
typedef struct {
  char magic[8];
  uint64_t rank, ranks, written;  // bytes of the trace that are whole lines
  uint64_t lines, calls, phase;   // phase: 1 recording, 2 finalized, 3 MPI_Abort, 4 stopped: no room
  uint64_t cancels, unknown_requests, failed_calls, threads, unsupported;
  uint64_t overhead_ns, gap_ns, nested;
  char inside[64];  // the call that has not returned; empty between calls
} State;

typedef struct {
  bool on;
  bool silent;       // no lines are wanted: a profile only
  Profile *profile;  // NULL: none is wanted
  const char *call;  // the profile's: the call, how many bytes it moves, and when it began
  int64_t size, began;
  int world, ranks;
  int inside;    // a thread is in a call
  bool in_call;  // SMPI: this rank is
  pthread_t owner;
  int64_t last, pending, gap;
  char *at, *end, *map;  // the window of the file that is mapped
  size_t mapped;
  uint64_t base;  // of the window in the file
  int fd;
  State *state;
  Map comms, requests, windows, messages, counters;
  MPI_Comm last_handle;
  Comm *last_comm, *everybody;
  Req *spare;
  int next_request, made_comms, made_windows;
  void *scratch[4];
  size_t scratch_size[4];
} Rank;

#define API __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

// --- wrappers ---------------------------------------------------------------------------------------------------------------

void *next_function(const char *name);
#define DEFINE(name, params) DEFINE_I(name, params)
#define DEFINE_I(name, params)                                     \
  USE_I(name)                                                      \
  API int MPI_##name params __attribute__((alias("PMPI_" #name))); \
  API int PMPI_##name params
// The library's own function, called with these arguments.
#define USE(name) USE_I(name)
#define USE_I(name)                                                                             \
  static inline __typeof__(&MPI_##name) real_##name(void) {                                     \
    static __typeof__(&MPI_##name) found;                                                       \
    if (UNLIKELY(found == NULL)) found = (__typeof__(&MPI_##name))next_function("PMPI_" #name); \
    return found;                                                                               \
  }
#define REAL(name, args) REAL_I(name, args)
#define REAL_I(name, args) real_##name() args
#define NAME_OF(name) NAME_OF_I(name)
#define NAME_OF_I(name) "MPI_" #name

// Most wrappers: the call, then its line unless it was nested, failed or outside of MPI_Init .. MPI_Finalize.
#define CALL(name, args)       \
  Rank *r;                     \
  ENTER(r, NAME_OF(name));     \
  int rc = REAL(name, args);   \
  if (UNLIKELY(!r)) return rc; \
  if (UNLIKELY(rc != MPI_SUCCESS)) return failed(r, rc)

Rank *enter(void);
#define ENTER(r, what)                                        \
  do {                                                        \
    _Static_assert(sizeof(what) <= 64, "fits State::inside"); \
    (r) = enter();                                            \
    if ((r) != NULL) {                                        \
      (r)->call = (what);                                     \
      memcpy((r)->state->inside, (what), sizeof(what));       \
    }                                                         \
  } while (0)
int leave(Rank *r, int rc);
// How many bytes a call moves, for the profile: what it sends, or takes where it has nothing to send (Action::bytes of the engine).
#define SIZE(r, out, in)                        \
  do {                                          \
    if (UNLIKELY((r)->profile != NULL)) {       \
      const int64_t sent_ = (out), got_ = (in); \
      (r)->size = sent_ > 0 ? sent_ : got_;     \
    }                                           \
  } while (0)
int failed(Rank *r, int rc);
Rank *self(void);
void setup(const char *how);  // after MPI_Init
void finish(Rank *r, int phase);
void note_thread(Rank *r);

// --- lines ------------------------------------------------------------------------------------------------------------------

char *line(Rank *r, const char *action, size_t room);  // "RANK ACTION" with any computation before it
void end_line(Rank *r, char *p);
void comment(Rank *r, const char *text);
void unsupported(Rank *r, const char *action);

static inline char *text(char *p, const char *s) {
  const size_t n = strlen(s);
  memcpy(p, s, n);
  return p + n;
}
char *digits(char *p, int64_t value);
static inline char *num(char *p, int64_t value) {
  *p++ = ' ';
  return digits(p, value);
}
#define ATTR(p, name, value) digits(text((p), " " name "="), (value))
char *of_comm(char *p, const Comm *c);
char *group_text(char *p, const int *ranks, int n);  // " 0-3" or " 5,2,7"
#define ROOM 320                                     // of everything in a line but lists
#define ROOM_EACH 24

void *scratch(Rank *r, int which, size_t bytes);

// --- types ------------------------------------------------------------------------------------------------------------------

typedef struct {
  int64_t count;
  int code;
} Data;
Data data_of(int64_t count, MPI_Datatype type);  // derived types as bytes
int64_t bytes_of(int64_t count, MPI_Datatype type);

// --- communicators, requests, windows -----------------------------------------------------------------------------------

void register_comms(Rank *r);
Comm *comm_of(Rank *r, MPI_Comm handle);
void release_comm(Comm *c);
int agree(Rank *r, Comm *parent, MPI_Comm over, int kind, int leader);  // an identity all members of `over` know
int *ranks_of_group(Rank *r, MPI_Group group, int *n);                  // of the world; free()
static inline int peer(const Comm *c, int rank) {
  if (UNLIKELY(rank < 0)) return rank == MPI_ANY_SOURCE ? T_ANY_SOURCE : T_PROC_NULL;
  if (c->inter) return rank < c->remote_size ? c->remote[rank] : T_PROC_NULL;
  return c->world != NULL ? c->world[rank] : rank;
}
static inline int tag_of(int tag) { return tag == MPI_ANY_TAG ? T_ANY_TAG : tag; }
static inline int root_of(const Comm *c, int root) {
  if (!c->inter) return root;
  return root == MPI_ROOT ? T_ROOT : root == MPI_PROC_NULL ? T_PROC_NULL : root;
}
static inline bool at_root(const Comm *c, int root) { return c->inter ? root == MPI_ROOT : root == c->me; }

Req *add_request(Rank *r, MPI_Request *handle, ReqKind kind, Comm *c, int peer, int tag);
Req *find_request(Rank *r, MPI_Request *where, MPI_Request handle);
char *matched(char *p, const Comm *c, const MPI_Status *status);  // " from=R mtag=T"
Win *window_of(Rank *r, MPI_Win handle);

#endif
