// Per-rank state, clock and trace file, and the calls that begin and end a program.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

#ifdef __linux__
#include <linux/perf_event.h>
#endif
#ifdef RECORD_SMPI
#include <simgrid/actor.h>

// SMPI's own measurement of the program's computation, which stops where a call begins.
void smpi_bench_begin(void);
void smpi_bench_end(void);
#endif

#define WINDOW ((size_t)1 << 20)
#define PAGE ((size_t)4096)

static enum { CLOCK_CPU, CLOCK_WALL, CLOCK_INSTRUCTIONS, CLOCK_CYCLES } clock_kind;
static double rate = 1e9;  // flop/s; for hardware counters: flop per event
static int64_t threshold = 1000;
static int perf_fd = -1;

// --- identifying the rank ---------------------------------------------------------------------------------------------------

#ifdef RECORD_SMPI
// Under SMPI ranks are actors of one process that take turns.
static Rank **ranks;
static long ranks_known;

Rank *self(void) {
  const long pid = (long)sg_actor_self_get_pid();
  return pid >= 0 && pid < ranks_known ? ranks[pid] : NULL;
}

static Rank *new_self(void) {
  const long pid = (long)sg_actor_self_get_pid();
  if (pid >= ranks_known) {
    ranks = realloc(ranks, (size_t)(pid + 1) * 2 * sizeof *ranks);
    memset(ranks + ranks_known, 0, (size_t)((pid + 1) * 2 - ranks_known) * sizeof *ranks);
    ranks_known = (pid + 1) * 2;
  }
  return ranks[pid] = calloc(1, sizeof(Rank));
}
#define LAST(r) ((r)->last)
#define IN_CALL(r) ((r)->in_call)
#else
static Rank the_rank;
static __thread int64_t last_of_thread __attribute__((tls_model("initial-exec")));
static __thread bool thread_in_call __attribute__((tls_model("initial-exec")));

Rank *self(void) { return &the_rank; }
static Rank *new_self(void) { return &the_rank; }
#define LAST(r) last_of_thread
#define IN_CALL(r) thread_in_call
#endif

void *next_function(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) {
    fprintf(stderr, "retrompi record: the MPI library has no %s\n", name);
    abort();
  }
  return found;
}

void *scratch(Rank *r, int which, size_t bytes) {
  if (bytes > r->scratch_size[which]) {
    free(r->scratch[which]);
    r->scratch_size[which] = bytes * 2;
    r->scratch[which] = malloc(bytes * 2);
    if (r->scratch[which] == NULL) abort();
  }
  return r->scratch[which];
}

// --- clock ------------------------------------------------------------------------------------------------------------------

