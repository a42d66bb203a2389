/* Makes the MPI calls of traces, and prints what they delivered: calls PROGRAMS RESULTS [SECONDS]

   PROGRAMS is what tests/real_mpi.py writes: "program ID RANKS", then for each rank "rank R CALLS" and so many lines "LINE WORD COMM REQ
   COUNT NUMBER...". Each program runs in a duplicate of the first RANKS processes' communicator. A message is two numbers longer than its
   trace says: the rank and the line of its sender. Each rank writes RESULTS.RANK:

     M PROGRAM LINE SOURCE SENDER-LINE TAG BYTES   a receive of this line got that message
     P PROGRAM LINE SOURCE TAG BYTES               a probe found it
     E PROGRAM LINE WHAT                           not what the standard says
     T PROGRAM LINE                                a message was longer than its receive's buffer (the job ends)
     S PROGRAM LINE                                nothing happened for SECONDS in this line (the job ends)
     F PROGRAM                                     all calls have returned  */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Buffers of receives are LONG: Open MPI 4.1 says of a message that it is truncated, and writes all of it. */
enum { HEAD = 2 * sizeof(int), LONG = 1 << 20, ANY_SOURCE = -555, ANY_TAG = -444, NOBODY = -666, ROOT = -777, MOST = 4096 };

typedef struct {
  MPI_Comm comm;
  int n, m, *group, *remote, turn; /* ranks of the program, of both groups; collectives so far */
  int ins, outs, *in, *out;        /* neighbours, ranks of the communicator */
} Comm;
typedef struct {
  int count, from;
} Block; /* bytes that a collective delivers, and whose */
typedef struct {
  MPI_Request request;
  char kind; /* 's'end, 'r'eceive, 'c'ollective; 0: none */
  int line, persistent, room, turn, blocks, reduced;
  char *out, *in;
  int* counts;
  MPI_Aint* places;
  Block* block;
} Call;

static Comm comms[MOST];
static Call calls[MOST];
static MPI_Comm peers; /* a duplicate, as the standard advises: a receive with wildcards would get what leaders tell each other */
static int program, me, line, quiet_s;
static FILE* results;
static volatile sig_atomic_t moved = 1;

static int differs(const char* what) { return fprintf(results, "E %d %d %s\n", program, line, what); }
static void stop(char why) {
  fprintf(results, "%c %d %d\n", why, program, line);
  fflush(results);
  if (why == 'S') sleep(2); /* the others are about to say so too */
  _exit(why == 'S' ? 0 : 3);
}
static void on_alarm(int number) { /* each second */
  static int still;
  (void)number;
  still = moved ? 0 : still + 1;
  if (still == quiet_s) stop('S');
  moved = 0;
  alarm(1);
}
static void check(int code) {
  int class = MPI_SUCCESS;
  char text[MPI_MAX_ERROR_STRING] = "";
  if (code == MPI_SUCCESS) return;
  MPI_Error_class(code, &class);
  if (class == MPI_ERR_TRUNCATE) stop('T');
  MPI_Error_string(code, text, &(int){0});
  text[strcspn(text, "\n")] = 0;
  differs(text);
}
static char byte_of(int turn, int from, int to, int at) { return (char)(turn * 131 + from * 29 + to * 17 + at * 7 + at / 251); }
static int find(const int* list, int n, int rank) {
  for (int i = 0; i < n; ++i)
    if (list[i] == rank) return i;
  return -1;
}
static int peer_in(const Comm* c, int rank) {
  if (rank == ANY_SOURCE) return MPI_ANY_SOURCE;
  if (rank == NOBODY) return MPI_PROC_NULL;
  return c->m ? find(c->remote, c->m, rank) : find(c->group, c->n, rank);
}
static int rank_of(const Comm* c, int peer) { return peer == MPI_PROC_NULL ? NOBODY : c->m ? c->remote[peer] : c->group[peer]; }
static int tag_of(int tag) { return tag == ANY_TAG ? MPI_ANY_TAG : tag; }

