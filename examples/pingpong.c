/* PingPong as Baker and Fox define it: two processes, MPI_Send and MPI_Recv, messages of 0 B and of powers of two up to
 * 4 MiB, sent there and back many times; half of the mean time of an exchange is the communication time. No warm-up.
 *
 *   mpicc  -O2 pingpong.c -o pingpong && mpirun -np 2 ./pingpong [--max BYTES] [--scale FACTOR]
 *   examples/capture.sh traces it with SimGrid's SMPI.
 *
 * --max BYTES     largest message (default 4194304)
 * --scale FACTOR  multiplies the repetitions, at least one of each size is made (default 1; 0.01 for a small trace)
 */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1024, TAG = 0 };

/* 1000 up to 64 KiB is the paper's; above, it says only "fewer". The same table as retrompi.traces.generate.default_reps. */
static int repetitions(long size, double scale)
{
  int reps = size <= 64L * KIB ? 1000 : size <= 512L * KIB ? 100 : 20;
  double scaled = floor(reps * scale + 0.5);
  return scaled < 1 ? 1 : (int)scaled;
}

static double number(const char* option, const char* text, double low, double high)
{
  char* end = NULL;
  errno = 0;
  double value = strtod(text, &end);
  if (errno != 0 || end == text || *end != '\0' || !(value >= low && value <= high)) {
    fprintf(stderr, "pingpong: %s must be a number from %g to %g, not '%s'\n", option, low, high, text);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return value;
}

int main(int argc, char** argv)
{
  int rank = 0;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  long max = 4096L * KIB;
  double scale = 1.0;
  for (int i = 1; i < argc; i += 2) {
    const int last = i + 1 == argc;
    if (!last && strcmp(argv[i], "--max") == 0) {
      max = (long)number("--max", argv[i + 1], 0, 1L << 30);
    } else if (!last && strcmp(argv[i], "--scale") == 0) {
      scale = number("--scale", argv[i + 1], 0, 1000);
    } else {
      fprintf(stderr, "pingpong: unexpected '%s'; usage: pingpong [--max BYTES] [--scale FACTOR]\n", argv[i]);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  if (ranks != 2) {
    fprintf(stderr, "pingpong: needs 2 processes, not %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  char* buffer = calloc((size_t)max + 1, 1); /* + 1: a buffer of 0 B may be NULL */
  if (buffer == NULL) {
    fprintf(stderr, "pingpong: no memory for a message of %ld B\n", max);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (rank == 0)
    printf("%10s %12s %14s %16s\n", "size_B", "repetitions", "time_us", "bandwidth_MBps");
  for (long size = 0; size <= max; size = size == 0 ? 1 : size * 2) {
    const int reps = repetitions(size, scale);
    const double start = MPI_Wtime();
    for (int i = 0; i < reps; i++) {
      if (rank == 0) {
        MPI_Send(buffer, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        MPI_Recv(buffer, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(buffer, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
      }
    }
    const double one_way = (MPI_Wtime() - start) / (2.0 * reps);
    if (rank == 0)
      printf("%10ld %12d %14.3f %16.3f\n", size, reps, one_way * 1e6, one_way > 0 ? (double)size / one_way / 1e6 : 0.0);
  }
  free(buffer);
  MPI_Finalize();
  return 0;
}
