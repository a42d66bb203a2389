/* A master that takes from anybody, in an order that is the same everywhere: each worker sends when it is told to. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size, value = 1, flag = 0;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    for (int w = 1; w < size; w++) {
      MPI_Send(&value, 1, MPI_INT, w, 1, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_INT, w, 2, MPI_COMM_WORLD);
      MPI_Probe(MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &status);
      MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Request r[2];
      MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, &r[0]);
      MPI_Irecv(&flag, 1, MPI_INT, w, MPI_ANY_TAG, MPI_COMM_WORLD, &r[1]);
      MPI_Send(&value, 1, MPI_INT, w, 3, MPI_COMM_WORLD);
      if (w % 2)
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
      else {
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        MPI_Wait(&r[1], &status);
      }
    }
  } else {
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &status);
    MPI_Send(&value, 1, MPI_INT, 0, 10 + rank, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &status);
    MPI_Send(&value, 1, MPI_INT, 0, 12, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &status);
    MPI_Send(&value, 1, MPI_INT, 0, 13, MPI_COMM_WORLD);
    MPI_Send(&value, 1, MPI_INT, 0, 14 + rank, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
