/* Windows: fences, locks, put, get, accumulate. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size;
  double memory[32] = {0}, local[8] = {0};
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_create(memory, sizeof memory, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(local, 8, MPI_DOUBLE, (rank + 1) % size, 0, 8, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  MPI_Get(local, 4, MPI_DOUBLE, (rank + 1) % size, 8, 4, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  MPI_Accumulate(local, 2, MPI_DOUBLE, 0, 16, 2, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  MPI_Put(local, 1, MPI_DOUBLE, 0, 24, 1, MPI_DOUBLE, win);
  MPI_Win_unlock(0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