static int64_t now(void) {
  if (UNLIKELY(clock_kind >= CLOCK_INSTRUCTIONS)) {
    uint64_t count = 0;
    if (read(perf_fd, &count, sizeof count) != (ssize_t)sizeof count) return 0;
    return (int64_t)count;
  }
  struct timespec t;
  clock_gettime(clock_kind == CLOCK_CPU ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void open_clock(void) {
  const char *kind = getenv("RETROMPI_RECORD_CLOCK");
  const char *value = getenv("RETROMPI_RECORD_RATE");
  if (value != NULL) rate = strtod(value, NULL);
  value = getenv("RETROMPI_RECORD_THRESHOLD");
  if (value != NULL) threshold = strtoll(value, NULL, 10);
  if (kind == NULL || strcmp(kind, "cpu") == 0) {
    clock_kind = CLOCK_CPU;
  } else if (strcmp(kind, "wall") == 0) {
    clock_kind = CLOCK_WALL;
  } else if (perf_fd < 0) {
#ifdef __linux__
    const bool cycles = strcmp(kind, "cycles") == 0;
    struct perf_event_attr a = {.type = PERF_TYPE_HARDWARE, .size = sizeof a};
    a.config = cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_HW_INSTRUCTIONS;
    a.exclude_kernel = 1;
    a.exclude_hv = 1;
    perf_fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
    clock_kind = cycles ? CLOCK_CYCLES : CLOCK_INSTRUCTIONS;
#endif
    if (perf_fd < 0) {
      fprintf(stderr, "retrompi record: this host counts no %s (%s): CPU time is recorded\n", kind, strerror(errno));
      clock_kind = CLOCK_CPU;
    }
  }
}

static const char *clock_name(void) {
  static const char *const names[] = {"cpu", "wall", "instructions", "cycles"};
  return names[clock_kind];
}

// --- the trace file ---------------------------------------------------------------------------------------------------------

// A shared mapping of the file: what is written there survives the process, however it ends.
static bool map_window(Rank *r, size_t space) {
  uint64_t offset = r->base;
  if (r->map != NULL) {
    offset += (uint64_t)(r->at - r->map);
    munmap(r->map, r->mapped);
    r->map = NULL;
  }
  const uint64_t first = offset & ~(uint64_t)(PAGE - 1);
  size_t length = (size_t)(offset - first) + space + WINDOW;
  length = (length + PAGE - 1) & ~(PAGE - 1);
  // Allocated in advance, since a store into a hole on a full disk would kill the program.
  if (posix_fallocate(r->fd, (off_t)first, (off_t)length) != 0) return false;
  char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, (off_t)first);
  if (p == MAP_FAILED) return false;
  r->map = p;
  r->mapped = length;
  r->base = first;
  r->at = p + (offset - first);
  r->end = p + length;
  return true;
}

static char drop[LINE_SPACE * 4];  // lines go here when the disk is full

static char *reserve(Rank *r, size_t space) {
  if (UNLIKELY((size_t)(r->end - r->at) < space) && !map_window(r, space)) {
    if (r->state->phase == 1) fprintf(stderr, "retrompi record: rank %d: no room for its trace; it ends here\n", r->world);
    r->state->phase = 4;
    r->on = false;
    return NULL;
  }
  return r->at;
}

char *digits(char *p, int64_t value) {
  char tmp[24];
  int n = 0;
  uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  if (value < 0) *p++ = '-';
  do {
    tmp[n++] = (char)('0' + v % 10);
    v /= 10;
  } while (v != 0);
  while (n > 0) *p++ = tmp[--n];
  return p;
}

// A number with at most three decimals.
static char *decimal(char *p, double value) {
  const int64_t whole = (int64_t)value;
  int64_t rest = (int64_t)((value - (double)whole) * 1000 + 0.5);
  p = digits(p, whole + rest / 1000);
  rest %= 1000;
  if (rest != 0) {
    *p++ = '.';
    for (int64_t d = 100; d > 0 && rest > 0; d /= 10) {
      *p++ = (char)('0' + rest / d);
      rest %= d;
    }
  }
  return p;
}

static char *amount(char *p, int64_t ticks) {
  if (clock_kind >= CLOCK_INSTRUCTIONS) return rate == 1 ? digits(p, ticks) : decimal(p, (double)ticks * rate);
  return rate == 1e9 ? digits(p, ticks) : decimal(p, (double)ticks * (rate * 1e-9));
}

// Writes the computation since the last call as a line.
static char *burst(Rank *r, char *p) {
  p = text(digits(p, r->world), " compute ");
  p = amount(p, r->pending);
  *p++ = '\n';
  r->pending = 0;
  r->state->lines++;
  return p;
}

// A line that does not fit is lost entirely: `space` is an upper bound on its length.
char *line(Rank *r, const char *action, size_t space) {
  char *p = r->silent ? NULL : reserve(r, space + LINE_SPACE);
  if (UNLIKELY(p == NULL)) return space + LINE_SPACE <= sizeof drop ? drop : scratch(r, 3, space + LINE_SPACE);
  if (r->pending >= threshold && r->pending > 0) p = burst(r, p);
  p = digits(p, r->world);
  *p++ = ' ';
  return text(p, action);
}

void end_line(Rank *r, char *p) {
  r->lined = true;
  *p++ = '\n';
  if (UNLIKELY(!r->on || r->silent)) return;
  r->at = p;
  r->state->lines++;
  r->state->written = r->base + (uint64_t)(p - r->map);
}

void comment(Rank *r, const char *what) {
  if (r->silent) return;
  char *p = reserve(r, strlen(what) + 8);
  if (p == NULL) return;
  p = text(text(p, "# "), what);
  *p++ = '\n';
  r->at = p;
  r->state->written = r->base + (uint64_t)(p - r->map);
}

// A call that a replay must refuse: a line at its place says so.
void unsupported(Rank *r, const char *action) {
  r->state->unsupported++;
  end_line(r, line(r, action, 0));
}

// --- a call -----------------------------------------------------------------------------------------------------------------

// Writes the computation up to here now instead of before the next line.
static void tell_burst(Rank *r) {
  char *p = r->silent || r->pending <= 0 ? NULL : reserve(r, LINE_SPACE);
  if (p == NULL) return;
  p = burst(r, p);
  r->at = p;
  r->state->written = r->base + (uint64_t)(p - r->map);
}

static bool calibrating;  // the recorder measures itself

#ifdef RECORD_SMPI
// With SMPI online at a runtime's costs (retrompi/smpi), the computation written to the trace is what is simulated, at the same place.
static void tell_computation(Rank *r, int64_t least) {
  static void (*simulate)(double);
  static bool looked;
  if (UNLIKELY(!looked)) {
    looked = true;
    *(void **)&simulate = dlsym(RTLD_DEFAULT, "retrompi_smpi_compute");
  }
  if (simulate == NULL) return;
  // Usually nothing is pending, but from the first call on the recorder is the only one that measures computation.
  const bool due = r->pending >= least && r->pending > 0;
  simulate(!due ? 0.0 : (double)r->pending * (clock_kind >= CLOCK_INSTRUCTIONS ? rate : rate * 1e-9));
  if (due) tell_burst(r);
}
#endif

// `least`: ticks of computation from which it is written before the call rather than carried over to a later one.
static Rank *enter_after(int64_t least) {
  Rank *r = self();
  if (UNLIKELY(r == NULL || !r->on)) return NULL;
  if (UNLIKELY(IN_CALL(r))) {
    r->state->nested++;
    return NULL;
  }
  if (UNLIKELY(__atomic_exchange_n(&r->inside, 1, __ATOMIC_ACQUIRE) != 0)) {
    if (r->state->threads < 2) r->state->threads = 2;  // two threads in MPI at once: their order cannot be determined
    return NULL;
  }
  IN_CALL(r) = true;
  const int64_t t = r->silent ? 1 : now();
  if (UNLIKELY(!pthread_equal(r->owner, pthread_self()))) {
    if (r->state->threads == 0) r->state->threads = 1;
    r->owner = pthread_self();
    if (LAST(r) == 0) LAST(r) = t;  // what a thread did before its first call is unknown
  }
  const int64_t busy = t - LAST(r) - r->gap;
  // The median cost of empty bursts is subtracted: a burst below it offsets one above it, but a run of fast ones does not offset computation.
  r->pending += busy;
  if (UNLIKELY(r->pending < -r->gap)) r->pending = -r->gap;
#ifdef RECORD_SMPI
  if (!calibrating) tell_computation(r, least);
#else
  (void)least;
#endif
  if (UNLIKELY(r->profile != NULL)) {
#ifdef RECORD_SMPI
    smpi_bench_end();    // the simulated clock must show the call's time, including the computation before it,
    smpi_bench_begin();  // and what the recorder does here is not the program's
#endif
    r->call = NULL;
    r->lined = false;
    r->size = 0;
    r->began = profile_clock();
  }
  return r;
}

Rank *enter(void) { return enter_after(threshold); }

int leave(Rank *r, int rc) {
  // A call without a line (a wait for nothing) is not counted, so that a recorded run and the replay of its trace have the same calls.
  if (UNLIKELY(r->profile != NULL) && r->call != NULL && r->lined) profile_call(r->profile, r->call, r->size, profile_clock() - r->began);
  if (UNLIKELY(r->state->threads == 2)) {
    unsupported(r, "threads");
    r->state->threads = 3;
  }
  r->state->calls++;
  r->state->inside[0] = 0;
  IN_CALL(r) = false;
  __atomic_store_n(&r->inside, 0, __ATOMIC_RELEASE);
  LAST(r) = r->silent ? 1 : now();
#ifdef RECORD_SMPI
  if (UNLIKELY(r->profile != NULL)) smpi_bench_begin();
#endif
  return rc;
}

int failed(Rank *r, int rc) {
  r->state->failed_calls++;
  return leave(r, rc);
}

// --- begin and end ----------------------------------------------------------------------------------------------------------

static void cpu_model(char *out, size_t size) {
  snprintf(out, size, "unknown");
  FILE *f = fopen("/proc/cpuinfo", "re");
  if (f == NULL) return;
  char row[256];
  while (fgets(row, sizeof row, f) != NULL) {
    char *colon = strchr(row, ':');
    if (colon != NULL && strncmp(row, "model name", 10) == 0) {
      row[strcspn(row, "\n")] = 0;
      snprintf(out, size, "%s", colon + 2);
      break;
    }
  }
  fclose(f);
}

static int ascending(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// The clock's increment between the end of one call and the beginning of the next when the program does nothing: the recorder's own
// overhead, subtracted from every burst. Also the total cost of a recorded call, for the header.
static void calibrate(Rank *r) {
  enum { BATCHES = 8, TIMES = 64 };
  int64_t empty[BATCHES * TIMES];
  int known = 0;
  char *const at = r->at;
  const State before = *r->state;
  int64_t call = INT64_MAX;
  r->on = calibrating = true;
  r->gap = 0;
  for (int batch = 0; batch < BATCHES; batch++) {  // the fastest batch: others were preempted
    struct timespec t0, t1;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    for (int i = 0; i < TIMES; i++) {
      r->pending = 0;
      Rank *const me = enter();
      if (me == NULL) break;
      if (batch + i > 0) empty[known++] = me->pending;
      me->pending = threshold;
      char *p = line(me, "isend", 0);
      p = num(num(num(num(p, i), 17), 123456), 6);
      end_line(me, ATTR(p, "req", i));
      leave(me, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    const int64_t ns = ((t1.tv_sec - t0.tv_sec) * 1000000000LL + (t1.tv_nsec - t0.tv_nsec)) / TIMES;
    if (ns < call) call = ns;
  }
  *r->state = before;
  memset(at, 0, (size_t)(r->at - at));
  r->at = at;
  r->pending = 0;
  calibrating = false;
  qsort(empty, (size_t)known, sizeof *empty, ascending);
  r->gap = known == 0 ? 0 : empty[known / 2];
  r->state->gap_ns = (uint64_t)r->gap;
  r->state->overhead_ns = (uint64_t)call;
}

static int create(const char *folder, const char *name, int rank) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/rank-%d.%s", folder, rank, name) >= (int)sizeof path) return -1;
  return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static void header(Rank *r, const char *how) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "", cpu[128], row[4096], date[32];
  int length = 0;
  PMPI_Get_library_version(library, &length);
  for (char *s = library; *s != 0; s++)
    if (*s == '\n' || *s == '\t') *s = ' ';
  library[strnlen(library, 120) > 119 ? 119 : strlen(library)] = 0;
  cpu_model(cpu, sizeof cpu);
  const time_t t = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &utc));
  snprintf(row, sizeof row, "retrompi record 1: rank %d of %d, %s, %s", r->world, r->ranks, how, date);
  comment(r, row);
  snprintf(row, sizeof row, "library: %s", library);
  comment(r, row);
  snprintf(row, sizeof row, "processor: %s", cpu);
  comment(r, row);
  if (clock_kind >= CLOCK_INSTRUCTIONS)
    snprintf(row, sizeof row, "clock: %s, %g flop each; bursts under %lld are added to the next", clock_name(), rate, (long long)threshold);
  else
    snprintf(row, sizeof row, "clock: %s time, %.12g flop/s; bursts under %lld ns are added to the next", clock_name(), rate, (long long)threshold);
  comment(r, row);
  // Marks about the whole trace, which reading keeps: the rate and where it comes from. One rank states them for all.
  const char *source = getenv("RETROMPI_RECORD_SOURCE");
  if (r->world == 0 && source != NULL && *source != 0 && clock_kind < CLOCK_INSTRUCTIONS) {
    snprintf(row, sizeof row, "mark about rate %.12g flop/s", rate);
    comment(r, row);
    snprintf(row, sizeof row, "mark about rate-source %.900s", source);
    comment(r, row);
  }
  snprintf(row, sizeof row, "overhead: %llu ns a call, %llu %s taken off each burst", (unsigned long long)r->state->overhead_ns,
           (unsigned long long)r->state->gap_ns, clock_kind >= CLOCK_INSTRUCTIONS ? "events" : "ns");
  comment(r, row);
  const char *command = getenv("RETROMPI_RECORD_COMMAND");
  if (command != NULL) {
    snprintf(row, sizeof row, "command: %.3900s", command);
    for (char *s = row; *s != 0; s++)
      if ((unsigned char)*s < ' ' || *s == 127) *s = ' ';
    comment(r, row);
  }
}

// Child processes of the program need no recorder.
static void stop_inheriting(void) {
#ifndef RECORD_SMPI
  Dl_info info;
  const char *list = getenv("LD_PRELOAD");
  if (list == NULL || dladdr((void *)&the_rank, &info) == 0) return;
  char *kept = calloc(1, strlen(list) + 1);
  char *copy = strdup(list);
  char *save = NULL;
  for (char *word = strtok_r(copy, " :", &save); word != NULL; word = strtok_r(NULL, " :", &save))
    if (strcmp(word, info.dli_fname) != 0) {
      if (*kept != 0) strcat(kept, ":");
      strcat(kept, word);
    }
  if (*kept != 0)
    setenv("LD_PRELOAD", kept, 1);
  else
    unsetenv("LD_PRELOAD");
  free(copy);
  free(kept);
#endif
}

void setup(const char *how) {
  const char *folder = getenv("RETROMPI_RECORD_DIR");
  if (folder == NULL) return;
#ifndef RECORD_SMPI
  MPI_Comm parent = MPI_COMM_NULL;
  if (PMPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL) return;  // spawned: a different MPI_COMM_WORLD
#endif
  Rank *r = new_self();
  if (r->on) return;
  open_clock();
  PMPI_Comm_rank(MPI_COMM_WORLD, &r->world);
  PMPI_Comm_size(MPI_COMM_WORLD, &r->ranks);
  const int state = create(folder, "state", r->world);
  r->silent = getenv("RETROMPI_RECORD_LINES") != NULL && strcmp(getenv("RETROMPI_RECORD_LINES"), "0") == 0;
  r->fd = r->silent ? -1 : create(folder, "txt", r->world);
  if (state < 0 || (r->fd < 0 && !r->silent) || posix_fallocate(state, 0, (off_t)PAGE) != 0 ||
      (r->state = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, state, 0)) == MAP_FAILED || (!r->silent && !map_window(r, 0))) {
    fprintf(stderr, "retrompi record: rank %d cannot write to %s (%s): not recorded\n", r->world, folder, strerror(errno));
    return;
  }
  close(state);
  r->state->rank = (uint64_t)r->world;
  r->state->ranks = (uint64_t)r->ranks;
  r->state->phase = 1;
  r->owner = pthread_self();
  LAST(r) = now();
  r->on = true;
  if (!r->silent) {
    calibrate(r);
    header(r, how);
  }
  memcpy(r->state->magic, "RETROREC", 8);
  register_comms(r);
  end_line(r, line(r, "init", 0));
  stop_inheriting();
  r->profile = profile_begin(r->world, r->ranks);
  LAST(r) = r->silent ? 1 : now();
#ifdef RECORD_SMPI
  if (r->profile != NULL) smpi_bench_begin();
#endif
}