/* ------------------------------------------------------------------------------------------------------- point to point */

static void address(char* data, int bytes) { /* who sends it, in which line */
  memcpy(data, (int[]){me, line}, HEAD);
  for (int i = 0; i < bytes; ++i) data[HEAD + i] = byte_of(line, me, 0, i);
}
static void received(const Call* r, const Comm* c, const MPI_Status* s) {
  int bytes, head[2];
  MPI_Get_count(s, MPI_BYTE, &bytes);
  if (s->MPI_SOURCE == MPI_PROC_NULL) {
    if (bytes || s->MPI_TAG != MPI_ANY_TAG) differs("a receive from nobody has another status");
    return;
  }
  memcpy(head, r->in, HEAD);
  bytes -= HEAD;
  for (int i = 0; i < bytes; ++i)
    if (r->in[HEAD + i] != byte_of(head[1], head[0], 0, i)) {
      differs("other data in a message");
      break;
    }
  if (c && rank_of(c, s->MPI_SOURCE) != head[0]) differs("the status names another source");
  fprintf(results, "M %d %d %d %d %d %d\n", program, r->line, head[0], head[1], s->MPI_TAG, bytes);
}
static int mode_of(const char* word) { /* s: standard, S: synchronous, b: buffered */
  if (*word == 'i' || *word == 'I') ++word;
  return *word == 'S' || !strncmp(word, "ss", 2) ? 'S' : *word == 'b' ? 'b' : 's';
}
static const Comm* comm_of[MOST]; /* of a receive */

static Call* fresh(int req, char kind) {
  Call* r = &calls[req];
  memset(r, 0, sizeof *r);
  r->kind = kind;
  r->line = line;
  r->request = MPI_REQUEST_NULL;
  return r;
}
static void drop(Call* r) {
  free(r->out), free(r->in), free(r->counts), free(r->places), free(r->block);
  memset(r, 0, sizeof *r);
}
static void values(const Call* r) { /* of a collective that is complete */
  const char* in = r->in;
  for (int b = 0, at = 0; b < (r->reduced ? 1 : r->blocks); ++b) {
    const int bytes = r->block[b].count;
    for (int i = 0; i < bytes && r->block[b].from != NOBODY; ++i) {
      char want = 0;
      if (r->reduced)
        for (int k = 0; k < r->blocks; ++k) want ^= byte_of(r->turn, r->block[k].from, 0, r->reduced - 1 + i);
      else
        want = byte_of(r->turn, r->block[b].from, 0, i);
      if (in[at + i] != want) {
        differs("a collective delivered other data");
        return;
      }
    }
    at += bytes;
  }
}
static void completed(Call* r, const MPI_Status* s) {
  if (r->kind == 'r') received(r, comm_of[r - calls], s);
  if (r->kind == 'c') values(r);
  if (!r->persistent) drop(r);
}

