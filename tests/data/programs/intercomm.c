/* Two halves joined by an intercommunicator: messages across, then one communicator of both. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank, size, value = 0;
  MPI_Comm half, across, both;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int low = rank < size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 9, &across);
  int me, there;
  MPI_Comm_rank(across, &me);
  MPI_Comm_remote_size(across, &there);
  if (me < there) {
    if (low) MPI_Send(&value, 1, MPI_INT, me, 1, across);
    else MPI_Recv(&value, 1, MPI_INT, me, 1, across, MPI_STATUS_IGNORE);
  }
#ifdef COLLECTIVES /* SMPI has none between groups */
  MPI_Bcast(&value, 1, MPI_INT, low ? (me == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, across);
  int sum;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, across);
#endif
  MPI_Intercomm_merge(across, !low, &both);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, both);
  MPI_Comm_free(&both);
  MPI_Comm_free(&across);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
