/* Parallel sorting by regular sampling (Shi and Schaeffer 1992): every process sorts its keys and picks a few of them at regular distances;
 * from these come the values that split all keys into as many parts as there are processes; part k of every process goes to process k
 * (MPI_Alltoallv), which merges what it gets.
 *
 *   mpicc -O2 sort.c -lm -o sort && mpirun -np 4 ./sort [--keys N] [--seed N] [--reps N]
 *
 * --keys N  keys of each process (default 50000)
 * --seed N  another seed gives other keys (default 1)
 * --reps N  repetitions, each with other keys (default 3)
 *
 * Checked: the keys of each process are in order and not below those of the process before it, none has more than twice its share, and
 * their number, sum and xor are those of the keys before.
 *
 * Sections of MPI_Pcontrol, once a repetition: 1 the keys are sorted where they are, 2 the parts are agreed on, 3 the keys are exchanged,
 * 4 the parts are merged.
 */
#include "example.h"

enum { SORT = 1, AGREE, EXCHANGE, MERGE, PHASES = MERGE };

typedef struct {
  uint64_t count, sum, xor;
} Digest;

static int by_value(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a;
  const uint64_t y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

static Digest digest_of(const uint64_t* keys, int count) {
  Digest d = {(uint64_t)count, 0, 0};
  for (int i = 0; i < count; i++) {
    d.sum += keys[i];
    d.xor ^= keys[i];
  }
  Digest all = {0, 0, 0};
  MPI_Allreduce(&d, &all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&d.xor, &all.xor, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
  return all;
}

/* The ranks - 1 values between the parts: regular samples of the sorted samples of all processes. */
static void agree(const uint64_t* keys, int count, uint64_t* splitters, uint64_t* samples) {
  const int ranks = world_size();
  uint64_t* mine = samples + (size_t)ranks * (size_t)ranks;
  for (int k = 0; k < ranks; k++) mine[k] = keys[(long)count * k / ranks];
  MPI_Gather(mine, ranks, MPI_UINT64_T, samples, ranks, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (world_rank() == 0) {
    qsort(samples, (size_t)ranks * (size_t)ranks, sizeof *samples, by_value);
    for (int k = 1; k < ranks; k++) splitters[k - 1] = samples[k * ranks + ranks / 2];
  }
  MPI_Bcast(splitters, ranks - 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
}

/* How many of the sorted keys go to each process, and where they begin. */
static void parts_of(const uint64_t* keys, int count, const uint64_t* splitters, int* counts, int* begins) {
  const int ranks = world_size();
  int at = 0;
  for (int k = 0; k < ranks; k++) {
    begins[k] = at;
    if (k == ranks - 1)
      at = count;
    else
      while (at < count && keys[at] <= splitters[k]) at++;
    counts[k] = at - begins[k];
  }
}

/* Merges the sorted parts `from` to `to` of `keys` in place; `spare` is as large as `keys`. */
static void merge(uint64_t* keys, uint64_t* spare, const int* begins, int total, int from, int to) {
  if (to - from < 2) return;
  const int ranks = world_size();
  const int middle = (from + to) / 2;
  merge(keys, spare, begins, total, from, middle);
  merge(keys, spare, begins, total, middle, to);
  int a = begins[from];
  int b = begins[middle];
  const int a_end = b;
  const int b_end = to == ranks ? total : begins[to];
  int at = a;
  while (a < a_end || b < b_end) spare[at++] = b == b_end || (a < a_end && keys[a] <= keys[b]) ? keys[a++] : keys[b++];
  memcpy(keys + begins[from], spare + begins[from], sizeof *keys * (size_t)(b_end - begins[from]));
}

/* Places where this process's keys are out of order, with the largest key of all processes before. */
static long disorder(const uint64_t* keys, int count) {
  long wrong = 0;
  for (int i = 1; i < count; i++) wrong += keys[i - 1] > keys[i];
  const uint64_t last = count > 0 ? keys[count - 1] : 0;
  uint64_t before = 0;
  MPI_Exscan(&last, &before, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  if (world_rank() > 0 && count > 0) wrong += keys[0] < before;
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double keys_each = 50000;
  double seed = 1;
  double reps = 3;
  const int ranks = world_size();
  const Option options[] = {
      {"keys", &keys_each, 1, 1e8, NULL, "keys of each process"},
      {"seed", &seed, 0, 1e9, NULL, "another seed gives other keys"},
      {"reps", &reps, 1, 1e6, NULL, "repetitions, each with other keys"},
  };
  read_options(argc, argv, options, 3, "sort: parallel sorting by regular sampling");
  const int count = (int)keys_each;
  if (count < ranks * ranks) refuse("sort: needs at least %d keys a process to sample %d processes, not %d", ranks * ranks, ranks, count);

  uint64_t* keys = memory((size_t)count, sizeof *keys);
  uint64_t* splitters = memory((size_t)ranks, sizeof *splitters);
  uint64_t* samples = memory((size_t)ranks * (size_t)(ranks + 1), sizeof *samples);
  int* lists[4];
  for (int i = 0; i < 4; i++) lists[i] = memory((size_t)ranks, sizeof(int));
  int *to_count = lists[0], *to_begin = lists[1], *from_count = lists[2], *from_begin = lists[3];

  if (world_rank() == 0) printf("%10s %14s %14s %14s %14s %14s\n", "keys", "sort_us", "agree_us", "exchange_us", "merge_us", "time_us");
  long wrong = 0;
  for (int rep = 0; rep < (int)reps; rep++) {
    for (int i = 0; i < count; i++) keys[i] = mixed((uint64_t)seed + (uint64_t)rep, (uint64_t)world_rank() * (uint64_t)count + (uint64_t)i);
    const Digest before = digest_of(keys, count);
    double moment[PHASES + 1];
    MPI_Barrier(MPI_COMM_WORLD);
    moment[0] = MPI_Wtime();

    MPI_Pcontrol(SORT);
    qsort(keys, (size_t)count, sizeof *keys, by_value);
    MPI_Pcontrol(-1);
    moment[SORT] = MPI_Wtime();

    MPI_Pcontrol(AGREE);
    agree(keys, count, splitters, samples);
    parts_of(keys, count, splitters, to_count, to_begin);
    MPI_Alltoall(to_count, 1, MPI_INT, from_count, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Pcontrol(-1);
    moment[AGREE] = MPI_Wtime();

    int total = 0;
    for (int k = 0; k < ranks; k++) {
      from_begin[k] = total;
      total += from_count[k];
    }
    uint64_t* sorted = memory((size_t)total, sizeof *sorted);
    uint64_t* spare = memory((size_t)total, sizeof *spare);
    MPI_Pcontrol(EXCHANGE);
    MPI_Alltoallv(keys, to_count, to_begin, MPI_UINT64_T, sorted, from_count, from_begin, MPI_UINT64_T, MPI_COMM_WORLD);
    MPI_Pcontrol(-1);
    moment[EXCHANGE] = MPI_Wtime();

    MPI_Pcontrol(MERGE);
    merge(sorted, spare, from_begin, total, 0, ranks);
    MPI_Pcontrol(-1);
    moment[MERGE] = MPI_Wtime();

    double took[PHASES + 1];
    double most[PHASES + 1];
    for (int k = 1; k <= PHASES; k++) took[k - 1] = moment[k] - moment[k - 1];
    took[PHASES] = moment[MERGE] - moment[0];
    MPI_Reduce(took, most, PHASES + 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (world_rank() == 0) {
      printf("%10ld", (long)count * ranks);
      for (int k = 0; k <= PHASES; k++) printf(" %14.3f", most[k] * 1e6);
      printf("\n");
    }
    const Digest after = digest_of(sorted, total);
    wrong += disorder(sorted, total) + (total > 2 * count);
    wrong += before.count != after.count || before.sum != after.sum || before.xor != after.xor ;
    free(spare);
    free(sorted);
  }
  for (int i = 0; i < 4; i++) free(lists[i]);
  free(samples);
  free(splitters);
  free(keys);
  return finish("keys", wrong);
}
