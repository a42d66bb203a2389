/* Measures two ranks with the MPI it is compiled against: measure WHAT ROUNDS QUICK CORES [SIZE...]
 *
 * WHAT is one of the names in `programs` below, QUICK 0 or 1 (fewer repetitions), CORES "a,b" (where the ranks are pinned) or "-".
 * Rank 0 prints lines "what size round value..."; times are nanoseconds. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void spin_ns(double ns) {
  const double end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

void* buffer(size_t bytes) {
  void* made = NULL;
  const size_t whole = (bytes + 4096) & ~(size_t)4095; /* at least a page */
  if (posix_memalign(&made, 4096, whole) != 0) {
    fprintf(stderr, "measure: no memory for %zu B\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  memset(made, 1, whole);
  return made;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

void quantiles(double* values, int count, double* out) {
  static const double shares[QUANTILES] = {0, 0.10, 0.25, 0.50, 0.75, 0.90, 1};
  qsort(values, (size_t)count, sizeof *values, ascending);
  for (int i = 0; i < QUANTILES; i++) out[i] = values[(int)(shares[i] * (count - 1) + 0.5)];
}

void say(const char* what, long size, int round, const double* values, int count) {
  printf("%s %ld %d", what, size, round);
  for (int i = 0; i < count; i++) printf(" %.1f", values[i]);
  printf("\n");
}

void shuffle(long* sizes, int count, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (int i = count - 1; i > 0; i--) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const int j = (int)((state >> 33) % (uint64_t)(i + 1));
    const long kept = sizes[i];
    sizes[i] = sizes[j];
    sizes[j] = kept;
  }
}

static void pin(const char* cores, int rank) {
  if (strcmp(cores, "-") == 0) return;
  const char* mine = cores;
  for (int i = 0; i < rank && mine != NULL; i++) {
    mine = strchr(mine, ',');
    mine = mine == NULL ? NULL : mine + 1;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(mine == NULL ? 0 : atoi(mine), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("measure: not pinned");
}

/* Every slot of the library's queues is used once in both directions, so that page faults do not count as message time. */
static void warm(const Plan* p) {
  enum { MESSAGES = 160, LARGEST = 64 * 1024 };
  char* data = buffer(LARGEST);
  for (int size = 4096; size <= LARGEST && far_apart(p) == 0; size *= 2)
    for (int i = 0; i < 2 * MESSAGES; i++)
      if (i % 2 == p->rank)
        MPI_Send(data, size - 512, MPI_BYTE, p->peer, 1, MPI_COMM_WORLD);
      else
        MPI_Recv(data, size - 512, MPI_BYTE, p->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(data);
}

static void leave(int number) {
  (void)number;
  _exit(0);
}

static void say_version(Plan* p) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  if (p->rank == 0) printf("%s\n", text);
}

static void say_nothing(Plan* p) { (void)p; }

static const struct {
  const char* name;
  void (*run)(Plan*);
  int ways;
} programs[] = {
    {"pingpong", measure_pingpong, 1}, {"echo", measure_echo, 1},   {"first", measure_first, 1},         {"rotating", measure_rotating, 1},
    {"marked", measure_marked, 1},     {"late", measure_late, 1},   {"stream", measure_stream, 1},       {"both", measure_stream, 2},
    {"exchange", measure_exchange, 2}, {"eager", measure_eager, 1}, {"room", measure_buffer_space, 1},   {"requests", measure_requests, 2},
    {"version", say_version, 1},       {"state", say_nothing, 1},   {"costs", measure_costs, 1},         {"copies", measure_copies, 1},
    {"compute", measure_compute, 1},   {"alone", measure_alone, 1}, {"temporary", measure_temporary, 1},
};

int main(int argc, char** argv) {
  int ranks = 0;
  Plan p = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 5 || ranks != 2) {
    fprintf(stderr, "usage: 2 ranks of measure WHAT ROUNDS QUICK CORES [SIZE...]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  p.peer = 1 - p.rank;
  p.rounds = atoi(argv[2]);
  p.quick = atoi(argv[3]);
  p.count = argc - 5;
  p.sizes = calloc((size_t)p.count + 1, sizeof *p.sizes);
  long largest = 0;
  for (int i = 0; i < p.count; i++) {
    p.sizes[i] = atol(argv[5 + i]);
    largest = p.sizes[i] > largest ? p.sizes[i] : largest;
  }
  pin(argv[4], p.rank);
  p.out = buffer((size_t)largest + 64);
  p.in = buffer((size_t)largest);
  const int measures = strcmp(argv[1], "version") != 0;
  const int fresh = strcmp(argv[1], "first") == 0; /* before anything else has been sent */
  if (measures) spin_ns(2e7);
  if (measures && !fresh) warm(&p);
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    if (strcmp(argv[1], programs[i].name) == 0) {
      p.ways = programs[i].ways;
      if (measures && !fresh) say_state(&p, 0);
      programs[i].run(&p);
      if (measures) say_state(&p, 1);
      MPI_Barrier(MPI_COMM_WORLD);
      if (p.rank == 0 && measures) printf("done 0 0\n");
      fflush(stdout);
      /* UCX 1.13 over TCP sometimes loses the last message of MPI_Finalize and waits forever; all results have been printed by now. */
      signal(SIGALRM, leave);
      alarm(3);
      MPI_Finalize();
      return 0;
    }
  fprintf(stderr, "measure: no measurement '%s'\n", argv[1]);
  MPI_Abort(MPI_COMM_WORLD, 2);
}
