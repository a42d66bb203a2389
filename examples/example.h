/* What the example programs share: reading options, lists of message sizes, and telling whether the result is right.
 *
 * An option is wrong on every rank alike, so that no rank needs to be told: rank 0 says so in one line and all of them end with
 * exit code 2. A wrong result ends all ranks with exit code 1.
 */
#ifndef RETROMPI_EXAMPLE_H
#define RETROMPI_EXAMPLE_H

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1024, SIZES = 64 };

/* `--NAME VALUE` with a number, or, when `text` is there, with words; when `high` is 0, a switch without a value. */
typedef struct {
  const char* name;
  double* number;
  double low, high;
  const char** text;
  const char* help;
} Option;

typedef struct {
  int count;
  long size[SIZES];
} Sizes;

static inline int world_rank(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

static inline int world_size(void) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

/* One line from rank 0, and the end of every rank: call it on all of them. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void refuse(const char* format, ...) {
  if (world_rank() == 0) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
  }
  MPI_Finalize();
  exit(2);
}

static inline double number_of(const char* option, const char* text, double low, double high) {
  char* end = NULL;
  errno = 0;
  const double value = strtod(text, &end);
  if (errno != 0 || end == text || *end != '\0' || !(value >= low && value <= high))
    refuse("--%s must be a number from %.10g to %.10g, not '%s'", option, low, high, text);
  return value;
}

static inline void usage(const Option* options, int count, const char* purpose) {
  if (world_rank() == 0) {
    printf("%s\n", purpose);
    for (int i = 0; i < count; i++) {
      printf("  --%-12s %s", options[i].name, options[i].help);
      if (options[i].number != NULL && options[i].high > 0) printf(" (%.10g)", *options[i].number);
      printf("\n");
    }
  }
  MPI_Finalize();
  exit(0);
}

/* Fills in what the command line says; what it does not mention keeps its value. */
static inline void read_options(int argc, char** argv, const Option* options, int count, const char* purpose) {
  for (int at = 1; at < argc; at++) {
    const char* word = argv[at];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) usage(options, count, purpose);
    int found = -1;
    for (int i = 0; i < count; i++)
      if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, options[i].name) == 0) found = i;
    if (found < 0) {
      char known[512] = "";
      for (int i = 0; i < count; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, " --%s", options[i].name);
      }
      refuse("no option '%s'; there are:%s --help", word, known);
    }
    const Option* option = &options[found];
    if (option->text == NULL && option->high == 0) {
      *option->number = 1;
      continue;
    }
    if (++at == argc) refuse("--%s needs a value: %s", option->name, option->help);
    if (option->text != NULL)
      *option->text = argv[at];
    else
      *option->number = number_of(option->name, argv[at], option->low, option->high);
  }
}

/* The sizes of a list like "0,1000,65536", or 0 B (with `zero`) and the powers of two up to `max` when there is none. */
static inline Sizes message_sizes(const char* list, long max, int zero) {
  Sizes sizes = {0, {0}};
  if (list == NULL) {
    if (zero) sizes.size[sizes.count++] = 0;
    for (long size = 1; size <= max; size *= 2) sizes.size[sizes.count++] = size;
    return sizes;
  }
  while (*list != '\0') {
    char* end = NULL;
    errno = 0;
    const long size = strtol(list, &end, 10);
    if (errno != 0 || end == list || size < 0 || size > 1L << 30 || (*end != '\0' && *end != ','))
      refuse("--sizes takes bytes from 0 to %ld, separated by commas, not '%s'", 1L << 30, list);
    if (sizes.count == SIZES) refuse("--sizes takes at most %d sizes", SIZES);
    sizes.size[sizes.count++] = size;
    list = *end == ',' ? end + 1 : end;
  }
  if (sizes.count == 0) refuse("--sizes needs at least one size");
  return sizes;
}

static inline long largest(const Sizes* sizes) {
  long most = 0;
  for (int i = 0; i < sizes->count; i++)
    if (sizes->size[i] > most) most = sizes->size[i];
  return most;
}

/* Ends all ranks when one of them cannot have the memory it asks for; never returns NULL. */
static inline void* memory(size_t count, size_t each) {
  void* block = calloc(count + 1, each); /* + 1: calloc(0) may be NULL */
  int missing = block == NULL;
  MPI_Allreduce(MPI_IN_PLACE, &missing, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (missing != 0) refuse("no memory for %zu x %zu B on %d of %d ranks", count, each, missing, world_size());
  return block;
}

/* Repetitions of a benchmark at a size: fewer of the long ones, times `scale`, at least one. */
static inline int scaled(int reps, double scale) {
  const double times = floor(reps * scale + 0.5);
  return times < 1 ? 1 : (int)times;
}

/* A byte of the message of `size` bytes that rank `from` sends, so that a wrong message or a wrong place shows. */
static inline unsigned char pattern(long i, long size, int from) { return (unsigned char)(i * 7 + i / 251 + size + 31L * from); }

static inline void fill(unsigned char* buffer, long size, int from) {
  for (long i = 0; i < size; i++) buffer[i] = pattern(i, size, from);
}

static inline void clear(unsigned char* buffer, long size) {
  if (size > 0) memset(buffer, 0, (size_t)size);
}

static inline long differences(const unsigned char* buffer, long size, int from) {
  long wrong = 0;
  for (long i = 0; i < size; i++) wrong += buffer[i] != pattern(i, size, from);
  return wrong;
}

/* A number from 0 to 2^64 - 1 for every index, the same on every machine (splitmix64). */
static inline uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* The longest of the ranks' times, on rank 0. */
static inline double slowest(double mine) {
  double most = 0;
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return most;
}

static inline void table_head(void) {
  if (world_rank() == 0) printf("%10s %12s %14s %16s\n", "size_B", "repetitions", "time_us", "bandwidth_MBps");
}

/* A row: seconds of one repetition, and the bytes that the rate counts. */
static inline void table_row(long size, int reps, double seconds, double bytes) {
  if (world_rank() == 0) printf("%10ld %12d %14.3f %16.3f\n", size, reps, seconds * 1e6, seconds > 0 ? bytes / seconds / 1e6 : 0.0);
}

/* Ends MPI; what main returns: 0, or 1 when `wrong` is not 0 on some rank. */
static inline int finish(const char* what, long wrong) {
  long all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank() == 0) {
    if (all == 0)
      printf("# %s: correct\n", what);
    else
      printf("# %s: WRONG in %ld places\n", what, all);
  }
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

#endif
