/* A persistent buffered send that is started again after a synchronous one: Open MPI 4.1.4 delivers something else than the data where they are
   more than an eager message. Two ranks; prints the bytes that are wrong. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 16384, MORE = 131073 };

int main(void) {
  static char data[BYTES], more[MORE], attached[1 << 20];
  int rank, size, wrong = 0;
  MPI_Request calls[2];
  MPI_Status statuses[2];
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) {
    MPI_Buffer_attach(attached, sizeof attached);
    MPI_Bsend_init(data, BYTES, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &calls[0]);
    MPI_Ssend_init(more, MORE, MPI_BYTE, 0, 10, MPI_COMM_WORLD, &calls[1]);
    memset(data, 1, BYTES);
    MPI_Startall(2, calls);
    MPI_Waitall(2, calls, statuses);
    memset(data, 2, BYTES);
    MPI_Start(&calls[0]);
    MPI_Wait(&calls[0], statuses);
    MPI_Buffer_detach(&(void*){0}, &size);
  } else {
    MPI_Recv_init(data, BYTES, MPI_BYTE, 1, 9, MPI_COMM_WORLD, &calls[0]);
    MPI_Recv_init(more, MORE, MPI_BYTE, 1, 10, MPI_COMM_WORLD, &calls[1]);
    MPI_Start(&calls[0]);
    MPI_Wait(&calls[0], statuses);
    MPI_Startall(2, calls);
    MPI_Waitall(2, calls, statuses);
    for (int i = 0; i < BYTES; ++i) wrong += data[i] != 2;
    printf("%d wrong\n", wrong);
  }
  MPI_Finalize();
  return 0;
}
