/* A periodic Cartesian line, its sub-communicator, and collectives between neighbours. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size, one[1], two[2] = {0, 0}, period[2] = {1, 0}, keep[2] = {1, 0};
  MPI_Comm line, grid, part;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  one[0] = size;
  MPI_Cart_create(MPI_COMM_WORLD, 1, one, period, 0, &line);
  int left, right, value = 0, from;
  MPI_Cart_shift(line, 0, 1, &left, &right);
  MPI_Sendrecv(&value, 1, MPI_INT, right, 2, &from, 1, MPI_INT, left, 2, line, MPI_STATUS_IGNORE);
  MPI_Dims_create(size, 2, two);
  MPI_Cart_create(MPI_COMM_WORLD, 2, two, period, 0, &grid);
  MPI_Cart_sub(grid, keep, &part);
  MPI_Bcast(&value, 1, MPI_INT, 0, part);
  int out[4] = {0}, in[4];
  (void)out, (void)in;
#ifdef NEIGHBOURS /* SMPI has none */
  MPI_Neighbor_allgather(&value, 1, MPI_INT, in, 1, MPI_INT, grid);
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, line);
  MPI_Comm ring;
  const int source[1] = {(rank + size - 1) % size}, target[1] = {(rank + 1) % size};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, source, MPI_UNWEIGHTED, 1, target, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  const int counts[1] = {2}, at[1] = {0};
  MPI_Request r;
  MPI_Ineighbor_alltoallv(out, counts, at, MPI_INT, in, counts, at, MPI_INT, ring, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Comm_free(&ring);
#endif
  MPI_Comm_free(&part);
  MPI_Comm_free(&grid);
  MPI_Comm_free(&line);
  MPI_Finalize();
  return 0;
}
