/* PingPong as Baker and Fox define it: two processes, MPI_Send and MPI_Recv, messages of 0 B and of powers of two up to
 * 4 MiB, sent there and back many times; half of the mean time of an exchange is the communication time. No warm-up.
 *
 *   mpicc -O2 pingpong.c -lm -o pingpong && mpirun -np 2 ./pingpong [--max BYTES] [--scale FACTOR] ...
 *   examples/capture.sh traces it with SimGrid's SMPI.
 *
 * --max BYTES      largest message (default 4194304)
 * --sizes A,B,...  these messages instead, in bytes
 * --scale FACTOR   multiplies the repetitions, at least one of each size is made (default 1; 0.01 for a small trace)
 * --warm-up N      exchanges of each size before the timed ones (default 0)
 *
 * Section N of MPI_Pcontrol are the timed exchanges of N bytes; its parts are single messages.
 */
#include "example.h"

enum { TAG = 0 };

/* 1000 up to 64 KiB is the paper's; above, it says only "fewer". The same table as retrompi.traces.generate.default_reps. */
static int repetitions(long size, double scale) { return scaled(size <= 64L * KIB ? 1000 : size <= 512L * KIB ? 100 : 20, scale); }

static void exchange(unsigned char* buffer, long size, int reps, int rank) {
  for (int i = 0; i < reps; i++) {
    if (rank == 0) {
      MPI_Send(buffer, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
      MPI_Recv(buffer, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double max = 4096.0 * KIB;
  double scale = 1;
  double warm_up = 0;
  const char* list = NULL;
  const Option options[] = {
      {"max", &max, 0, 1L << 30, NULL, "largest message, bytes"},
      {"sizes", NULL, 0, 0, &list, "message sizes in bytes, separated by commas"},
      {"scale", &scale, 0, 1000, NULL, "multiplies the repetitions"},
      {"warm-up", &warm_up, 0, 1e6, NULL, "exchanges of each size before the timed ones"},
  };
  read_options(argc, argv, options, 4, "pingpong: the time of a message between two processes");
  const int rank = world_rank();
  if (world_size() != 2) refuse("pingpong: needs 2 processes, not %d", world_size());

  const Sizes sizes = message_sizes(list, (long)max, 1);
  unsigned char* buffer = memory((size_t)largest(&sizes), 1);
  long wrong = 0;
  table_head();
  for (int s = 0; s < sizes.count; s++) {
    const long size = sizes.size[s];
    const int reps = repetitions(size, scale);
    if (rank == 0)
      fill(buffer, size, 0);
    else
      clear(buffer, size);
    exchange(buffer, size, (int)warm_up, rank);
    MPI_Pcontrol((int)size);
    const double start = MPI_Wtime();
    exchange(buffer, size, reps, rank);
    const double took = MPI_Wtime() - start;
    MPI_Pcontrol(-2 * reps);
    table_row(size, reps, took / (2.0 * reps), (double)size);
    wrong += differences(buffer, size, 0);
  }
  free(buffer);
  return finish("messages", wrong);
}
