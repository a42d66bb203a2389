/* The machine beneath the MPI: calls, system calls, context switches, cache lines between cores, copies, arithmetic. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

enum { TAG = 10, CALLS = 2000 };

static double per_call(void (*call)(const Plan*, MPI_Request*), const Plan* p, MPI_Request* request) {
  const double begun = now_ns();
  for (int i = 0; i < CALLS; i++) call(p, request);
  return (now_ns() - begun) / CALLS;
}

static volatile double wtime_kept;

static void call_nothing(const Plan* p, MPI_Request* q) {
  (void)p;
  (void)q;
  __asm__ volatile("" ::: "memory");
}
static void call_clock(const Plan* p, MPI_Request* q) {
  (void)p;
  (void)q;
  wtime_kept = now_ns();
}
static void call_wtime(const Plan* p, MPI_Request* q) {
  (void)p;
  (void)q;
  wtime_kept = MPI_Wtime();
}
static void call_syscall(const Plan* p, MPI_Request* q) {
  (void)p;
  (void)q;
  syscall(SYS_getppid);
}
static void call_iprobe(const Plan* p, MPI_Request* q) {
  int found = 0;
  (void)q;
  MPI_Iprobe(p->peer, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}
static void call_test(const Plan* p, MPI_Request* q) {
  int done = 0;
  (void)p;
  MPI_Test(q, &done, MPI_STATUS_IGNORE);
}

/* Two processes on this core pass a byte back and forth through pipes: half a round is a switch, two system calls and a wake-up. */
static double context_switch(void) {
  int there[2], back[2];
  char byte = 0;
  cpu_set_t before, here;
  sched_getaffinity(0, sizeof before, &before);
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  sched_setaffinity(0, sizeof here, &here);
  if (pipe(there) != 0 || pipe(back) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < CALLS; i++)
      if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) break;
    _exit(0);
  }
  const double begun = now_ns();
  for (int i = 0; i < CALLS; i++)
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) break;
  const double took = (now_ns() - begun) / CALLS / 2;
  waitpid(child, NULL, 0);
  for (int i = 0; i < 2; i++) {
    close(there[i]);
    close(back[i]);
  }
  sched_setaffinity(0, sizeof before, &before);
  return took;
}

/* Two ranks write a cache line in turn: time from one rank's write until the other sees it. */
static double line_transfer(const Plan* p, _Atomic int64_t* line) {
  MPI_Barrier(MPI_COMM_WORLD);
  const int64_t first = atomic_load(line);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = now_ns();
  for (int64_t i = 0; i < 2 * CALLS; i++)
    if (i % 2 == p->rank) {
      atomic_store_explicit(line, first + i + 1, memory_order_release);
    } else {
      while (atomic_load_explicit(line, memory_order_acquire) != first + i + 1) {
      }
    }
  return (now_ns() - begun) / (2 * CALLS);
}

static MPI_Win line_window = MPI_WIN_NULL;

/* A line in memory that both ranks share; NULL where they are on two hosts. */
static _Atomic int64_t* shared_line(const Plan* p) {
  static _Atomic int64_t* line;
  static int known;
  if (known) return line;
  known = 1;
  MPI_Comm host;
  int together = 0, unit = 0;
  void* base = NULL;
  MPI_Aint length = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, p->rank, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &together);
  if (together == 2) {
    MPI_Win_allocate_shared(p->rank == 0 ? 4096 : 0, 1, MPI_INFO_NULL, host, &base, &line_window);
    MPI_Win_shared_query(line_window, 0, &length, &unit, &base);
    line = (_Atomic int64_t*)base;
    if (p->rank == 0) atomic_store(line, 0);
  }
  MPI_Comm_free(&host);
  return line;
}

int far_apart(const Plan* p) { return shared_line(p) == NULL; }

