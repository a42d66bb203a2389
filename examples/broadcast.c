/* Broadcast, the third benchmark of Hudson and Wang: one process sends the same message to all, again and again. What is counted are the
 * bytes of a message times the processes in the broadcast.
 *
 *   mpicc -O2 broadcast.c -lm -o broadcast && mpirun -np 4 ./broadcast [--root RANK] [--max BYTES] ...
 *
 * --root RANK      who sends (default 0)
 * --max BYTES      largest message (default 1048576)
 * --sizes A,B,...  these messages instead, in bytes
 * --scale FACTOR   multiplies the repetitions, at least one of each size is made (default 1)
 *
 * Broadcasts follow each other without a barrier, so that one may begin at the root before the last has reached everybody: the time of a
 * row is a broadcast's share, not its latency. Section N of MPI_Pcontrol are the timed broadcasts of N bytes; its parts are single ones.
 */
#include "example.h"

static int repetitions(long size, double scale) { return scaled(size < 16L * KIB ? 100 : size <= 128L * KIB ? 10 : 5, scale); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double max = 1024.0 * KIB;
  double scale = 1;
  double root = 0;
  const char* list = NULL;
  const Option options[] = {
      {"root", &root, 0, world_size() - 1, NULL, "who sends"},
      {"max", &max, 0, 1L << 30, NULL, "largest message, bytes"},
      {"sizes", NULL, 0, 0, &list, "message sizes in bytes, separated by commas"},
      {"scale", &scale, 0, 1000, NULL, "multiplies the repetitions"},
  };
  read_options(argc, argv, options, 4, "broadcast: one process sends the same message to all");
  const int from = (int)root;
  const int rank = world_rank();

  const Sizes sizes = message_sizes(list, (long)max, 1);
  unsigned char* buffer = memory((size_t)largest(&sizes), 1);
  long wrong = 0;
  table_head();
  for (int s = 0; s < sizes.count; s++) {
    const long size = sizes.size[s];
    const int reps = repetitions(size, scale);
    if (rank == from)
      fill(buffer, size, from);
    else
      clear(buffer, size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol((int)size);
    const double start = MPI_Wtime();
    for (int i = 0; i < reps; i++) MPI_Bcast(buffer, (int)size, MPI_BYTE, from, MPI_COMM_WORLD);
    const double took = MPI_Wtime() - start;
    MPI_Pcontrol(-reps);
    table_row(size, reps, slowest(took) / reps, (double)size * world_size());
    wrong += differences(buffer, size, from);
  }
  free(buffer);
  return finish("messages", wrong);
}
