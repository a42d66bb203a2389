/* One collective operation over message sizes, timed as the Intel MPI Benchmarks do it: repeated back to back with the root
 * going round, so that no root runs ahead of the others by more than a turn. Warm-up and a barrier come before every size.
 *
 *   mpicc -O2 collectives.c -o collectives && mpirun -np 2 ./collectives allreduce [--max BYTES] [--scale FACTOR]
 *   retrompi compare examples/collectives.c -n 2 -- allreduce
 *
 * The size is the vector of a broadcast or reduction, and one rank's block of a gather, scatter, allgather or alltoall.
 * --max BYTES     largest size (default 1048576; sizes are powers of two from 8 B, one double)
 * --scale FACTOR  multiplies the repetitions, at least one of each size is made (default 1)
 *
 * MPI_Pcontrol(size) and MPI_Pcontrol(-repetitions) enclose what is timed and say that it is so many equal parts.
 */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1024, ROOT = 0 };

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

static const struct {
  const char* name;
  void (*call)(const Call*);
} operations[] = {
    {"barrier", barrier}, {"bcast", bcast},     {"reduce", reduce},       {"allreduce", allreduce},
    {"gather", gather},   {"scatter", scatter}, {"allgather", allgather}, {"alltoall", alltoall},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static int repetitions(long size, double scale) {
  int reps = size <= 16L * KIB ? 1000 : size <= 256L * KIB ? 200 : 50;
  double scaled = floor(reps * scale + 0.5);
  return scaled < 1 ? 1 : (int)scaled;
}

static void wrong(const char* what) {
  fprintf(stderr, "collectives: %s; usage: collectives OPERATION [--max BYTES] [--scale FACTOR], OPERATION one of", what);
  for (int i = 0; i < OPERATIONS; i++) fprintf(stderr, " %s", operations[i].name);
  fprintf(stderr, "\n");
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static double number(const char* text, double low, double high) {
  char* end = NULL;
  errno = 0;
  double value = strtod(text, &end);
  if (errno != 0 || end == text || *end != '\0' || !(value >= low && value <= high)) wrong("a number is out of range");
  return value;
}

/* Seconds that `reps` calls take from this rank's point of view, with marks around them. */
static double timed(int which, Call* c, long size, int reps) {
  for (int i = 0; i < reps / 10 + 2; i++) {
    c->root = i % c->ranks;
    operations[which].call(c);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Pcontrol((int)size);
  const double start = MPI_Wtime();
  for (int i = 0; i < reps; i++) {
    c->root = i % c->ranks;
    operations[which].call(c);
  }
  const double took = MPI_Wtime() - start;
  MPI_Pcontrol(-reps);
  return took;
}

int main(int argc, char** argv) {
  int rank = 0;
  Call c = {0, 0, ROOT, NULL, NULL};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &c.ranks);

  int which = OPERATIONS;
  for (int i = 0; argc > 1 && i < OPERATIONS; i++)
    if (strcmp(argv[1], operations[i].name) == 0) which = i;
  if (which == OPERATIONS) wrong("no such operation");
  long max = 1024L * KIB;
  double scale = 1.0;
  for (int i = 2; i < argc; i += 2) {
    const int last = i + 1 == argc;
    if (!last && strcmp(argv[i], "--max") == 0)
      max = (long)number(argv[i + 1], 0, 1L << 28);
    else if (!last && strcmp(argv[i], "--scale") == 0)
      scale = number(argv[i + 1], 0, 1000);
    else
      wrong("an option is not known or has no value");
  }

  const int empty = strcmp(operations[which].name, "barrier") == 0;
  const size_t doubles = (size_t)max / sizeof(double) + 1;
  c.in = calloc(doubles * (size_t)c.ranks, sizeof(double));
  c.out = calloc(doubles * (size_t)c.ranks, sizeof(double));
  if (c.in == NULL || c.out == NULL) wrong("no memory for the largest size");
  if (rank == ROOT) printf("%10s %12s %14s %16s\n", "size_B", "repetitions", "time_us", "bandwidth_MBps");
  for (long size = empty ? 0 : (long)sizeof(double); size <= (empty ? 0 : max); size *= 2) {
    const int reps = repetitions(size, scale);
    c.count = (int)(size / (long)sizeof(double));
    double mine = timed(which, &c, size, reps);
    double slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, ROOT, MPI_COMM_WORLD);
    const double each = slowest / reps;
    if (rank == ROOT) printf("%10ld %12d %14.3f %16.3f\n", size, reps, each * 1e6, each > 0 ? (double)size / each / 1e6 : 0.0);
    if (empty) break;
  }
  free(c.in);
  free(c.out);
  MPI_Finalize();
  return 0;
}