void finish(Rank *r, int phase) {
  if (r->profile != NULL) {
    profile_end(r->profile, r->began, phase == 2 ? "finalized" : "aborted");
    r->profile = NULL;
  }
  if (r->map != NULL) {
    const uint64_t length = r->state->written;
    munmap(r->map, r->mapped);
    r->map = NULL;
    if (ftruncate(r->fd, (off_t)length) != 0) r->state->failed_calls++;  // the reader strips the trailing zeros
    close(r->fd);
  }
  r->on = false;
  r->state->phase = (uint64_t)phase;
  r->state->inside[0] = 0;
}

DEFINE(Init, (int *argc, char ***argv)) {
  const int rc = REAL(Init, (argc, argv));
  if (rc == MPI_SUCCESS) setup("MPI_Init");
  return rc;
}

DEFINE(Init_thread, (int *argc, char ***argv, int required, int *provided)) {
  const int rc = REAL(Init_thread, (argc, argv, required, provided));
  if (rc == MPI_SUCCESS) {
    static const char *const how[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};
    int level = 0;
    if (*provided == MPI_THREAD_FUNNELED) level = 1;
    if (*provided == MPI_THREAD_SERIALIZED) level = 2;
    if (*provided == MPI_THREAD_MULTIPLE) level = 3;
    setup(how[level]);
  }
  return rc;
}

