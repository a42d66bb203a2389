// Communicators and topologies: their members, under an identifier that all members agree on.
#include "recorder.h"

#ifndef RECORD_SMPI
USE(Bcast)
USE(Allreduce)
#endif

// --- identifiers ------------------------------------------------------------------------------------------------------------

#ifdef RECORD_SMPI
// Under SMPI all ranks live in this process: the first member to arrive at the n-th object made from a parent numbers it, without
// simulating a message.
static struct { int kind, parent, sequence, leader, id; } * made;
static int made_count, made_capacity, numbered[2];

// Groups that do not share all members may begin with the same rank: a group of participants is known by all of them.
static int of_group(const Comm *c) {
  uint32_t h = 2166136261u;
  for (int i = 0; i < c->size; i++) h = (h ^ (uint32_t)(c->world != NULL ? c->world[i] : i)) * 16777619u;
  return (int)(1u << 30 | h >> 2);
}

static int look_up(int kind, int parent, int sequence, int leader) {
  for (int i = made_count - 1; i >= 0; i--)
    if (made[i].kind == kind && made[i].parent == parent && made[i].sequence == sequence && made[i].leader == leader) return made[i].id;
  if (made_count == made_capacity) {
    made_capacity = made_capacity == 0 ? 64 : 2 * made_capacity;
    made = realloc(made, (size_t)made_capacity * sizeof *made);
    if (made == NULL) abort();
  }
  const int id = ++numbered[kind & 1];
  made[made_count].kind = kind;
  made[made_count].parent = parent;
  made[made_count].sequence = sequence;
  made[made_count].leader = leader;
  made[made_count++].id = id;
  return id;
}
#endif

enum { KIND_COMM = 0, KIND_WIN = 1, KIND_GROUP = 2, KIND_INTER = 4 };

int agree(Rank *r, Comm *parent, MPI_Comm over, int kind, int leader) {
#ifdef RECORD_SMPI
  (void)over;
  int sequence;
  if (kind >= KIND_GROUP) {  // not all members of the parent take part: counted per group of participants
    const uint64_t key = ((uint64_t)(uint32_t)parent->id << 32 | (uint32_t)leader) * 4 + (uint64_t)kind / 2;
    int *const counter = map_get(&r->counters, key);
    int *const mine = counter != NULL ? counter : calloc(1, sizeof(int));
    if (counter == NULL) map_put(&r->counters, key, mine);
    sequence = (*mine)++;
  } else {
    sequence = parent->made++;
  }
  return look_up(kind, parent->id, sequence, leader);
#else
  // The leader's own count of the objects it led, interleaved with those of the other ranks.
  int *const mine = kind == KIND_WIN ? &r->made_windows : &r->made_comms;
  int64_t id = 0;
  const bool lead = leader == r->world;
  if (lead) id = (int64_t)(*mine)++ * r->ranks + r->world + 1;
  if (id >= 1 << 30) id = -1;
  int inter = 0, mine32 = (int)id;
  PMPI_Comm_test_inter(over, &inter);
  (void)parent;
  if (!inter) {
    REAL(Bcast, (&mine32, 1, MPI_INT, 0, over));
    return mine32;
  }
  // A reduction over an intercommunicator gives each side the other side's result: reducing twice returns one's own.
  int theirs = 0, ours = 0;
  REAL(Allreduce, (&mine32, &theirs, 1, MPI_INT, MPI_MAX, over));
  REAL(Allreduce, (&theirs, &ours, 1, MPI_INT, MPI_MAX, over));
  return ours > theirs ? ours : theirs;
#endif
}

// --- the table --------------------------------------------------------------------------------------------------------------

static void describe_topology(Comm *c, MPI_Comm handle) {
#ifdef RECORD_SMPI
  (void)c, (void)handle;  // SMPI has no neighbourhood collectives, and MPI_Topo_test ends its simulation
#else
  int kind = MPI_UNDEFINED;
  if (c->inter || PMPI_Topo_test(handle, &kind) != MPI_SUCCESS) return;
  if (kind == MPI_CART) {
    int dims = 0;
    PMPI_Cartdim_get(handle, &dims);
    c->in = c->out = 2 * dims;
  } else if (kind == MPI_GRAPH) {
    PMPI_Graph_neighbors_count(handle, c->me, &c->in);
    c->out = c->in;
  } else if (kind == MPI_DIST_GRAPH) {
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(handle, &c->in, &c->out, &weighted);
  }
#endif
}

