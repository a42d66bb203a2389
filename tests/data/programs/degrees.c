/* A rank that hears of two neighbours and tells none: a fault of MPICH 4.0.2, which copies as many counts of receives as the rank has
   neighbours to tell (github.com/pmodels/mpich, issue 6233; mended by pull request 6250). Two ranks; prints the bytes that are wrong. */
#include <mpi.h>
#include <stdio.h>

int main(void) {
  static char out[10000], in[10000];
  int rank, from[] = {0, 0}, to[] = {1, 1}, counts[] = {5000, 5000}, one[] = {1, 1}, wrong = 0;
  MPI_Aint at[] = {0, 5000};
  MPI_Datatype types[] = {MPI_BYTE, MPI_BYTE};
  MPI_Comm graph;
  for (int i = 0; i < 10000; ++i) out[i] = 1;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank ? 2 : 0, from, one, rank ? 0 : 2, to, one, MPI_INFO_NULL, 0, &graph);
  MPI_Neighbor_alltoallw(out, counts, at, types, in, counts, at, types, graph);
  for (int i = 0; rank && i < 10000; ++i) wrong += in[i] != 1;
  if (rank) printf("%d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