DEFINE(Finalize, (void)) {
  Rank *r;
  ENTER(r, "MPI_Finalize");
  if (r != NULL) {
    end_line(r, line(r, "finalize", 0));
    r->state->calls++;
    finish(r, 2);
  }
  return REAL(Finalize, ());
}

DEFINE(Abort, (MPI_Comm comm, int code)) {
  Rank *r;
  ENTER(r, "MPI_Abort");
  if (r != NULL) {
    char row[64];
    snprintf(row, sizeof row, "MPI_Abort with code %d", code);
    comment(r, row);
    finish(r, 3);
  }
  return REAL(Abort, (comm, code));
}

API int MPI_Pcontrol(const int level, ...) __attribute__((alias("PMPI_Pcontrol")));
API int PMPI_Pcontrol(const int level, ...) {
  Rank *const r = enter_after(1);  // even a short burst is written: computation in one section must not show up in the next
  if (r == NULL) return MPI_SUCCESS;
  char row[48];
  snprintf(row, sizeof row, "mark pcontrol %d", level);
  tell_burst(r);
  comment(r, row);
  if (r->profile != NULL) profile_section(r->profile, level, r->began);
  // The meaning of MPI_Pcontrol is left to the profiler, which is this library.
  return leave(r, MPI_SUCCESS);
}

