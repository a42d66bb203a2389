/* Single messages, streams and exchanges between two ranks: the native counterpart of sim/sampling.py. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

enum { TAG = 7, SYNC = 11, BATCHES = 5, MOST = 4096 };

static const long KIB = 1024;

/* Repetitions of a batch: about a quarter of a millisecond, at least a few messages. */
static int repetitions(const Plan* p, long size) {
  const int n = size <= KIB ? 200 : size <= 16 * KIB ? 60 : size <= 128 * KIB ? 16 : size <= 1024 * KIB ? 6 : 3;
  return p->quick ? (n + 2) / 3 : n;
}

static void exchange_tagged(const Plan* p, char* out, char* in, long size, int tag) {
  if (p->rank == 0) {
    MPI_Send(out, (int)size, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    MPI_Recv(in, (int)size, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in, (int)size, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, (int)size, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
  }
}

static void exchange_once(const Plan* p, char* out, char* in, long size) { exchange_tagged(p, out, in, size, TAG); }

/* One-way times of BATCHES batches, without a clock inside them. */
static void batches(const Plan* p, const char* what, int round, long size, char* out, char* in) {
  double times[BATCHES];
  const int n = repetitions(p, size);
  for (int i = 0; i < (n + 3) / 4; i++) exchange_once(p, out, in, size);
  for (int b = 0; b < BATCHES; b++) {
    const double begun = now_ns();
    for (int i = 0; i < n; i++) exchange_once(p, out, in, size);
    times[b] = (now_ns() - begun) / (2.0 * n);
  }
  if (p->rank == 0) say(what, size, round, times, BATCHES);
}

static void rounds_of_batches(Plan* p, const char* what, char* out, char* in) {
  for (int r = 0; r < p->rounds; r++) {
    shuffle(p->sizes, p->count, (uint64_t)r);
    for (int i = 0; i < p->count; i++) batches(p, what, r, p->sizes[i], out, in);
  }
}

void measure_pingpong(Plan* p) { rounds_of_batches(p, "pingpong", p->out, p->in); }

/* The received buffer is sent back: its cache lines were modified by the sending core, as those of a program's results are.
 * The buffer starts at the alignment that malloc would give it. */
void measure_echo(Plan* p) { rounds_of_batches(p, "echo", p->out + 16, p->out + 16); }

/* The first exchanges of two ranks: their total excess over later ones; the very first; a later one. Half round trips. */
void measure_first(Plan* p) {
  enum { FIRST = 400, LATER = 100 };
  double times[FIRST], sum = 0;
  for (int i = 0; i < FIRST; i++) {
    const double begun = now_ns();
    exchange_once(p, p->out, p->in, 8);
    times[i] = (now_ns() - begun) / 2;
    sum += times[i];
  }
  const double very_first = times[0];
  double q[QUANTILES];
  quantiles(times + FIRST - LATER, LATER, q);
  if (p->rank == 0) say("first", 8, 0, (double[]){2 * (sum - FIRST * q[3]), very_first, q[3]}, 3);
}

/* A PingPong in which every message is another part of a region larger than any core's cache, written before it is sent. */
void measure_rotating(Plan* p) {
  const long region = (p->quick ? 16 : 64) * KIB * KIB;
  char* out = buffer((size_t)region);
  char* in = buffer((size_t)region);
  for (int r = 0; r < p->rounds; r++) {
    shuffle(p->sizes, p->count, (uint64_t)r);
    for (int i = 0; i < p->count; i++) {
      const long size = p->sizes[i], step = (size + 4095) / 4096 * 4096 + 4096;
      const long places = region / step > 0 ? region / step : 1;
      const int n = repetitions(p, size);
      double times[BATCHES];
      long place = 0;
      for (int b = 0; b < BATCHES; b++) {
        const double begun = now_ns();
        for (int k = 0; k < n; k++, place = (place + 1) % places) exchange_once(p, out + place * step, in + place * step, size);
        times[b] = (now_ns() - begun) / (2.0 * n);
      }
      if (p->rank == 0) say("rotating", size, r, times, BATCHES);
    }
  }
  free(out);
  free(in);
}

/* With a clock around every call: half round trips, time in the first rank's send and in the second's. */
void measure_marked(Plan* p) {
  static double trips[MOST], sends[MOST], others[MOST];
  double q[QUANTILES];
  for (int r = 0; r < p->rounds; r++) {
    shuffle(p->sizes, p->count, (uint64_t)r);
    for (int i = 0; i < p->count; i++) {
      const long size = p->sizes[i];
      const int n = repetitions(p, size) * 2;
      for (int k = 0; k < (n + 3) / 4; k++) exchange_once(p, p->out, p->in, size);
      for (int k = 0; k < n; k++) {
        if (p->rank == 1) MPI_Recv(p->in, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double begun = now_ns();
        MPI_Send(p->out, (int)size, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD);
        const double sent = now_ns();
        if (p->rank == 0) MPI_Recv(p->in, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sends[k] = sent - begun;
        trips[k] = (now_ns() - begun) / 2;
      }
      if (p->rank == 1) {
        MPI_Send(sends, n, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
        continue;
      }
      MPI_Recv(others, n, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      quantiles(trips, n, q);
      say("trip", size, r, q, QUANTILES);
      quantiles(sends, n, q);
      say("send", size, r, q, QUANTILES);
      quantiles(others, n, q);
      say("send_back", size, r, q, QUANTILES);
    }
  }
}

/* Reads a number from the environment: across a link, messages take a different time. */
static double setting(const char* name, double otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : atof(text);
}

/* Receives of messages that have arrived long before. Only for sizes whose sends do not wait for their receive. */
void measure_late(Plan* p) {
  static double times[MOST];
  double q[QUANTILES];
  for (int r = 0; r < p->rounds; r++) {
    shuffle(p->sizes, p->count, (uint64_t)r);
    for (int i = 0; i < p->count; i++) {
      const long size = p->sizes[i];
      const int n = repetitions(p, size) / 2 + 5;
      for (int k = 0; k < n; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (p->rank == 1) {
          MPI_Send(p->out, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
          continue;
        }
        spin_ns(setting("RETROMPI_LATE_NS", 5e3) + setting("RETROMPI_LATE_NS_PER_B", 1.0) * (double)size);
        const double begun = now_ns();
        MPI_Recv(p->in, (int)size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        times[k] = now_ns() - begun;
      }
      if (p->rank == 0) {
        quantiles(times, n, q);
        say("late", size, r, q, QUANTILES);
      }
    }
  }
}

/* n messages in succession, every receive posted before: the time on rank 0 until a reply confirms that all have arrived. */
static double stream(const Plan* p, long size, int n, MPI_Request* requests, MPI_Status* statuses) {
  const int sends = p->ways == 2 || p->rank == 0, receives = p->ways == 2 || p->rank == 1;
  int open = 0;
  for (int k = 0; k < n && receives; k++) MPI_Irecv(p->in, (int)size, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD, &requests[open++]);
  exchange_tagged(p, p->out, p->in, 0, SYNC);
  const double begun = now_ns();
  for (int k = 0; k < n && sends; k++) MPI_Isend(p->out, (int)size, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD, &requests[open++]);
  MPI_Waitall(open, requests, statuses);
  if (p->rank == 1)
    MPI_Send(p->out, 0, MPI_BYTE, 0, SYNC, MPI_COMM_WORLD);
  else
    MPI_Recv(p->in, 0, MPI_BYTE, 1, SYNC, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return now_ns() - begun;
}

/* What a message adds to a stream: a long stream minus a short one. Prints quantiles of both. */
void measure_stream(Plan* p) {
  enum { TRIALS = 15 };
  static MPI_Request requests[2 * 64];
  static MPI_Status statuses[2 * 64];
  double q[QUANTILES], times[2][TRIALS];
  const int most = p->quick ? 7 : TRIALS;
  for (int r = 0; r < p->rounds; r++) {
    shuffle(p->sizes, p->count, (uint64_t)r);
    for (int i = 0; i < p->count; i++) {
      const long size = p->sizes[i];
      const int lengths[2] = {size <= 64 * KIB ? 8 : 3, size <= 64 * KIB ? 40 : size <= 512 * KIB ? 15 : 9};
      for (int t = -1; t < most; t++)
        for (int w = 0; w < 2; w++) {
          const double took = stream(p, size, lengths[w], requests, statuses);
          if (t >= 0) times[w][t] = took;
        }
      if (p->rank != 0) continue;
      double line[2 + 2 * QUANTILES];
      for (int w = 0; w < 2; w++) {
        quantiles(times[w], most, q);
        line[w * (QUANTILES + 1)] = lengths[w];
        for (int k = 0; k < QUANTILES; k++) line[w * (QUANTILES + 1) + 1 + k] = q[k];
      }
      say(p->ways == 2 ? "both" : "stream", size, r, line, 2 + 2 * QUANTILES);
    }
  }
}

/* Both ranks send to each other at the same time; time of one exchange. */
static void exchanges(Plan* p, const char* what, void (*once)(const Plan*, int)) {
  double times[BATCHES];
  for (int r = 0; r < p->rounds; r++) {
    shuffle(p->sizes, p->count, (uint64_t)r);
    for (int i = 0; i < p->count; i++) {
      const int size = (int)p->sizes[i];
      const int n = repetitions(p, size);
      for (int b = -1; b < BATCHES; b++) {
        exchange_tagged(p, p->out, p->in, 0, SYNC);
        const double begun = now_ns();
        for (int k = 0; k < n; k++) once(p, size);
        if (b >= 0) times[b] = (now_ns() - begun) / n;
      }
      if (p->rank == 0) say(what, size, r, times, BATCHES);
    }
  }
}

static void by_sendrecv(const Plan* p, int size) {
  MPI_Sendrecv(p->out, size, MPI_BYTE, p->peer, TAG, p->in, size, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void by_requests(const Plan* p, int size) {
  MPI_Request both[2];
  MPI_Status statuses[2];
  MPI_Irecv(p->in, size, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(p->out, size, MPI_BYTE, p->peer, TAG, MPI_COMM_WORLD, &both[1]);
  MPI_Waitall(2, both, statuses);
}

void measure_exchange(Plan* p) { exchanges(p, "exchange", by_sendrecv); }

void measure_requests(Plan* p) { exchanges(p, "requests", by_requests); }