static Comm *describe(Rank *r, MPI_Comm handle) {
  Comm *const c = calloc(1, sizeof *c);
  if (c == NULL) abort();
  int inter = 0;
  MPI_Group group;
  PMPI_Comm_test_inter(handle, &inter);
  c->inter = inter != 0;
  PMPI_Comm_rank(handle, &c->me);
  PMPI_Comm_group(handle, &group);
  c->world = ranks_of_group(r, group, &c->size);
  PMPI_Group_free(&group);
  if (c->inter) {
    PMPI_Comm_remote_group(handle, &group);
    c->remote = ranks_of_group(r, group, &c->remote_size);
    PMPI_Group_free(&group);
  }
  describe_topology(c, handle);
  return c;
}

void register_comms(Rank *r) {
  Comm *const c = calloc(1, sizeof *c);
  if (c == NULL) abort();
  c->size = r->ranks;
  c->me = r->world;
  r->everybody = r->last_comm = c;
  r->last_handle = MPI_COMM_WORLD;
  map_put(&r->comms, KEY(MPI_COMM_WORLD), c);
}

static void enlist(Rank *r, MPI_Comm handle, Comm *c) {
  map_put(&r->comms, KEY(handle), c);
  r->last_handle = handle;
  r->last_comm = c;
}

char *of_comm(char *p, const Comm *c) { return c->id == 0 ? p : ATTR(p, "comm", c->id); }

// A communicator met for the first time: MPI_COMM_SELF, another handle of the world, or one whose creation was not recorded.
static Comm *meet(Rank *r, MPI_Comm handle) {
  int same = MPI_UNEQUAL, inter = 0;
  PMPI_Comm_test_inter(handle, &inter);
  if (!inter && PMPI_Comm_compare(handle, MPI_COMM_WORLD, &same) == MPI_SUCCESS && same == MPI_IDENT) {
    map_put(&r->comms, KEY(handle), r->everybody);
    return r->everybody;
  }
  Comm *const c = describe(r, handle);
  if (!c->inter && c->size == 1) {
#ifdef RECORD_SMPI
    c->id = agree(r, r->everybody, handle, KIND_GROUP, r->world);
#else
    c->id = (int)((int64_t)r->made_comms++ * r->ranks + r->world + 1);
#endif
    char *p = num(line(r, "comm_create_group", 0), c->id);
    end_line(r, group_text(p, c->world, 1));
  } else {
    unsupported(r, "foreign_comm");
    c->id = 0;  // the trace is refused; its lines stay well formed
  }
  enlist(r, handle, c);
  return c;
}

Comm *comm_of(Rank *r, MPI_Comm handle) {
  if (handle == r->last_handle) return r->last_comm;
  Comm *c = map_get(&r->comms, KEY(handle));
  if (c == NULL) c = meet(r, handle);
  r->last_handle = handle;
  r->last_comm = c;
  return c;
}

void release_comm(Comm *c) {
  if (!c->freed || c->uses > 0) return;
  free(c->world);
  free(c->remote);
  free(c);
}

// A communicator that all members of `parent` made together; MPI_COMM_NULL where this rank is not a member.
static Comm *made_from(Rank *r, const char *action, Comm *parent, MPI_Comm handle, int kind) {
  if (handle == MPI_COMM_NULL) {
#ifdef RECORD_SMPI
    parent->made++;
#endif
    end_line(r, of_comm(text(line(r, action, 0), " -1"), parent));
    return NULL;
  }
  Comm *const c = describe(r, handle);
  int leader = c->world[0];
#ifdef RECORD_SMPI
  if (c->inter && c->remote[0] < leader) leader = c->remote[0];  // the same on both sides
  if (kind == KIND_GROUP) leader = of_group(c);
#endif
  c->id = agree(r, parent, handle, kind, leader);
  enlist(r, handle, c);
  return c;
}

