/* A rank's message to itself that is longer than the receive which is posted: Open MPI 4.1.4 does not say that it is truncated. */
#include <mpi.h>
#include <stdio.h>

int main(void) {
  char in[8], out[9] = "";
  int code, class = MPI_SUCCESS;
  MPI_Request receive, send;
  MPI_Init(NULL, NULL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Irecv(in, 8, MPI_BYTE, 0, 0, MPI_COMM_SELF, &receive);
  MPI_Isend(out, 9, MPI_BYTE, 0, 0, MPI_COMM_SELF, &send);
  code = MPI_Wait(&receive, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  printf("%d wrong\n", class != MPI_ERR_TRUNCATE);
  fflush(stdout);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