#ifdef RECORD_SMPI
// The Fortran binding has no error argument (MPI-3.1, 14.2.1); SMPI 3.32 writes to one all the same, wherever that points.
API void mpi_pcontrol_(const int *level) { PMPI_Pcontrol(*level); }
#endif

// --- sleep is not computation -----------------------------------------------------------------------------------------------

static bool sleeping(Rank **r) {
  *r = self();
  if (*r == NULL || !(*r)->on || IN_CALL(*r) || !pthread_equal((*r)->owner, pthread_self())) return false;
  return (*r = enter()) != NULL;
}

static void slept(Rank *r, double seconds) {
  if (r->on && seconds > 0) {
    char number[40];
    snprintf(number, sizeof number, " %.9f", seconds);
    end_line(r, text(line(r, "sleep", 0), number));
  }
  leave(r, 0);
  r->state->calls--;  // not an MPI call
}

#define NEXT(type, name, params) \
  static type(*next) params;     \
  if (next == NULL) next = (type(*) params)next_function(name)
#ifdef RECORD_SMPI
#define SLEEPER(name) smpi_##name
#define SLEEPER_NAME(name) "smpi_" name
#else
#define SLEEPER(name) name
#define SLEEPER_NAME(name) name
#endif

API unsigned int SLEEPER(sleep)(unsigned int seconds) {
  NEXT(unsigned int, SLEEPER_NAME("sleep"), (unsigned int));
  Rank *r;
  const bool count = sleeping(&r);
  const unsigned int left = next(seconds);
  if (count) slept(r, (double)seconds - left);
  return left;
}