static void intra_line(Rank *r, const char *action, const Comm *parent, const Comm *c) {
  char *p = num(line(r, action, (size_t)c->size * SPACE_EACH), c->id);
  p = group_text(p, c->world, c->size);
  end_line(r, of_comm(p, parent));
}

// Split, dup, create. Of an intercommunicator the format has only the duplicate.
static int derived(Rank *r, const char *action, MPI_Comm parent_handle, MPI_Comm handle, bool whole) {
  Comm *const parent = comm_of(r, parent_handle);
  if (parent->inter && !whole) unsupported(r, "intercomm_split");
  if (parent->inter && handle == MPI_COMM_NULL) return leave(r, MPI_SUCCESS);
  Comm *const c = made_from(r, action, parent, handle, KIND_COMM);
  if (c != NULL && (whole || !parent->inter)) intra_line(r, action, parent, c);
  return leave(r, MPI_SUCCESS);
}

// --- the calls --------------------------------------------------------------------------------------------------------------

DEFINE(Comm_dup, (MPI_Comm comm, MPI_Comm *made)) {
  CALL(Comm_dup, (comm, made));
  return derived(r, "comm_dup", comm, *made, true);
}

DEFINE(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made)) {
  CALL(Comm_dup_with_info, (comm, info, made));
  return derived(r, "comm_dup", comm, *made, true);
}

DEFINE(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made)) {
  CALL(Comm_split, (comm, color, key, made));
  return derived(r, "comm_split", comm, *made, false);
}

DEFINE(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)) {
  CALL(Comm_split_type, (comm, type, key, info, made));
  return derived(r, "comm_split", comm, *made, false);
}

DEFINE(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made)) {
  CALL(Comm_create, (comm, group, made));
  return derived(r, "comm_create", comm, *made, false);
}

DEFINE(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)) {
  CALL(Comm_create_group, (comm, group, tag, made));
  if (*made != MPI_COMM_NULL) {
    Comm *const parent = comm_of(r, comm);
    Comm *const c = made_from(r, "comm_create_group", parent, *made, KIND_GROUP);
    intra_line(r, "comm_create_group", parent, c);
    r->lined = c->size > 1;  // in a trace, that of a single rank also stands for MPI_COMM_SELF
  }
  return leave(r, MPI_SUCCESS);
}

// The new communicator is not usable before its request is complete, so its identifier is computed rather than agreed on: all members
// count the duplicates of the parent alike. Identifiers from 2^30 up are reserved for these.
static int duplicate_later(Rank *r, MPI_Comm comm, MPI_Comm handle, MPI_Request *request) {
  Comm *const parent = comm_of(r, comm);
  Comm *const c = calloc(1, sizeof *c);
  if (c == NULL) abort();
  *c = *parent;
  c->uses = 0;
  c->made = 0;
  c->world = malloc(sizeof(int) * (size_t)(parent->size + 1));
  if (c->world == NULL) abort();
  for (int i = 0; i < parent->size; i++) c->world[i] = parent->world != NULL ? parent->world[i] : i;
  uint64_t h = ((uint64_t)(uint32_t)parent->id << 32 | (uint32_t)parent->made++) * 0x9E3779B97F4A7C15u;
  h ^= h >> 32;
  c->id = (1 << 30) | (int)(h & ((1 << 30) - 1));
  map_put(&r->comms, KEY(handle), c);
  if (parent->inter) {
    c->remote = malloc(sizeof(int) * (size_t)(parent->remote_size + 1));
    if (c->remote == NULL) abort();
    memcpy(c->remote, parent->remote, sizeof(int) * (size_t)parent->remote_size);
  }
  intra_line(r, "comm_dup", parent, c);
  add_request(r, request, REQ_SILENT, parent, 0, 0);
  return leave(r, MPI_SUCCESS);
}

DEFINE(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request)) {
  CALL(Comm_idup, (comm, made, request));
  return duplicate_later(r, comm, *made, request);
}

