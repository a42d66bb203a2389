/* Costs of collectives other than messages, on rank 0 without a partner: calls on MPI_COMM_SELF, combining, temporary buffers. */
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { TAG = 11, BATCHES = 5 };

typedef struct Block {
  long bytes;
  int count; /* of MPI_DOUBLE */
  char *out, *in;
} Block;

static void self_barrier(const Block* b) {
  (void)b;
  MPI_Barrier(MPI_COMM_SELF);
}
static void self_bcast(const Block* b) { MPI_Bcast(b->out, b->count, MPI_DOUBLE, 0, MPI_COMM_SELF); }
static void self_reduce(const Block* b) { MPI_Reduce(b->out, b->in, b->count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_SELF); }
static void self_allreduce(const Block* b) { MPI_Allreduce(b->out, b->in, b->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF); }
static void self_gather(const Block* b) { MPI_Gather(b->out, b->count, MPI_DOUBLE, b->in, b->count, MPI_DOUBLE, 0, MPI_COMM_SELF); }
static void self_scatter(const Block* b) { MPI_Scatter(b->out, b->count, MPI_DOUBLE, b->in, b->count, MPI_DOUBLE, 0, MPI_COMM_SELF); }
static void self_allgather(const Block* b) { MPI_Allgather(b->out, b->count, MPI_DOUBLE, b->in, b->count, MPI_DOUBLE, MPI_COMM_SELF); }
static void self_alltoall(const Block* b) { MPI_Alltoall(b->out, b->count, MPI_DOUBLE, b->in, b->count, MPI_DOUBLE, MPI_COMM_SELF); }
static void combine(const Block* b) { MPI_Reduce_local(b->out, b->in, b->count, MPI_DOUBLE, MPI_SUM); }
static void plain(const Block* b) {
  memcpy(b->in, b->out, (size_t)b->bytes);
  __asm__ volatile("" ::: "memory");
}
static void* volatile taken[2];
static void untouched(const Block* b) {
  taken[0] = malloc((size_t)b->bytes);
  free(taken[0]);
}
static void one(const Block* b) {
  taken[0] = malloc((size_t)b->bytes);
  memcpy(taken[0], b->out, (size_t)b->bytes);
  __asm__ volatile("" ::: "memory");
  free(taken[0]);
}
static void two(const Block* b) {
  for (int i = 0; i < 2; i++) taken[i] = malloc((size_t)b->bytes);
  for (int i = 0; i < 2; i++) memcpy(taken[i], b->out, (size_t)b->bytes);
  __asm__ volatile("" ::: "memory");
  for (int i = 1; i >= 0; i--) free(taken[i]);
}

typedef struct Thing {
  const char* name;
  void (*run)(const Block*);
  int empty; /* without data */
} Thing;

/* One round: sizes in ascending order, as a library's allocator changes behaviour with what was freed before. */
static void by_size(const Plan* p, const Thing* thing, int round) {
  for (int i = 0; i < p->count; i++) {
    const Block b = {p->sizes[i], (int)(p->sizes[i] / (long)sizeof(double)), p->out, p->in};
    double took[BATCHES];
    const double start = now_ns();
    thing->run(&b);
    const double about = now_ns() - start;
    const double wanted = (p->quick ? 2e4 : 1e5) / (about > 20 ? about : 20);
    const int n = wanted < 3 ? 3 : wanted > 1000 ? 1000 : (int)wanted;
    for (int batch = 0; batch < BATCHES; batch++) {
      const double begun = now_ns();
      for (int k = 0; k < n; k++) thing->run(&b);
      took[batch] = (now_ns() - begun) / n;
    }
    say(thing->name, p->sizes[i], round, took, BATCHES);
    if (thing->empty) break;
  }
}

/* Rank 1 computes nothing and waits. */
static int waits(const Plan* p) {
  char end = 0;
  if (p->rank == 1) MPI_Recv(&end, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return p->rank == 1;
}
static void release(const Plan* p) { MPI_Send(p->out, 1, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD); }

static void zeros(const Plan* p) {
  const size_t largest = p->count > 0 ? (size_t)p->sizes[p->count - 1] : 0;
  memset(p->out, 0, largest); /* values that stay valid doubles */
  memset(p->in, 0, largest);
}

void measure_alone(Plan* p) {
  static const Thing things[] = {
      {"self_barrier", self_barrier, 1},     {"self_bcast", self_bcast, 0},       {"self_reduce", self_reduce, 0},
      {"self_allreduce", self_allreduce, 0}, {"self_gather", self_gather, 0},     {"self_scatter", self_scatter, 0},
      {"self_allgather", self_allgather, 0}, {"self_alltoall", self_alltoall, 0}, {"combine", combine, 0},
  };
  if (waits(p)) return;
  zeros(p);
  for (int r = 0; r < p->rounds; r++)
    for (size_t i = 0; i < sizeof things / sizeof *things; i++) by_size(p, &things[i], r);
  release(p);
}

/* One round per launch: an allocator keeps state. */
void measure_temporary(Plan* p) {
  static const Thing things[] = {{"plain", plain, 0}, {"untouched", untouched, 0}, {"one_buffer", one, 0}, {"two_buffers", two, 0}};
  if (waits(p)) return;
  zeros(p);
  for (int i = 0; i < p->count; i++) { /* all of one size before the next */
    Plan here = *p;
    here.sizes = p->sizes + i;
    here.count = 1;
    for (size_t k = 0; k < sizeof things / sizeof *things; k++) by_size(&here, &things[k], 0);
  }
  release(p);
}
