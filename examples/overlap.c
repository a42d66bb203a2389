/* Overlap of computation and communication, as the Nemesis study tests it with a modified NetMPI: two processes start messages to each other
 * without waiting for them, compute, and look between two pieces of computation whether the messages are through (MPI_Testall). Messages
 * that only move inside MPI calls move in those looks.
 *
 *   mpicc -O2 overlap.c -lm -o overlap && mpirun -np 2 ./overlap [--messages N] [--tests N] [--work N] ...
 *
 * For every size three times are taken: the messages alone, the computation alone, and both at once. The overlap is the part of the
 * shorter of the two that is hidden behind the other: 100 % when both together take as long as the longer one alone, 0 % when they take
 * their sum.
 *
 * --sizes A,B,...  messages in bytes (default 1024,8192,65536,262144)
 * --messages N     messages each way (default 4)
 * --tests N        looks of MPI_Testall, one before each piece of computation; 0: one piece and no look (default 100)
 * --work N         operations of a piece (default 2000; of the one piece with --tests 0: a hundred times as many)
 * --reps N         repetitions (default 20)
 *
 * Needs an even number of processes; each works with the one beside it. Sections of MPI_Pcontrol: size N both at once, 1000000000 + N the
 * messages alone, 2100000000 the computation alone; their parts are single repetitions.
 */
#include "example.h"

enum { TAG = 0, MOST = 64, ALONE = 1000000000, WORK = 2100000000 };

typedef struct {
  unsigned char* out;
  unsigned char* in;
  long size;
  int messages, partner;
} Messages;

/* A chain of operations of which each needs the one before, so that no compiler shortens it. */
static double computed(double x, long operations) {
  for (long i = 0; i < operations; i++) x = x * 0.999999 + 0.5;
  return x;
}

static int start(const Messages* m, MPI_Request* requests) {
  int n = 0;
  for (int k = 0; k < m->messages; k++) MPI_Irecv(m->in + k * m->size, (int)m->size, MPI_BYTE, m->partner, TAG, MPI_COMM_WORLD, &requests[n++]);
  for (int k = 0; k < m->messages; k++) MPI_Isend(m->out + k * m->size, (int)m->size, MPI_BYTE, m->partner, TAG, MPI_COMM_WORLD, &requests[n++]);
  return n;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double messages = 4;
  double tests = 100;
  double work = 2000;
  double reps = 20;
  const char* list = "1024,8192,65536,262144";
  const Option options[] = {
      {"sizes", NULL, 0, 0, &list, "message sizes in bytes, separated by commas"},
      {"messages", &messages, 1, MOST, NULL, "messages each way"},
      {"tests", &tests, 0, 1e9, NULL, "looks of MPI_Testall"},
      {"work", &work, 1, 1e12, NULL, "operations of a piece of computation"},
      {"reps", &reps, 1, 1e6, NULL, "repetitions"},
  };
  read_options(argc, argv, options, 5, "overlap: computation while messages are on their way");
  const int rank = world_rank();
  if (world_size() % 2 != 0) refuse("overlap: needs an even number of processes, not %d", world_size());

  const Sizes sizes = message_sizes(list, 0, 0);
  const int pieces = tests > 0 ? (int)tests : 1;
  const long piece = tests > 0 ? (long)work : 100 * (long)work;
  Messages m = {NULL, NULL, 0, (int)messages, rank ^ 1};
  const size_t most = (size_t)largest(&sizes) * (size_t)m.messages;
  m.out = memory(most, 1);
  m.in = memory(most, 1);
  MPI_Request requests[2 * MOST];
  MPI_Status statuses[2 * MOST]; /* gcc 12 takes MPICH's MPI_STATUSES_IGNORE for an array that is too short */
  double x = 1;
  long wrong = 0;

  if (rank == 0) printf("%10s %12s %14s %14s %14s %10s\n", "size_B", "repetitions", "messages_us", "compute_us", "time_us", "overlap_%");
  for (int s = 0; s < sizes.count; s++) {
    m.size = sizes.size[s];
    for (int k = 0; k < m.messages; k++) fill(m.out + k * m.size, m.size, rank + k);
    clear(m.in, m.size * m.messages);
    double took[3];

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol((int)(ALONE + m.size));
    double began = MPI_Wtime();
    for (int i = 0; i < (int)reps; i++) MPI_Waitall(start(&m, requests), requests, statuses);
    took[0] = (MPI_Wtime() - began) / reps;
    MPI_Pcontrol(-(int)reps);

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(WORK);
    began = MPI_Wtime();
    for (int i = 0; i < (int)reps; i++)
      for (int t = 0; t < pieces; t++) x = computed(x, piece);
    took[1] = (MPI_Wtime() - began) / reps;
    MPI_Pcontrol(-(int)reps);

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol((int)m.size);
    began = MPI_Wtime();
    for (int i = 0; i < (int)reps; i++) {
      const int n = start(&m, requests);
      for (int t = 0; t < pieces; t++) {
        int done = 0;
        if (tests > 0) MPI_Testall(n, requests, &done, statuses);
        x = computed(x, piece);
      }
      MPI_Waitall(n, requests, statuses);
    }
    took[2] = (MPI_Wtime() - began) / reps;
    MPI_Pcontrol(-(int)reps);

    for (int k = 0; k < m.messages; k++) wrong += differences(m.in + k * m.size, m.size, m.partner + k);
    double all[3] = {0, 0, 0};
    MPI_Reduce(took, all, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    const double shorter = all[0] < all[1] ? all[0] : all[1];
    const double hidden = shorter > 0 ? 100 * (all[0] + all[1] - all[2]) / shorter : 0;
    if (rank == 0) printf("%10ld %12d %14.3f %14.3f %14.3f %10.1f\n", m.size, (int)reps, all[0] * 1e6, all[1] * 1e6, all[2] * 1e6, hidden);
  }
  free(m.in);
  free(m.out);
  /* x tends to 500000 from below: looking at it is what keeps the computation in the program. */
  return finish("messages", wrong + !(x > 0 && x < 500001));
}
