/* One collective operation over message sizes, timed as the Intel MPI Benchmarks do it: again and again with the root going round, so
 * that no root runs ahead of the others by more than a turn. Warm-up and a barrier come before every size.
 *
 *   mpicc -O2 collectives.c -lm -o collectives && mpirun -np 2 ./collectives --operation allreduce [--max BYTES] ...
 *   retrompi compare examples/collectives.c -n 2 -m mpich -- --operation allreduce
 *
 * --operation NAME  barrier, bcast, reduce, allreduce, gather, scatter, allgather or alltoall
 * --max BYTES       largest size (default 1048576)
 * --sizes A,B,...   these sizes instead, in bytes; they are rounded down to whole doubles
 * --scale FACTOR    multiplies the repetitions, at least one of each size is made (default 1)
 *
 * A size is the vector of a broadcast or reduction, and one rank's block of a gather, scatter, allgather or alltoall. Section N of
 * MPI_Pcontrol are the timed calls of N bytes; its parts are single calls.
 */
#include "example.h"

typedef struct {
  int ranks;
  int count; /* of MPI_DOUBLE */
  int root;
  double* in;
  double* out;
} Call;

static void barrier(const Call* c) {
  (void)c;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(const Call* c) { MPI_Bcast(c->in, c->count, MPI_DOUBLE, c->root, MPI_COMM_WORLD); }

static void reduce(const Call* c) { MPI_Reduce(c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, c->root, MPI_COMM_WORLD); }

static void allreduce(const Call* c) { MPI_Allreduce(c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }

static void gather(const Call* c) { MPI_Gather(c->in, c->count, MPI_DOUBLE, c->out, c->count, MPI_DOUBLE, c->root, MPI_COMM_WORLD); }

static void scatter(const Call* c) { MPI_Scatter(c->in, c->count, MPI_DOUBLE, c->out, c->count, MPI_DOUBLE, c->root, MPI_COMM_WORLD); }

static void allgather(const Call* c) { MPI_Allgather(c->in, c->count, MPI_DOUBLE, c->out, c->count, MPI_DOUBLE, MPI_COMM_WORLD); }

static void alltoall(const Call* c) { MPI_Alltoall(c->in, c->count, MPI_DOUBLE, c->out, c->count, MPI_DOUBLE, MPI_COMM_WORLD); }

/* Block `block` of what rank `from` holds, or the whole of it where there are no blocks. */
static double value(int from, int block, int i) { return from + 8.0 * block + i % 64 * 64.0; }

static double sum_of(int ranks, int i) {
  double sum = 0;
  for (int from = 0; from < ranks; from++) sum += value(from, 0, i);
  return sum;
}

/* Places of `found` that are not what the operation promises this rank; the root is `c->root`. */
static long wrong_reduction(const Call* c, const double* found) {
  long wrong = 0;
  for (int i = 0; i < c->count; i++) wrong += found[i] != sum_of(c->ranks, i);
  return wrong;
}

static long check_none(const Call* c, int rank) {
  (void)c;
  (void)rank;
  return 0;
}

static long check_bcast(const Call* c, int rank) {
  (void)rank;
  long wrong = 0;
  for (int i = 0; i < c->count; i++) wrong += c->in[i] != value(c->root, 0, i);
  return wrong;
}

static long check_reduce(const Call* c, int rank) { return rank == c->root ? wrong_reduction(c, c->out) : 0; }

static long check_allreduce(const Call* c, int rank) {
  (void)rank;
  return wrong_reduction(c, c->out);
}

static long check_allgather(const Call* c, int rank) {
  (void)rank;
  long wrong = 0;
  for (int from = 0; from < c->ranks; from++)
    for (int i = 0; i < c->count; i++) wrong += c->out[from * c->count + i] != value(from, 0, i);
  return wrong;
}

static long check_gather(const Call* c, int rank) { return rank == c->root ? check_allgather(c, rank) : 0; }

static long check_scatter(const Call* c, int rank) {
  long wrong = 0;
  for (int i = 0; i < c->count; i++) wrong += c->out[i] != value(c->root, rank, i);
  return wrong;
}

static long check_alltoall(const Call* c, int rank) {
  long wrong = 0;
  for (int from = 0; from < c->ranks; from++)
    for (int i = 0; i < c->count; i++) wrong += c->out[from * c->count + i] != value(from, rank, i);
  return wrong;
}

typedef struct {
  const char* name;
  void (*call)(const Call*);
  long (*check)(const Call*, int);
} Operation;

static const Operation operations[] = {
    {"barrier", barrier, check_none},          {"bcast", bcast, check_bcast},          {"reduce", reduce, check_reduce},
    {"allreduce", allreduce, check_allreduce}, {"gather", gather, check_gather},       {"scatter", scatter, check_scatter},
    {"allgather", allgather, check_allgather}, {"alltoall", alltoall, check_alltoall},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static int repetitions(long size, double scale) { return scaled(size <= 16L * KIB ? 1000 : size <= 256L * KIB ? 200 : 50, scale); }

static void repeated(const Operation* operation, Call* c, int reps) {
  for (int i = 0; i < reps; i++) {
    c->root = i % c->ranks;
    operation->call(c);
  }
}

/* One call on fresh data from the last rank, and whether it did what it should. */
static long checked(const Operation* operation, Call* c) {
  const int rank = world_rank();
  for (int block = 0; block < c->ranks; block++)
    for (int i = 0; i < c->count; i++) c->in[block * c->count + i] = value(rank, block, i);
  c->root = c->ranks - 1;
  operation->call(c);
  return operation->check(c, rank);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double max = 1024.0 * KIB;
  double scale = 1;
  const char* list = NULL;
  const char* name = "";
  const Option options[] = {
      {"operation", NULL, 0, 0, &name, "barrier, bcast, reduce, allreduce, gather, scatter, allgather or alltoall"},
      {"max", &max, 0, 1L << 26, NULL, "largest size, bytes"},
      {"sizes", NULL, 0, 0, &list, "sizes in bytes, separated by commas"},
      {"scale", &scale, 0, 1000, NULL, "multiplies the repetitions"},
  };
  read_options(argc, argv, options, 4, "collectives: the time of a collective operation");
  const Operation* operation = NULL;
  for (int i = 0; i < OPERATIONS; i++)
    if (strcmp(name, operations[i].name) == 0) operation = &operations[i];
  if (operation == NULL) refuse("--operation is %s, not '%s'", options[0].help, name);

  const Sizes sizes = message_sizes(operation->call == barrier ? "0" : list, (long)max, 0);
  Call c = {world_size(), 0, 0, NULL, NULL};
  const size_t doubles = (size_t)largest(&sizes) / sizeof(double) * (size_t)c.ranks;
  c.in = memory(doubles, sizeof(double));
  c.out = memory(doubles, sizeof(double));
  long wrong = 0;
  table_head();
  for (int s = 0; s < sizes.count; s++) {
    c.count = (int)(sizes.size[s] / (long)sizeof(double));
    const long size = c.count * (long)sizeof(double);
    if (size == 0 && operation->call != barrier) continue;
    const int reps = repetitions(size, scale);
    repeated(operation, &c, reps / 10 + 2);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol((int)size);
    const double start = MPI_Wtime();
    repeated(operation, &c, reps);
    const double took = MPI_Wtime() - start;
    MPI_Pcontrol(-reps);
    table_row(size, reps, slowest(took) / reps, (double)size);
    wrong += checked(operation, &c);
  }
  free(c.in);
  free(c.out);
  return finish(name, wrong);
}