API int SLEEPER(usleep)(useconds_t us) {
  NEXT(int, SLEEPER_NAME("usleep"), (useconds_t));
  Rank *r;
  const bool count = sleeping(&r);
  const int rc = next(us);
  if (count) slept(r, us * 1e-6);
  return rc;
}

API int SLEEPER(nanosleep)(const struct timespec *t, struct timespec *rest) {
  NEXT(int, SLEEPER_NAME("nanosleep"), (const struct timespec *, struct timespec *));
  Rank *r;
  const bool count = sleeping(&r);
  const int rc = next(t, rest);
  if (count) slept(r, (double)t->tv_sec + (double)t->tv_nsec * 1e-9);
  return rc;
}

#ifdef RECORD_SMPI
// Reading the simulated clock may let other ranks run: that is not this rank's computation.
API int smpi_gettimeofday(struct timeval *tv, struct timezone *tz) {
  NEXT(int, "smpi_gettimeofday", (struct timeval *, struct timezone *));
  Rank *r = enter();
  const int rc = next(tv, tz);
  if (r != NULL) leave(r, 0);
  return rc;
}

API int smpi_clock_gettime(clockid_t clock, struct timespec *t) {
  NEXT(int, "smpi_clock_gettime", (clockid_t, struct timespec *));
  Rank *r = enter();
  const int rc = next(clock, t);
  if (r != NULL) leave(r, 0);
  return rc;
}

static double (*real_Wtime)(void);
API double PMPI_Wtime(void) {
  Rank *r = enter();
  if (real_Wtime == NULL) real_Wtime = (double (*)(void))next_function("PMPI_Wtime");
  const double t = real_Wtime();
  if (r != NULL) leave(r, 0);
  return t;
}
API double MPI_Wtime(void) __attribute__((alias("PMPI_Wtime")));
#else
API int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *rest) {
  NEXT(int, "clock_nanosleep", (clockid_t, int, const struct timespec *, struct timespec *));
  Rank *r;
  const bool count = sleeping(&r);
  struct timespec before = {0, 0};
  if (count && (flags & TIMER_ABSTIME) != 0) clock_gettime(clock, &before);
  const int rc = next(clock, flags, t, rest);
  if (count) slept(r, (double)(t->tv_sec - before.tv_sec) + (double)(t->tv_nsec - before.tv_nsec) * 1e-9);
  return rc;
}
#endif
