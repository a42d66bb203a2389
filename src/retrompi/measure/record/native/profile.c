// Implementation of profile.h. The file is read by retrompi/measure/launch/profile.py.
#include "profile.h"

#include <inttypes.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#ifdef RECORD_SMPI
#include <simgrid/engine.h>
#endif

typedef struct {
  const char *name;
  int64_t size, count, time;
  int section;
} Row;

typedef struct {
  int label, parts;
  int64_t begin, end;
} Section;

struct Profile {
  int rank, ranks;
  int64_t begin;
  struct rusage usage;
  int label;  // of the open section; -1: none
  Section *sections;
  size_t sections_known, sections_capacity;
  Row *rows;  // open addressing; name NULL: free slot
  size_t rows_known, rows_capacity;
};

int64_t profile_clock(void) {
#ifdef RECORD_SMPI
  return (int64_t)(simgrid_get_clock() * 1e12 + 0.5);
#else
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec) * 1000;
#endif
}

static void *grown(void *p, size_t bytes) {
  p = realloc(p, bytes);
  if (p == NULL) abort();
  return p;
}

Profile *profile_begin(int rank, int ranks) {
  if (getenv("RETROMPI_PROFILE_DIR") == NULL) return NULL;
  Profile *const p = calloc(1, sizeof *p);
  if (p == NULL) abort();
  p->rank = rank;
  p->ranks = ranks;
  p->label = -1;
  p->sections_capacity = 256;  // allocated up front, so that an early section does not wait for memory
  p->sections = grown(NULL, p->sections_capacity * sizeof *p->sections);
  memset(p->sections, 0, p->sections_capacity * sizeof *p->sections);
  getrusage(RUSAGE_SELF, &p->usage);
  p->begin = profile_clock();
  return p;
}

void profile_section(Profile *p, int level, int64_t now) {
  if (p->label >= 0) {
    Section *const open = &p->sections[p->sections_known - 1];
    open->end = now;
    open->parts = level < 0 ? -level : 1;
    p->label = -1;
  }
  if (level < 0) return;
  if (p->sections_known == p->sections_capacity) {
    p->sections_capacity *= 2;
    p->sections = grown(p->sections, p->sections_capacity * sizeof *p->sections);
  }
  Section *const s = &p->sections[p->sections_known++];
  s->label = p->label = level;
#ifdef RECORD_SMPI
  s->begin = now;
#else
  s->begin = profile_clock();  // the time spent in here does not belong to the section
#endif
}

static Row *slot(Row *rows, size_t capacity, const char *name, int64_t size, int section) {
  size_t at = ((uintptr_t)name >> 3) * 31 + (size_t)size * 0x9E3779B97F4A7C15u + (size_t)(section + 1) * 0xC2B2AE3D27D4EB4Fu;
  for (at ^= at >> 29;; at++) {
    Row *const row = &rows[at & (capacity - 1)];
    if (row->name == NULL || (row->name == name && row->size == size && row->section == section)) return row;
  }
}

void profile_call(Profile *p, const char *name, int64_t size, int64_t time) {
  if (2 * p->rows_known >= p->rows_capacity) {
    const size_t capacity = p->rows_capacity == 0 ? 1024 : 2 * p->rows_capacity;
    Row *const rows = calloc(capacity, sizeof *rows);
    if (rows == NULL) abort();
    for (size_t i = 0; i < p->rows_capacity; i++)
      if (p->rows[i].name != NULL) *slot(rows, capacity, p->rows[i].name, p->rows[i].size, p->rows[i].section) = p->rows[i];
    free(p->rows);
    p->rows = rows;
    p->rows_capacity = capacity;
  }
  Row *const row = slot(p->rows, p->rows_capacity, name, size, p->label);
  if (row->name == NULL) {
    *row = (Row){.name = name, .size = size, .section = p->label};
    p->rows_known++;
  }
  row->count++;
  row->time += time;
}

#ifndef RECORD_SMPI
static int64_t microseconds(struct timeval t) { return (int64_t)t.tv_sec * 1000000 + t.tv_usec; }
#endif

static void tell(const Profile *p, FILE *f, int64_t now, const char *how) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0;
  PMPI_Get_library_version(library, &length);
  library[strcspn(library, "\n")] = 0;
  fprintf(f, "retrompi profile 1\nrank %d %d\nhow %s\nlibrary %s\ntime %" PRId64 "\n", p->rank, p->ranks, how, library, now - p->begin);
#ifndef RECORD_SMPI
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  fprintf(f, "usage %" PRId64 " %" PRId64 " %ld %ld\n", microseconds(u.ru_utime) - microseconds(p->usage.ru_utime),
          microseconds(u.ru_stime) - microseconds(p->usage.ru_stime), u.ru_nvcsw - p->usage.ru_nvcsw, u.ru_nivcsw - p->usage.ru_nivcsw);
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
    fprintf(f, "cores");
    for (int i = 0; i < CPU_SETSIZE; i++)
      if (CPU_ISSET(i, &cores)) fprintf(f, " %d", i);
    fprintf(f, "\n");
  }
#endif
  for (size_t i = 0; i < p->sections_known; i++) {
    const Section *const s = &p->sections[i];
    const bool open = i + 1 == p->sections_known && p->label >= 0;
    fprintf(f, "section %d %d %" PRId64 "\n", s->label, open ? 1 : s->parts, (open ? now : s->end) - s->begin);
  }
  for (size_t i = 0; i < p->rows_capacity; i++) {
    const Row *const r = &p->rows[i];
    if (r->name != NULL) fprintf(f, "call %s %" PRId64 " %d %" PRId64 " %" PRId64 "\n", r->name, r->size, r->section, r->count, r->time);
  }
}

void profile_end(Profile *p, int64_t now, const char *how) {
  char path[4096];
  const char *const folder = getenv("RETROMPI_PROFILE_DIR");
  if (folder == NULL || snprintf(path, sizeof path, "%s/rank-%d.profile", folder, p->rank) >= (int)sizeof path) return;
  FILE *const f = fopen(path, "we");
  if (f == NULL) {
    perror(path);
    return;
  }
  tell(p, f, now, how);
  fclose(f);
}
