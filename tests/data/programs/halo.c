/* Neighbours on a periodic line exchange borders: isend, irecv, waitall, waitany, waitsome, test. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size;
  double border[2][64], ghost[2][64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int side[2] = {(rank + size - 1) % size, (rank + 1) % size};
  for (int i = 0; i < 128; i++) border[i / 64][i % 64] = rank;
  for (int step = 0; step < 5; step++) {
    MPI_Request r[4];
    for (int s = 0; s < 2; s++) MPI_Irecv(ghost[s], 64, MPI_DOUBLE, side[s], 1 - s, MPI_COMM_WORLD, &r[s]);
    for (int s = 0; s < 2; s++) MPI_Isend(border[s], 64, MPI_DOUBLE, side[s], s, MPI_COMM_WORLD, &r[2 + s]);
    volatile double x = 0;
    for (int i = 0; i < 200000; i++) x += i * 0.5;
    if (step < 2) MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    if (step == 2)
      for (int i = 0; i < 4; i++) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
    if (step == 3) {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Waitall(2, r + 2, MPI_STATUSES_IGNORE);
      MPI_Wait(&r[1], MPI_STATUS_IGNORE);
      int index;
      MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    }
    if (step == 4) {
      MPI_Wait(&r[3], MPI_STATUS_IGNORE);
      MPI_Wait(&r[2], MPI_STATUS_IGNORE);
      MPI_Wait(&r[1], MPI_STATUS_IGNORE);
      int n, indices[2];
      MPI_Waitsome(2, r, &n, indices, MPI_STATUSES_IGNORE);
    }
  }
  MPI_Finalize();
  return 0;
}
