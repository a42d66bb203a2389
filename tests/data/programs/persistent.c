/* Persistent requests: made once, started often, freed. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size;
  double out[100] = {0}, in[100];
  MPI_Request r[2], lone;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Recv_init(in, 100, MPI_DOUBLE, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &r[0]);
  MPI_Send_init(out, 100, MPI_DOUBLE, (rank + 1) % size, 3, MPI_COMM_WORLD, &r[1]);
  for (int i = 0; i < 4; i++) {
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  }
  MPI_Start(&r[1]);
  MPI_Start(&r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
  MPI_Ssend_init(out, 1, MPI_DOUBLE, (rank + 1) % size, 4, MPI_COMM_WORLD, &lone);
  MPI_Irecv(in, 1, MPI_DOUBLE, (rank + size - 1) % size, 4, MPI_COMM_WORLD, &r[0]);
  MPI_Start(&lone);
  MPI_Wait(&lone, MPI_STATUS_IGNORE);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&lone);
  MPI_Finalize();
  return 0;
}
