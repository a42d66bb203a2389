/* Non-blocking collectives, completed in another order than they were begun. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size, a[64] = {0}, b[64], c[64], d[64], e[64];
  MPI_Request r[5];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Ibarrier(MPI_COMM_WORLD, &r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Ibcast(a, 16, MPI_INT, 0, MPI_COMM_WORLD, &r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Iallreduce(a, b, 16, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[0]);
  MPI_Igather(a, 4, MPI_INT, c, 4, MPI_INT, 0, MPI_COMM_WORLD, &r[1]);
  MPI_Iallgather(a, 4, MPI_INT, d, 4, MPI_INT, MPI_COMM_WORLD, &r[2]);
  MPI_Ialltoall(a, 4, MPI_INT, e, 4, MPI_INT, MPI_COMM_WORLD, &r[3]);
  MPI_Wait(&r[2], MPI_STATUS_IGNORE);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  MPI_Finalize();
  return 0;
}
