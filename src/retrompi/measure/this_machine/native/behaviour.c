/* Behaviour of a send while its receiver is held back outside MPI. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

enum { TAG = 8, GO = 9 };

/* Rank 0: did a send complete within wait_ns while rank 1 was outside MPI? Rank 1 stays outside for twice that long. */
static int completes(const Plan* p, long size, double wait_ns, double* took) {
  MPI_Request request;
  int done = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (p->rank == 1) {
    spin_ns(2 * wait_ns);
    MPI_Recv(p->in, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&done, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return done;
  }
  spin_ns(0.1 * wait_ns); /* so that rank 1 has left the barrier */
  const double begun = now_ns();
  MPI_Isend(p->out, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
  while (!done && now_ns() - begun < wait_ns) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  *took = now_ns() - begun;
  if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Send(&done, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
  return done;
}

/* Bisection between the two sizes of the plan; prints every probe: "eager size round completed ns". */
void measure_eager(Plan* p) {
  for (int r = 0; r < p->rounds; r++) {
    long low = p->sizes[0], high = p->sizes[p->count - 1];
    for (int step = 0; high - low > 1 || step < 2; step++) {
      /* The ends first: a limit outside the range must not look like one of them. */
      const long size = step == 0 ? low : step == 1 ? high : low + (high - low) / 2;
      double took = 0;
      const int done = completes(p, size, p->quick ? 3e6 : 1e7, &took);
      if (p->rank == 0) say("eager", size, r, (double[]){done, took}, 2);
      if (step == 0 && !done) break;
      if (step == 1 && done) break;
      if (step > 1) {
        if (done)
          low = size;
        else
          high = size;
      }
    }
  }
}

/* How many sends of a size complete in succession while no receive is posted: "room size round count". */
void measure_buffer_space(Plan* p) {
  enum { MOST = 512 };
  static MPI_Status statuses[MOST];
  for (int r = 0; r < p->rounds; r++)
    for (int i = 0; i < p->count; i++) {
      const long size = p->sizes[i];
      const double wait_ns = p->quick ? 2e6 : 5e6;
      int count = 0, told = 0;
      MPI_Barrier(MPI_COMM_WORLD);
      if (p->rank == 1) {
        spin_ns(2 * wait_ns + 1e7 + MOST * (2e3 + 0.5 * (double)size));
        do {
          MPI_Recv(p->in, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          MPI_Recv(&told, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } while (told);
        continue;
      }
      spin_ns(1e6);
      MPI_Request data[MOST];
      MPI_Request words[MOST];
      int more[MOST];
      int open = 0;
      for (int done = 1; done && open < MOST;) {
        MPI_Isend(p->out, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &data[open]);
        done = 0;
        const double begun = now_ns();
        do MPI_Test(&data[open], &done, MPI_STATUS_IGNORE);
        while (!done && now_ns() - begun < wait_ns);
        count += done;
        open++;
      }
      for (int k = 0; k < open; k++) {
        more[k] = k + 1 < open;
        MPI_Isend(&more[k], 1, MPI_INT, 1, GO, MPI_COMM_WORLD, &words[k]);
      }
      MPI_Waitall(open, data, statuses);
      MPI_Waitall(open, words, statuses);
      say("room", size, r, (double[]){count}, 1);
    }
}
