// The recorder: an interposition library between a program and its MPI. It writes one line of the trace extension
// (docs/trace-format.md) per call, when the call returns.
//
// A function MPI_X of the program arrives here as MPI_X or, from Fortran bindings that call the profiling interface, as PMPI_X; the
// library's own is looked up as the next PMPI_X. Calls that the library itself makes while serving a call are not recorded.
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

// A hash table from handles to records. Records with the same handle are chained (Req).
typedef struct {
  uint64_t *key;
  void **value;
  size_t slots, used;
} Map;
void *map_get(const Map *m, uint64_t key);
void map_put(Map *m, uint64_t key, void *value);  // replaces an existing entry
void map_remove(Map *m, uint64_t key);
#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

typedef struct {
  int id;  // 0 MPI_COMM_WORLD; -1 unknown
  int size, me;
  int *world;  // rank of the communicator -> world rank; NULL: identical
  bool inter;
  int remote_size;
  int *remote;  // world ranks of the remote group
  int in, out;  // neighbours in the topology
  int made;     // communicators and windows made from it so far
  int uses;     // requests that still need it
  bool freed;
} Comm;

typedef struct {
  int id;
  const Comm *comm;
  bool posted, started;  // with a group that is not empty
} Win;

typedef enum { REQ_SEND, REQ_RECV, REQ_OTHER, REQ_SILENT } ReqKind;  // REQ_SILENT: writes no line of its own
typedef struct Req {
  struct Req *next;    // same handle: libraries use one handle for all sends that complete immediately
  MPI_Request *where;  // the program's variable, which distinguishes such requests
  Comm *comm;
  int id, peer, tag;
  ReqKind kind;
  bool persistent, active, wild, seen, cancelled, picked;
} Req;

typedef struct {
  int source, tag;  // world rank
  Comm *comm;
} Message;

// State that survives the process: one mapped page of a file. Read by retrompi/measure/record/rank_state.py, which has the same layout.
typedef struct {
  char magic[8];
  uint64_t rank, ranks, written;  // written: bytes of the trace in complete lines
  uint64_t lines, calls, phase;   // phase: 1 recording, 2 finalized, 3 MPI_Abort, 4 stopped: disk full
  uint64_t cancels, unknown_requests, failed_calls, threads, unsupported;
  uint64_t overhead_ns, gap_ns, nested;
  char inside[64];  // the call that has not returned; empty between calls
} State;

typedef struct {
  bool on;
  bool silent;       // no trace is wanted, only a profile
  Profile *profile;  // NULL: no profile is wanted
  const char *call;  // for the profile: the current call, how many bytes it moves, and when it began
  int64_t size, began;
  bool lined;  // the current call has a line of the trace
  int world, ranks;
  int inside;    // number of threads inside a call
  bool in_call;  // SMPI: this rank is inside a call
  pthread_t owner;
  int64_t last, pending, gap;
  char *at, *end, *map;  // the mapped window of the file
  size_t mapped;
  uint64_t base;  // offset of the window in the file
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
// Calls the library's own function with these arguments.
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

// Most wrappers: the call, then its line unless the call was nested, failed or outside MPI_Init .. MPI_Finalize.
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
// How many bytes a call moves, for the profile: what it sends, or receives where it sends nothing (Action::bytes of the engine).
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

char *line(Rank *r, const char *action, size_t space);  // "RANK ACTION", preceded by a line for any pending computation
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
#define LINE_SPACE 320                               // for everything in a line except lists
#define SPACE_EACH 24

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
int agree(Rank *r, Comm *parent, MPI_Comm over, int kind, int leader);  // an identifier that all members of `over` agree on
int *ranks_of_group(Rank *r, MPI_Group group, int *n);                  // world ranks; the caller frees them
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
