/* A non-blocking broadcast between two groups of two whose root is the second of its group: MPICH 4.0.2 delivers nothing, or ends where the
   other group has no member of that number. (The blocking one is right, and the one whose root is the first.) Four ranks; prints the bytes
   that are wrong. */
#include <mpi.h>
#include <stdio.h>

int main(void) {
  static char data[100];
  int rank, wrong = 0;
  MPI_Comm mine, both;
  MPI_Request request;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &mine);
  MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 1, &both);
  for (int i = 0; i < 100; ++i) data[i] = rank == 1;
  MPI_Ibcast(data, 100, MPI_BYTE, rank >= 2 ? 1 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL, both, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < 100; ++i) wrong += data[i] != 1;
  if (rank == 3) printf("%d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