void say_state(const Plan* p, int when) {
  _Atomic int64_t* line = shared_line(p);
  double least = 0;
  for (int i = 0; i < 3 && line != NULL; i++) {
    const double took = line_transfer(p, line);
    least = i == 0 || took < least ? took : least;
  }
  if (p->rank == 0 && line != NULL) say("state", 0, when, &least, 1);
  if (when == 1 && line_window != MPI_WIN_NULL) MPI_Win_free(&line_window);
}

void measure_costs(Plan* p) {
  static const struct {
    const char* name;
    void (*call)(const Plan*, MPI_Request*);
  } calls[] = {{"nothing", call_nothing}, {"clock", call_clock},   {"wtime", call_wtime},
               {"syscall", call_syscall}, {"iprobe", call_iprobe}, {"test", call_test}};
  _Atomic int64_t* line = shared_line(p);
  for (int r = 0; r < p->rounds; r++) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
      MPI_Request request = MPI_REQUEST_NULL;
      char byte = 0;
      MPI_Barrier(MPI_COMM_WORLD);
      if (calls[i].call == call_test) MPI_Irecv(&byte, 1, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD, &request);
      const double took = per_call(calls[i].call, p, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      if (request != MPI_REQUEST_NULL) {
        MPI_Send(&byte, 1, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      if (p->rank == 0) say(calls[i].name, 0, r, &took, 1);
    }
    if (line != NULL) {
      const double line_ns = line_transfer(p, line);
      if (p->rank == 0) say("line", 0, r, &line_ns, 1);
    }
    if (p->rank == 0) {
      const double took = context_switch();
      say("switch", 0, r, &took, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* Copies on rank 0 alone, source and target together as large as the plan's size: nanoseconds per copy. */
void measure_copies(Plan* p) {
  if (p->rank == 1) {
    char end = 0;
    MPI_Recv(&end, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  for (int r = 0; r < p->rounds; r++) {
    shuffle(p->sizes, p->count, (uint64_t)r);
    for (int i = 0; i < p->count; i++) {
      const long half = p->sizes[i] / 2;
      const long bytes = p->quick ? 4L << 20 : 16L << 20;
      const int n = (int)(bytes / half > 0 ? bytes / half : 1);
      double best[3];
      memcpy(p->in, p->out, (size_t)half);
      for (int b = 0; b < 3; b++) {
        const double begun = now_ns();
        for (int k = 0; k < n; k++) {
          memcpy(p->in, p->out, (size_t)half);
          __asm__ volatile("" ::: "memory");
        }
        best[b] = (now_ns() - begun) / n;
      }
      say("copy", p->sizes[i], r, best, 3);
    }
  }
  MPI_Send(p->out, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

/* Multiplications and additions on data in the first-level cache: flop/s of rank 0 alone, and with rank 1 doing the same. */
static double arithmetic(double* a, const double* b, int n) {
  const int repetitions = 400;
  const double begun = now_ns();
  for (int k = 0; k < repetitions; k++) {
    for (int i = 0; i < n; i++) a[i] = a[i] * 0.999999 + b[i];
    __asm__ volatile("" ::: "memory");
  }
  return 2.0 * n * repetitions / (now_ns() - begun) * 1e9;
}

void measure_compute(Plan* p) {
  enum { N = 1024 };
  static double a[N], b[N];
  for (int i = 0; i < N; i++) b[i] = 1e-9 * i;
  for (int r = 0; r < p->rounds; r++)
    for (int together = 0; together < 2; together++) {
      double rates[5] = {0};
      MPI_Barrier(MPI_COMM_WORLD);
      for (int k = 0; k < 5; k++)
        if (together || p->rank == 0) rates[k] = arithmetic(a, b, N);
      if (p->rank == 1 && !together) spin_ns(1e5); /* outside MPI: a polling rank interferes less than it could, but it does interfere */
      if (p->rank == 0) say(together ? "flops_both" : "flops", N, r, rates, 5);
    }
}
