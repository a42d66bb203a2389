/* One collective on the whole world, on the rows and columns of a grid and on two halves, one after the other.
 *
 *   groups OPERATION BYTES COLUMNS
 *
 * Every rank prints for each of the four when it began and when it was through:  rank section begin end
 * It waits before each until a moment that all know, so that the ranks begin together as far as microseconds go. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *out, *in;

static void call(const char *what, int bytes, int root, MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  if (strcmp(what, "bcast") == 0)
    MPI_Bcast(out, bytes, MPI_BYTE, root, comm);
  else if (strcmp(what, "reduce") == 0)
    MPI_Reduce(out, in, bytes, MPI_BYTE, MPI_BOR, root, comm);
  else if (strcmp(what, "allreduce") == 0)
    MPI_Allreduce(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
  else if (strcmp(what, "gather") == 0)
    MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, root, comm);
  else if (strcmp(what, "scatter") == 0)
    MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, root, comm);
  else if (strcmp(what, "allgather") == 0)
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
  else if (strcmp(what, "alltoall") == 0)
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
  else if (strcmp(what, "barrier") == 0)
    MPI_Barrier(comm);
  else
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  int rank, size, i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int bytes = atoi(argv[2]), columns = atoi(argv[3]);
  out = calloc((size_t)size, (size_t)bytes + 1);
  in = calloc((size_t)size, (size_t)bytes + 1);

  MPI_Comm groups[4] = {MPI_COMM_WORLD};
  MPI_Comm_split(MPI_COMM_WORLD, rank / columns, rank, &groups[1]);
  MPI_Comm_split(MPI_COMM_WORLD, rank % columns, rank, &groups[2]);
  MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &groups[3]);
  const char *names[4] = {"world", "rows", "columns", "halves"};
  double begin[4], end[4];
  for (i = 0; i < 4; ++i) {
    usleep((useconds_t)((i + 1 - MPI_Wtime()) * 1e6)); /* until second i + 1 */
    begin[i] = MPI_Wtime();
    call(argv[1], bytes, i == 2 ? 1 : 0, groups[i]);
    end[i] = MPI_Wtime();
  }
  for (i = 0; i < 4; ++i) printf("%d %s %.12f %.12f\n", rank, names[i], begin[i], end[i]);
  MPI_Finalize();
  return 0;
}