#ifdef HAVE_Comm_idup_with_info
DEFINE(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)) {
  CALL(Comm_idup_with_info, (comm, info, made, request));
  return duplicate_later(r, comm, *made, request);
}
#endif

DEFINE(Intercomm_create, (MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm *made)) {
  CALL(Intercomm_create, (local, local_leader, peers, remote_leader, tag, made));
  Comm *const parent = comm_of(r, local);
  Comm *const c = describe(r, *made);
#ifdef RECORD_SMPI
  // By the pair of first ranks, which is the same on both sides.
  const int low = c->world[0] < c->remote[0] ? c->world[0] : c->remote[0];
  const int high = c->world[0] < c->remote[0] ? c->remote[0] : c->world[0];
  Comm pair = {.id = high};
  c->id = agree(r, &pair, *made, KIND_INTER, low);
#else
  c->id = agree(r, parent, *made, KIND_INTER, c->world[0]);
#endif
  enlist(r, *made, c);
  char *p = num(line(r, "intercomm_create", (size_t)(c->size + c->remote_size) * SPACE_EACH), c->id);
  p = group_text(p, c->world, c->size);
  end_line(r, of_comm(group_text(p, c->remote, c->remote_size), parent));
  return leave(r, rc);
}

DEFINE(Intercomm_merge, (MPI_Comm inter, int high, MPI_Comm *made)) {
  CALL(Intercomm_merge, (inter, high, made));
  Comm *const parent = comm_of(r, inter);
  Comm *const c = made_from(r, "intercomm_merge", parent, *made, KIND_COMM);
  if (c != NULL) intra_line(r, "intercomm_merge", parent, c);
  return leave(r, rc);
}

static void forget(Rank *r, MPI_Comm handle, bool told) {
  Comm *const c = map_get(&r->comms, KEY(handle));
  if (c == NULL) return;
  if (told && c->id != 0) end_line(r, of_comm(line(r, "comm_free", 0), c));
  map_remove(&r->comms, KEY(handle));
  if (r->last_comm == c) {
    r->last_comm = r->everybody;
    r->last_handle = MPI_COMM_WORLD;
  }
  if (c == r->everybody) return;
  c->freed = true;
  release_comm(c);
}

DEFINE(Comm_free, (MPI_Comm * comm)) {
  const MPI_Comm handle = *comm;
  CALL(Comm_free, (comm));
  forget(r, handle, true);
  return leave(r, rc);
}

DEFINE(Comm_disconnect, (MPI_Comm * comm)) {
  const MPI_Comm handle = *comm;
  CALL(Comm_disconnect, (comm));
  forget(r, handle, true);
  return leave(r, rc);
}

#ifdef RECORD_SMPI
// The only one of these Fortran functions that does not call its C counterpart.
API void mpi_comm_free_(int *comm, int *error);
void mpi_comm_free_(int *comm, int *error) {
  static void (*next)(int *, int *);
  if (next == NULL) next = (void (*)(int *, int *))next_function("mpi_comm_free_");
  const MPI_Comm handle = MPI_Comm_f2c(*comm);
  Rank *r;
  ENTER(r, "MPI_Comm_free");
  next(comm, error);
  if (r == NULL) return;
  if (*error == MPI_SUCCESS) forget(r, handle, true);
  leave(r, *error);
}
#endif

// --- topologies -------------------------------------------------------------------------------------------------------------

