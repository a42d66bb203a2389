// PingPong of a few sizes with sections, and ways of not ending well: what tests/test_run.py runs.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  static char buffer[100000];
  const int sizes[] = {0, 8, 1000, 100000}, repetitions = 20;
  const char *const how = argc > 1 ? argv[1] : "well";
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (strcmp(how, "hang") == 0) MPI_Recv(buffer, 1, MPI_CHAR, (rank + 1) % ranks, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (strcmp(how, "kill") == 0 && rank == ranks - 1) raise(SIGKILL);
  if (strcmp(how, "abort") == 0 && rank == 0) MPI_Abort(MPI_COMM_WORLD, 5);
  if (strcmp(how, "cross") == 0) {  // both send first: it depends on the library whether that works
    MPI_Send(buffer, 8000, MPI_CHAR, 1 - rank, 8, MPI_COMM_WORLD);
    MPI_Recv(buffer, 8000, MPI_CHAR, 1 - rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 4 && ranks > 1; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(sizes[i]);
    for (int k = 0; k < repetitions && rank < 2; k++) {
      if (rank == 0) MPI_Send(buffer, sizes[i], MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, sizes[i], MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(buffer, sizes[i], MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Pcontrol(-2 * repetitions);
  }
  double one = rank, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %g\n", sum);
  MPI_Finalize();
  return strcmp(how, "fail") == 0 ? 7 : 0;
}