static void point_to_point(const char* word, Comm* c, int req, const int* a) {
  const int persistent = strstr(word, "Init") != NULL, receives = strstr(word, "recv") != NULL;
  const int later = persistent || *word == 'i' || *word == 'I';
  Call* r = fresh(later ? req : 0, receives ? 'r' : 's');
  const int peer = peer_in(c, a[0]), tag = tag_of(a[1]), mode = mode_of(word);
  comm_of[r - calls] = c;
  r->persistent = persistent;
  r->room = a[2] < 0 ? LONG : a[2];
  if (receives) {
    MPI_Status s;
    r->in = malloc(LONG + HEAD);
    if (persistent)
      check(MPI_Recv_init(r->in, r->room + HEAD, MPI_BYTE, peer, tag, c->comm, &r->request));
    else if (later)
      check(MPI_Irecv(r->in, r->room + HEAD, MPI_BYTE, peer, tag, c->comm, &r->request));
    else {
      check(MPI_Recv(r->in, r->room + HEAD, MPI_BYTE, peer, tag, c->comm, &s));
      completed(r, &s);
    }
    return;
  }
  r->out = malloc((size_t)r->room + HEAD);
  address(r->out, r->room);
  const int bytes = r->room + HEAD;
#define SENT(NAME) check(NAME(r->out, bytes, MPI_BYTE, peer, tag, c->comm))
#define BEGUN(NAME) check(NAME(r->out, bytes, MPI_BYTE, peer, tag, c->comm, &r->request))
  if (persistent)
    mode == 'S' ? BEGUN(MPI_Ssend_init) : mode == 'b' ? BEGUN(MPI_Bsend_init) : BEGUN(MPI_Send_init);
  else if (later)
    mode == 'S' ? BEGUN(MPI_Issend) : mode == 'b' ? BEGUN(MPI_Ibsend) : BEGUN(MPI_Isend);
  else
    mode == 'S' ? SENT(MPI_Ssend) : mode == 'b' ? SENT(MPI_Bsend) : SENT(MPI_Send);
  if (!later) drop(r);
}
static void send_receive(Comm* c, const int* a) { /* SCOUNT DST RCOUNT SRC STAG RTAG */
  Call* r = fresh(0, 'r');
  MPI_Status s;
  r->out = malloc((size_t)a[0] + HEAD), r->in = malloc(LONG + HEAD);
  address(r->out, a[0]);
  check(MPI_Sendrecv(r->out, a[0] + HEAD, MPI_BYTE, peer_in(c, a[1]), a[4], r->in, a[2] + HEAD, MPI_BYTE, peer_in(c, a[3]), tag_of(a[5]), c->comm, &s));
  comm_of[0] = c;
  completed(r, &s);
}
static void probe(const char* word, Comm* c, const int* a) { /* SRC TAG FLAG: 1 succeeds at last, else one look */
  MPI_Status s;
  int flag = 1, bytes;
  if (*word == 'p')
    check(MPI_Probe(peer_in(c, a[0]), tag_of(a[1]), c->comm, &s));
  else
    do check(MPI_Iprobe(peer_in(c, a[0]), tag_of(a[1]), c->comm, &flag, &s));
    while (!flag && a[2] == 1);
  if (!flag || s.MPI_SOURCE == MPI_PROC_NULL) return;
  MPI_Get_count(&s, MPI_BYTE, &bytes);
  fprintf(results, "P %d %d %d %d %d\n", program, line, rank_of(c, s.MPI_SOURCE), s.MPI_TAG, bytes - HEAD);
}
static void check_all(int code, int n, const MPI_Status* s) { /* of several, which may say in their statuses what is wrong */
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  for (int i = 0; class == MPI_ERR_IN_STATUS && i < n; ++i)
    if (s[i].MPI_ERROR != MPI_ERR_PENDING) check(s[i].MPI_ERROR);
  if (class != MPI_ERR_IN_STATUS) check(code);
}
static void complete(const char* word, int told, int n, const int* list) { /* told: which one or whether; -1: not told */
  MPI_Request requests[64];
  MPI_Status s[64];
  int flag = 0, done = 0, places[64];
  for (int i = 0; i < n; ++i) requests[i] = calls[list[i]].kind ? calls[list[i]].request : MPI_REQUEST_NULL;
  int live[64];
  for (int i = 0; i < n; ++i) live[i] = requests[i] != MPI_REQUEST_NULL;
#define TO_END(CALL) \
  do check(CALL);    \
  while (!flag && told == 1)
  for (int i = 0; i < n; ++i) s[i].MPI_ERROR = MPI_SUCCESS;
  if (!strcmp(word, "wait") || !strcmp(word, "test")) {
    if (*word == 'w')
      check(MPI_Wait(requests, s)), flag = 1;
    else
      TO_END(MPI_Test(requests, &flag, s));
    done = flag, places[0] = 0;
  } else if (!strcmp(word, "waitall") || !strcmp(word, "testall")) {
    if (*word == 'w') {
      check_all(MPI_Waitall(n, requests, s), n, s);
      flag = 1;
    } else
      do check_all(MPI_Testall(n, requests, &flag, s), n, s);
      while (!flag && told == 1);
    for (done = 0; flag && done < n; ++done) places[done] = done;
  } else if (!strcmp(word, "waitany") || !strcmp(word, "testany")) {
    flag = 1;
    *word == 'w' ? check(MPI_Waitany(n, requests, places, s)) : check(MPI_Testany(n, requests, places, &flag, s));
    done = flag && places[0] != MPI_UNDEFINED;
    if (told >= 0 && *word == 'w' && (!done || list[places[0]] != told)) differs("another request is complete");
  } else {
    check_all(*word == 'w' ? MPI_Waitsome(n, requests, &done, places, s) : MPI_Testsome(n, requests, &done, places, s), n, s);
    if (done == MPI_UNDEFINED) done = 0;
    if (told >= 0 && *word == 'w' && (done != 1 || list[places[0]] != told)) differs("other requests are complete");
  }
  const int by_place = !strstr(word, "some");
  for (int i = 0; i < done; ++i) {
    Call* r = &calls[list[places[i]]];
    if (!live[places[i]]) continue;
    r->request = requests[places[i]];
    if (r->kind != 0 && !(r->persistent && r->line == 0)) completed(r, &s[by_place && done > 1 ? places[i] : i]);
    if (r->persistent) r->line = 0; /* inactive */
  }
}
static void start(int n, const int* list) {
  for (int i = 0; i < n; ++i) {
    Call* r = &calls[list[i]];
    r->line = line;
    if (r->kind == 's') address(r->out, r->room);
    check(MPI_Start(&r->request));
  }
}

