/* Half to half, the second benchmark of Hudson and Wang: every process of the lower half sends to its partner in the upper half, all
 * pairs at once. What is counted are the bytes of all pairs together, so that a network that pairs do not share shows ranks / 2 times the
 * rate of one pair.
 *
 *   mpicc -O2 half_to_half.c -lm -o half_to_half && mpirun -np 4 ./half_to_half [--both] [--max BYTES] ...
 *
 * --both           partners exchange messages (MPI_Sendrecv), and the bytes of both directions count
 * --max BYTES      largest message (default 1048576)
 * --sizes A,B,...  these messages instead, in bytes
 * --scale FACTOR   multiplies the repetitions, at least one of each size is made (default 1)
 *
 * Needs an even number of processes. Section N of MPI_Pcontrol are the timed messages of N bytes; its parts are single ones.
 */
#include "example.h"

enum { TAG = 0 };

static int repetitions(long size, double scale) { return scaled(size < 16L * KIB ? 100 : size <= 128L * KIB ? 10 : 5, scale); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double max = 1024.0 * KIB;
  double scale = 1;
  double both = 0;
  const char* list = NULL;
  const Option options[] = {
      {"both", &both, 0, 0, NULL, "partners exchange messages"},
      {"max", &max, 0, 1L << 30, NULL, "largest message, bytes"},
      {"sizes", NULL, 0, 0, &list, "message sizes in bytes, separated by commas"},
      {"scale", &scale, 0, 1000, NULL, "multiplies the repetitions"},
  };
  read_options(argc, argv, options, 4, "half_to_half: all processes of the lower half send to the upper half at once");
  const int rank = world_rank();
  const int ranks = world_size();
  if (ranks % 2 != 0) refuse("half_to_half: needs an even number of processes, not %d", ranks);

  const int half = ranks / 2;
  const int lower = rank < half;
  const int partner = lower ? rank + half : rank - half;
  const Sizes sizes = message_sizes(list, (long)max, 1);
  unsigned char* out = memory((size_t)largest(&sizes), 1);
  unsigned char* in = memory((size_t)largest(&sizes), 1);
  long wrong = 0;
  table_head();
  for (int s = 0; s < sizes.count; s++) {
    const long size = sizes.size[s];
    const int reps = repetitions(size, scale);
    fill(out, size, rank);
    clear(in, size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol((int)size);
    const double start = MPI_Wtime();
    for (int i = 0; i < reps; i++) {
      if (both != 0)
        MPI_Sendrecv(out, (int)size, MPI_BYTE, partner, TAG, in, (int)size, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else if (lower)
        MPI_Send(out, (int)size, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
      else
        MPI_Recv(in, (int)size, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const double took = MPI_Wtime() - start;
    MPI_Pcontrol(-reps);
    /* A sender may be through long before its last message has arrived: the receivers' times are the longer ones. */
    table_row(size, reps, slowest(took) / reps, (double)size * (both != 0 ? ranks : half));
    if (both != 0 || !lower) wrong += differences(in, size, partner);
  }
  free(in);
  free(out);
  return finish("messages", wrong);
}
