/* Every blocking collective on the world, with MPI_IN_PLACE where it is allowed, and uneven parts. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const MPI_Comm w = MPI_COMM_WORLD;
  int *counts = malloc(sizeof(int) * size), *at = malloc(sizeof(int) * size), *ones = malloc(sizeof(int) * size);
  MPI_Datatype *types = malloc(sizeof(MPI_Datatype) * size);
  int total = 0;
  for (int i = 0; i < size; i++) {
    counts[i] = i + 1;
    at[i] = total;
    ones[i] = 4;
    types[i] = MPI_INT;
    total += counts[i];
  }
  int *byte_at = calloc(size, sizeof(int));
  for (int i = 0; i < size; i++) byte_at[i] = 16 * i;
  int *a = calloc(64 * size + total, sizeof(int)), *b = calloc(64 * size + total, sizeof(int));
  MPI_Bcast(a, 10, MPI_INT, size - 1, w);
  MPI_Reduce(a, b, 10, MPI_INT, MPI_SUM, 0, w);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : a, a, 10, MPI_INT, MPI_SUM, 0, w);
  MPI_Allreduce(MPI_IN_PLACE, b, 5, MPI_INT, MPI_MAX, w);
  MPI_Gather(a, 3, MPI_INT, b, 3, MPI_INT, 1 % size, w);
  MPI_Gather(rank == 0 ? MPI_IN_PLACE : (void *)a, 3, MPI_INT, b, 3, MPI_INT, 0, w);
  MPI_Gatherv(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, 0, w);
  MPI_Scatter(a, 3, MPI_INT, b, 3, MPI_INT, 0, w);
  MPI_Scatterv(a, counts, at, MPI_INT, b, rank + 1, MPI_INT, size - 1, w);
  MPI_Allgather(a, 3, MPI_INT, b, 3, MPI_INT, w);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 3, MPI_INT, w);
  MPI_Allgatherv(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, w);
  MPI_Alltoall(a, 2, MPI_INT, b, 2, MPI_INT, w);
  MPI_Alltoallv(a, ones, at, MPI_INT, b, ones, at, MPI_INT, w);
  MPI_Alltoallw(a, ones, byte_at, types, b, ones, byte_at, types, w);
  MPI_Scan(a, b, 2, MPI_INT, MPI_SUM, w);
  MPI_Exscan(a, b, 2, MPI_INT, MPI_SUM, w);
  MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, w);
  MPI_Reduce_scatter_block(a, b, 4, MPI_INT, MPI_SUM, w);
  MPI_Barrier(w);
  MPI_Finalize();
  return 0;
}