/* ------------------------------------------------------------------------------------------------------- communicators */

static int* copied(const int* list, int n) { return memcpy(malloc(sizeof(int) * (size_t)(n + 1)), list, sizeof(int) * (size_t)n); }
static void compare_group(MPI_Group group, const int* want, int n) {
  MPI_Group world;
  int size, ranks[64], there[64];
  MPI_Comm_group(comms[0].comm, &world);
  MPI_Group_size(group, &size);
  for (int i = 0; i < n; ++i) ranks[i] = i;
  if (size != n) differs("a group has another size");
  MPI_Group_translate_ranks(group, size < n ? size : n, ranks, world, there);
  for (int i = 0; i < n && i < size; ++i)
    if (there[i] != want[i]) {
      differs("a group has other ranks");
      break;
    }
  MPI_Group_free(&world);
  MPI_Group_free(&group);
}
/* NEW N GROUP.. M REMOTE.. DIMS [DIM.. PERIOD..] INS IN.. OUTS OUT.. ; NEW -1: no member */
static void make_comm(const char* word, Comm* parent, const int* a) {
  const int number = *a++;
  MPI_Comm made = MPI_COMM_NULL, own;
  if (number < 0) {
    MPI_Group none = MPI_GROUP_EMPTY;
    check(!strcmp(word, "comm_create") ? MPI_Comm_create(parent->comm, none, &made) : MPI_Comm_split(parent->comm, MPI_UNDEFINED, 0, &made));
    if (made != MPI_COMM_NULL) differs("a communicator without this rank");
    return;
  }
  Comm* c = &comms[number];
  memset(c, 0, sizeof *c);
  c->n = *a++, c->group = copied(a, c->n), a += c->n;
  c->m = *a++, c->remote = copied(a, c->m), a += c->m;
  const int dims = *a++, *dim = a, *period = a + dims;
  a += 2 * dims;
  c->ins = *a++, c->in = copied(a, c->ins), a += c->ins;
  c->outs = *a++, c->out = copied(a, c->outs);
  const int key = find(c->group, c->n, me);
  if (!strcmp(word, "comm_dup"))
    check(MPI_Comm_dup(parent->comm, &made));
  else if (!strcmp(word, "comm_split"))
    check(MPI_Comm_split(parent->comm, number, key, &made));
  else if (!strcmp(word, "cart_create") || !strcmp(word, "graph_create")) {
    check(MPI_Comm_split(parent->comm, number, key, &own));
    check(*word == 'c' ? MPI_Cart_create(own, dims, dim, period, 0, &made)
                       : MPI_Dist_graph_create_adjacent(own, c->ins, c->in, MPI_UNWEIGHTED, c->outs, c->out, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
    MPI_Comm_free(&own);
    for (int d = 0; d < dims; ++d) {
      int two[2];
      MPI_Cart_shift(made, d, 1, &two[0], &two[1]);
      for (int k = 0; k < 2; ++k)
        if ((two[k] == MPI_PROC_NULL ? NOBODY : two[k]) != c->in[2 * d + k]) differs("a grid has other neighbours");
    }
  } else if (!strcmp(word, "intercomm_create"))
    check(MPI_Intercomm_create(parent->comm, 0, peers, c->remote[0], number, &made));
  else if (!strcmp(word, "intercomm_merge"))
    check(MPI_Intercomm_merge(parent->comm, find(parent->group, parent->n, c->group[0]) < 0, &made));
  else {
    MPI_Group all, some;
    int ranks[64];
    MPI_Comm_group(parent->comm, &all);
    for (int i = 0; i < c->n; ++i) ranks[i] = find(parent->group, parent->n, c->group[i]);
    MPI_Group_incl(all, c->n, ranks, &some);
    check(!strcmp(word, "comm_create") ? MPI_Comm_create(parent->comm, some, &made) : MPI_Comm_create_group(parent->comm, some, number, &made));
    MPI_Group_free(&some), MPI_Group_free(&all);
  }
  c->comm = made;
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  int rank, inter;
  MPI_Comm_rank(made, &rank);
  MPI_Comm_test_inter(made, &inter);
  if (rank != key) differs("another rank in a communicator");
  if (inter != (c->m > 0)) differs("one group instead of two, or two instead of one");
  MPI_Group group;
  MPI_Comm_group(made, &group);
  compare_group(group, c->group, c->n);
  if (inter) {
    MPI_Comm_remote_group(made, &group);
    compare_group(group, c->remote, c->m);
  }
}

/* ------------------------------------------------------------------------------------------------------- collectives */

/* FLOPS are left out of the numbers, types as well. */
static void collective(const char* word, Comm* c, int req, const int* a) {
  const int later = *word == 'i';
  Call* r = fresh(later ? req : 0, 'c');
  const char* w = word + later;
  const int beside = !strncmp(w, "neighbor_", 9);
  const int n = c->m ? c->m : c->n, *others = c->m ? c->remote : c->group, own = c->n, mine = find(c->group, c->n, me);
  r->turn = ++c->turn;
  const int outs = beside ? c->outs : n, ins = beside ? c->ins : n;
  int* all = r->counts = calloc((size_t)(4 * (outs + ins + own) + 8), sizeof(int));
  int *sc = all, *sd = sc + outs + own, *rc = sd + outs + own, *rd = rc + ins + own;
  r->block = calloc((size_t)(ins + own + 1), sizeof(Block));
  int root = 0, is_root = 0, sends = 1, gets = 1, reduced = 0, many = 0, one_out = 0, one_in = 0; /* many: v or w */
  const int rooted = !strcmp(w, "bcast") || !strcmp(w, "reduce") || !strncmp(w, "gather", 6) || !strncmp(w, "scatter", 7);
  const char* bare = beside ? w + 9 : w;
  many = bare[strlen(bare) - 1] == 'v' || bare[strlen(bare) - 1] == 'w';
  /* the numbers, then the root */
  int nsend = 0, nget = 0;
#define TAKE(TO, N) \
  for (int i = 0; i < (N); ++i) (TO)[i] = *a++
  if (!strcmp(w, "barrier"))
    sends = gets = 0;
  else if (!strcmp(w, "bcast"))
    sc[0] = rc[0] = *a++, one_out = one_in = 1;
  else if (!strcmp(w, "reducescatter")) {
    TAKE(rc, own);
    reduced = 1, nget = own;
  } else if (!strcmp(w, "reduce") || !strcmp(w, "allreduce") || !strcmp(w, "scan") || !strcmp(w, "exscan") || !strcmp(w, "reducescatterblock"))
    sc[0] = rc[0] = *a++, reduced = 1, one_out = one_in = 1;
  else if (!many) {
    const int s = *a++, g = *a++;
    /* also of a rank without neighbours, whose count says that there is something to do */
    for (int i = 0; i <= outs; ++i) sc[i] = s;
    for (int i = 0; i <= ins; ++i) rc[i] = g;
    one_out = !strncmp(bare, "gather", 6) || !strncmp(bare, "allgather", 9), one_in = !strncmp(bare, "scatter", 7);
  } else if (!strcmp(bare, "gatherv") || !strcmp(bare, "allgatherv")) {
    sc[0] = *a++, one_out = 1;
    TAKE(rc, ins);
  } else if (!strcmp(bare, "scatterv")) {
    TAKE(sc, outs);
    rc[0] = *a++, one_in = 1;
  } else {
    TAKE(sc, outs);
    TAKE(rc, ins);
  }
  if (rooted) {
    root = *a++;
    is_root = c->m ? root == ROOT : root == mine;
    const int nobody = root == NOBODY;
    const int from_root = *bare == 'b' || *bare == 's';
    sends = !nobody && (from_root ? is_root : c->m ? !is_root : 1);
    gets = !nobody && (from_root ? (c->m ? !is_root : *bare == 's' || !is_root) : is_root);
  }
  const int mpi_root = root == ROOT ? MPI_ROOT : root == NOBODY ? MPI_PROC_NULL : root;
  const int root_rank = !rooted || root < 0 ? -1 : others[root];
  if (!nsend) nsend = one_out ? 1 : outs;
  if (!nget) nget = one_in ? 1 : ins;
  size_t out = 0, in = 0;
  if (!strcmp(w, "reducescatter"))
    for (int i = 0; i < own; ++i) out += (size_t)rc[i];
  else if (!strcmp(w, "reducescatterblock"))
    out = (size_t)rc[0] * (size_t)own;
  else
    for (int i = 0; i < nsend; ++i) sd[i] = (int)out, out += (size_t)sc[i];
  for (int i = 0; i < nget; ++i) rd[i] = (int)in, in += (size_t)rc[i];
  r->out = malloc(out + 1), r->in = calloc(in + 1, 1);
  if (!strncmp(bare, "reduce", 6) || reduced || one_out)
    for (size_t i = 0; i < out; ++i) r->out[i] = byte_of(r->turn, me, 0, (int)i);
  else
    for (int b = 0; b < nsend; ++b)
      for (int i = 0; i < sc[b]; ++i) r->out[sd[b] + i] = byte_of(r->turn, me, 0, i);
  /* what is to come */
  if (reduced && gets) {
    const int upto = !strcmp(w, "scan") ? mine + 1 : !strcmp(w, "exscan") ? mine : n;
    int begin = 0;
    r->blocks = upto;
    for (int k = 0; k < upto; ++k) r->block[k].from = others[k];
    if (!strcmp(w, "reducescatter"))
      for (int k = 0; k < mine; ++k) begin += rc[k];
    if (!strcmp(w, "reducescatterblock")) begin = rc[0] * mine;
    r->reduced = begin + 1;
    r->block[0].count = upto ? (strcmp(w, "reducescatter") ? rc[0] : rc[mine]) : 0;
    if (!upto) r->reduced = 0;
  } else if (gets && sends + gets > 0 && strcmp(w, "barrier")) {
    r->blocks = nget;
    for (int b = 0; b < nget; ++b) {
      const int from = one_in ? root_rank : beside ? (c->in[b] < 0 ? NOBODY : c->group[c->in[b]]) : others[b];
      r->block[b] = (Block){rc[b], from};
    }
  }
  char* data = !strcmp(w, "bcast") ? (is_root ? r->out : r->in) : r->out;
  /* types and places have to stay until a non-blocking one is complete */
  static MPI_Datatype types[64];
  for (int i = 0; i < 64; ++i) types[i] = MPI_BYTE;
  MPI_Aint *asd = r->places = calloc((size_t)(outs + ins + 1), sizeof(MPI_Aint)), *ard = asd + outs;
  for (int i = 0; i < outs; ++i) asd[i] = sd[i];
  for (int i = 0; i < ins; ++i) ard[i] = rd[i];
#define B MPI_BYTE
#define CASE(NAME, BLOCKING, LATER, ...) \
  if (!strcmp(w, NAME)) check(later ? LATER(__VA_ARGS__, &r->request) : BLOCKING(__VA_ARGS__))
  const MPI_Comm m = c->comm;
  CASE("barrier", MPI_Barrier, MPI_Ibarrier, m);
  CASE("bcast", MPI_Bcast, MPI_Ibcast, data, sc[0], B, mpi_root, m);
  CASE("reduce", MPI_Reduce, MPI_Ireduce, r->out, r->in, sc[0], B, MPI_BXOR, mpi_root, m);
  CASE("allreduce", MPI_Allreduce, MPI_Iallreduce, r->out, r->in, sc[0], B, MPI_BXOR, m);
  CASE("scan", MPI_Scan, MPI_Iscan, r->out, r->in, sc[0], B, MPI_BXOR, m);
  CASE("exscan", MPI_Exscan, MPI_Iexscan, r->out, r->in, sc[0], B, MPI_BXOR, m);
  CASE("reducescatter", MPI_Reduce_scatter, MPI_Ireduce_scatter, r->out, r->in, rc, B, MPI_BXOR, m);
  CASE("reducescatterblock", MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, r->out, r->in, rc[0], B, MPI_BXOR, m);
  CASE("gather", MPI_Gather, MPI_Igather, r->out, sc[0], B, r->in, rc[0], B, mpi_root, m);
  CASE("gatherv", MPI_Gatherv, MPI_Igatherv, r->out, sc[0], B, r->in, rc, rd, B, mpi_root, m);
  CASE("scatter", MPI_Scatter, MPI_Iscatter, r->out, sc[0], B, r->in, rc[0], B, mpi_root, m);
  CASE("scatterv", MPI_Scatterv, MPI_Iscatterv, r->out, sc, sd, B, r->in, rc[0], B, mpi_root, m);
  CASE("allgather", MPI_Allgather, MPI_Iallgather, r->out, sc[0], B, r->in, rc[0], B, m);
  CASE("allgatherv", MPI_Allgatherv, MPI_Iallgatherv, r->out, sc[0], B, r->in, rc, rd, B, m);
  CASE("alltoall", MPI_Alltoall, MPI_Ialltoall, r->out, sc[0], B, r->in, rc[0], B, m);
  CASE("alltoallv", MPI_Alltoallv, MPI_Ialltoallv, r->out, sc, sd, B, r->in, rc, rd, B, m);
  CASE("alltoallw", MPI_Alltoallw, MPI_Ialltoallw, r->out, sc, sd, types, r->in, rc, rd, types, m);
  CASE("neighbor_allgather", MPI_Neighbor_allgather, MPI_Ineighbor_allgather, r->out, sc[0], B, r->in, rc[0], B, m);
  CASE("neighbor_allgatherv", MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, r->out, sc[0], B, r->in, rc, rd, B, m);
  CASE("neighbor_alltoall", MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, r->out, sc[0], B, r->in, rc[0], B, m);
  CASE("neighbor_alltoallv", MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, r->out, sc, sd, B, r->in, rc, rd, B, m);
  CASE("neighbor_alltoallw", MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, r->out, sc, asd, types, r->in, rc, ard, types, m);
  if (!later) values(r), drop(r);
}

/* ------------------------------------------------------------------------------------------------------- programs */

static void execute(const char* word, Comm* c, int req, int n, const int* a) {
  if (!strcmp(word, "sendRecv")) return send_receive(c, a);
  if (!strncmp(word, "wait", 4) || !strncmp(word, "test", 4)) return complete(word, a[0], n - 1, a + 1);
  if (!strcmp(word, "start")) return start(n, a);
  if (!strcmp(word, "requestFree")) {
    MPI_Request_free(&calls[a[0]].request);
    return drop(&calls[a[0]]);
  }
  if (strstr(word, "probe")) return probe(word, c, a);
  if (strstr(word, "send") || strstr(word, "recv"))
    return point_to_point(word, c, req, a);
  if (!strncmp(word, "comm_", 5) || strstr(word, "_create") || !strcmp(word, "intercomm_merge")) return make_comm(word, c, a);
  collective(word, c, req, a);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  char name[4096], word[64];
  snprintf(name, sizeof name, "%s.%d", argv[2], me);
  results = fopen(name, "w");
  FILE* f = fopen(argv[1], "r");
  if (!f || !results || argc < 3) return 2;
  setvbuf(results, NULL, _IOLBF, 0); /* of a process that is ended all that it has said */
  const int buffer = 1 << 26;
  char* attached = malloc((size_t)buffer);
  if (argc > 3) {
    quiet_s = atoi(argv[3]);
    signal(SIGALRM, on_alarm);
    alarm(1);
  }
  int ranks;
  while (fscanf(f, " program %d %d", &program, &ranks) == 2) {
    const int part = me < ranks;
    Comm* world = &comms[0];
    memset(comms, 0, sizeof comms);
    MPI_Comm_split(MPI_COMM_WORLD, part ? 0 : MPI_UNDEFINED, me, &world->comm);
    if (part) {
      MPI_Comm_set_errhandler(world->comm, MPI_ERRORS_RETURN);
      MPI_Comm_dup(world->comm, &peers);
      world->n = ranks, world->group = malloc(sizeof(int) * (size_t)ranks);
      for (int i = 0; i < ranks; ++i) world->group[i] = i;
      MPI_Buffer_attach(attached, buffer);
    }
    for (int r = 0; r < ranks; ++r) {
      int lines, comm, req, count, numbers[512];
      if (fscanf(f, " rank %*d %d", &lines) != 1) return 2;
      for (int i = 0; i < lines; ++i) {
        int at;
        if (fscanf(f, "%d %63s %d %d %d", &at, word, &comm, &req, &count) != 5 || count > 512) return 2;
        for (int k = 0; k < count; ++k)
          if (fscanf(f, "%d", &numbers[k]) != 1) return 2;
        if (r != me) continue;
        line = at, moved = 1;
        execute(word, &comms[comm], req, count, numbers);
      }
    }
    if (part) {
      line = 0;
      fprintf(results, "F %d\n", program);
      fflush(results);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* not on a communicator of the program, whose last barrier this would be */
    if (part) {
      int size;
      MPI_Buffer_detach(&(void*){0}, &size);
      MPI_Comm_free(&peers);
      for (int k = MOST - 1; k >= 0; --k)
        if (comms[k].group) {
          MPI_Comm_free(&comms[k].comm);
          free(comms[k].group), free(comms[k].remote), free(comms[k].in), free(comms[k].out);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  fclose(results);
  MPI_Finalize();
  return 0;
}
