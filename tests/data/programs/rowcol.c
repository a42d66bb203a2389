/* Communicators: rows and columns, duplicates, a group, one rank left out, freed ones; work within each. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size, value = 0;
  double x[8] = {0}, y[64];
  MPI_Comm row, column, copy, part, alone;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &column); /* in reverse order */
  MPI_Bcast(x, 8, MPI_DOUBLE, 0, row);
  MPI_Allreduce(x, y, 8, MPI_DOUBLE, MPI_SUM, column);
  int me, n;
  MPI_Comm_rank(row, &me);
  MPI_Comm_size(row, &n);
  if (n > 1) {
    if (me == 0) MPI_Send(x, 3, MPI_DOUBLE, 1, 5, row);
    if (me == 1) MPI_Recv(x, 3, MPI_DOUBLE, MPI_ANY_SOURCE, 5, row, MPI_STATUS_IGNORE);
  }
  MPI_Comm_dup(row, &copy);
  MPI_Gather(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, 0, copy);
  MPI_Comm_free(&copy);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &part);
  if (part != MPI_COMM_NULL) {
    MPI_Barrier(part);
    MPI_Comm_free(&part);
  }
  MPI_Group world, first;
  int members[2] = {0, size - 1};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, size > 1 ? 2 : 1, members, &first);
  MPI_Comm_create(MPI_COMM_WORLD, first, &part);
  if (part != MPI_COMM_NULL) {
    MPI_Bcast(&value, 1, MPI_INT, 0, part);
    MPI_Comm_free(&part);
  }
  MPI_Comm_split(row, 0, rank, &alone);
  MPI_Reduce(x, y, 4, MPI_DOUBLE, MPI_MAX, 0, alone);
  MPI_Comm_free(&alone);
  MPI_Allgather(&value, 1, MPI_INT, y, 1, MPI_INT, MPI_COMM_SELF);
  MPI_Group_free(&first);
  MPI_Group_free(&world);
  MPI_Comm_free(&row);
  MPI_Comm_free(&column);
  MPI_Finalize();
  return 0;
}
