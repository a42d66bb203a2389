/* Lab 09: {title} on {ranks} ranks, {rounds} rounds.
 *
 *   mpicc -O2 exchange.c -o exchange && mpiexec -n {ranks} ./exchange
 *
 * {rule}
 * Every message has {doubles} numbers of type double and the tag {tag}. Send in message number k (from 0) of a rank the value
 * 1000 * rank + k in every place, so that the receiver can look whether the right message came.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = {doubles}, ROUNDS = {rounds}, TAG = {tag} };

/* One round. Returns how many received numbers are wrong. */
static long exchange(int rank, int size, int round, double *out, double *in) {
  /* Yours. It has to complete on a library that does not hand over a message before its receiver asks for it. */
  (void)rank, (void)size, (void)round, (void)out, (void)in;
  return 0;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double *out = calloc(NUMBERS, sizeof(double)), *in = calloc((size_t)size * NUMBERS, sizeof(double)); /* room for a message of every rank */
  double wrong = 0, sum = 0;
  for (int round = 0; round < ROUNDS; round++) wrong += (double)exchange(rank, size, round, out, in);
  MPI_Allreduce(&wrong, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %d rounds: %.0f numbers wrong\n", size, ROUNDS, sum);
  free(in);
  free(out);
  MPI_Finalize();
  return sum == 0 ? 0 : 1;
}