// `keep`: which dimensions of `parent_handle` the new one has; NULL: it has its own. They are not read from the sub-grid itself: SMPI
// reports them wrongly there.
static int cartesian(Rank *r, MPI_Comm parent_handle, MPI_Comm handle, int given, const int *keep) {
  Comm *const parent = comm_of(r, parent_handle);
  bool grid = false;  // a grid without dimensions is a single rank, as of a split
  for (int i = 0; i < given; i++) grid = grid || keep == NULL || keep[i];
  Comm *const c = made_from(r, grid ? "cart_create" : "comm_split", parent, handle, KIND_COMM);
  if (c == NULL) return leave(r, MPI_SUCCESS);
  const MPI_Comm whole = keep != NULL ? parent_handle : handle;
  int all = 0, n = 0;
  PMPI_Cartdim_get(whole, &all);
  int *const dims = malloc(sizeof(int) * 3 * (size_t)(all + 1));
  if (dims == NULL) abort();
  int *const periods = dims + all;
  PMPI_Cart_get(whole, all, dims, periods, periods + all);
  for (int i = 0; i < all; i++)
    if (keep == NULL || keep[i]) {
      dims[n] = dims[i];
      periods[n++] = periods[i];
    }
  c->in = c->out = 2 * n;
  if (n == 0) {  // a single rank without dimensions
    intra_line(r, "comm_split", parent, c);
    free(dims);
    return leave(r, MPI_SUCCESS);
  }
  char *p = num(line(r, "cart_create", (size_t)(c->size + 2 * n) * SPACE_EACH), c->id);
  p = group_text(p, c->world, c->size);
  p = text(p, " dims=");
  for (int i = 0; i < n; i++) p = digits(i > 0 ? text(p, "x") : p, dims[i]);
  p = text(p, " periods=");
  for (int i = 0; i < n; i++) p = digits(i > 0 ? text(p, "x") : p, periods[i] != 0);
  free(dims);
  end_line(r, of_comm(p, parent));
  return leave(r, MPI_SUCCESS);
}

DEFINE(Cart_create, (MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm *made)) {
  CALL(Cart_create, (comm, n, dims, periods, reorder, made));
  return cartesian(r, comm, *made, n, NULL);
}

DEFINE(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made)) {
  CALL(Cart_sub, (comm, remain, made));
  int n = 0;
  PMPI_Cartdim_get(comm, &n);
  return cartesian(r, comm, *made, n, remain);
}

static char *neighbours(char *p, const char *name, const int *ranks, int n) {
  p = text(p, name);
  if (n == 0) return text(p, "none");
  for (int i = 0; i < n; i++) p = digits(i > 0 ? text(p, ",") : p, ranks[i] < 0 ? T_PROC_NULL : ranks[i]);
  return p;
}

static int graph(Rank *r, MPI_Comm parent_handle, MPI_Comm handle) {
  Comm *const parent = comm_of(r, parent_handle);
  Comm *const c = made_from(r, "graph_create", parent, handle, KIND_COMM);
  if (c == NULL) return leave(r, MPI_SUCCESS);
  int *const in = calloc((size_t)(c->in + c->out + 1) * 2, sizeof(int));
  if (in == NULL) abort();
  int *out = in + c->in, *const weights = out + c->out;
  int kind = MPI_UNDEFINED;
  PMPI_Topo_test(handle, &kind);
  if (kind == MPI_GRAPH) {
    PMPI_Graph_neighbors(handle, c->me, c->in, in);
    out = in;
  } else {
    PMPI_Dist_graph_neighbors(handle, c->in, in, weights, c->out, out, weights + c->in);
  }
  char *p = num(line(r, "graph_create", (size_t)(c->size + c->in + c->out) * SPACE_EACH), c->id);
  p = group_text(p, c->world, c->size);
  p = neighbours(p, " in=", in, c->in);
  p = neighbours(p, " out=", out, c->out);
  free(in);
  end_line(r, of_comm(p, parent));
  return leave(r, MPI_SUCCESS);
}

DEFINE(Graph_create, (MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm *made)) {
  CALL(Graph_create, (comm, n, index, edges, reorder, made));
  return graph(r, comm, *made);
}

DEFINE(Dist_graph_create, (MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[], const int weights[],
                           MPI_Info info, int reorder, MPI_Comm *made)) {
  CALL(Dist_graph_create, (comm, n, sources, degrees, destinations, weights, info, reorder, made));
  return graph(r, comm, *made);
}

DEFINE(Dist_graph_create_adjacent, (MPI_Comm comm, int in, const int sources[], const int in_weights[], int out, const int destinations[],
                                    const int out_weights[], MPI_Info info, int reorder, MPI_Comm *made)) {
  CALL(Dist_graph_create_adjacent, (comm, in, sources, in_weights, out, destinations, out_weights, info, reorder, made));
  return graph(r, comm, *made);
}
