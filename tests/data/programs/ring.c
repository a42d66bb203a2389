/* A token round a ring, sent in each mode, and exchanges. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank, size, token = 0;
  double out[16] = {0}, in[16];
  static char room[65536];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Buffer_attach(room, sizeof room);
  for (int mode = 0; mode < 3; mode++) {
    if (rank == 0) MPI_Send(&token, 1, MPI_INT, right, mode, MPI_COMM_WORLD);
    MPI_Recv(&token, 1, MPI_INT, left, mode, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) {
      if (mode == 0) MPI_Send(&token, 1, MPI_INT, right, mode, MPI_COMM_WORLD);
      if (mode == 1) MPI_Ssend(&token, 1, MPI_INT, right, mode, MPI_COMM_WORLD);
      if (mode == 2) MPI_Bsend(&token, 1, MPI_INT, right, mode, MPI_COMM_WORLD);
    }
  }
  MPI_Sendrecv(out, 16, MPI_DOUBLE, right, 7, in, 16, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(out, 8, MPI_DOUBLE, left, 0, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* the ends of a line have no neighbour */
  MPI_Sendrecv(out, 4, MPI_DOUBLE, rank + 1 < size ? rank + 1 : MPI_PROC_NULL, 1, in, 4, MPI_DOUBLE, rank > 0 ? rank - 1 : MPI_PROC_NULL, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  void *back;
  int length;
  MPI_Buffer_detach(&back, &length);
  MPI_Finalize();
  return 0;
}
