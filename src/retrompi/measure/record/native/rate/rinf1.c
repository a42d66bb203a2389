// The 17 Rinf1 loops (Baker & Fox, Table 2; spec/machine/kernels.toml) on this machine, each at several lengths with its vectors in cache.
//
// Prints a line per loop: its name and the largest rate over the lengths, in counted operations a second of processor time. The platforms'
// `flops` is the mean of these maxima, and so is the rate at which a recorded second counts. Every measurement is the fastest of several
// rounds, and a round visits all loops and lengths: a disturbance of a few milliseconds meets
// different measurements in each round.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 100 * 1024, LEADING = 64, ROUNDS = 40, LENGTHS = 4 };

static double a[MOST], b[MOST], c[MOST], d[MOST], e[MOST], f[MOST];
static double x[LEADING][LEADING], y[LEADING][LEADING], z[LEADING][LEADING];
static int32_t j[MOST], k[MOST], l[MOST];
static volatile double kept;
static double s = 0.999999;

static void dyads(int n, int stride) {
  for (int i = 0; i < n * stride; i += stride) a[i] = b[i] * c[i];
}
static void triads(int n, int stride) {
  for (int i = 0; i < n * stride; i += stride) a[i] = b[i] * c[i] + d[i];
}
static void scatter_gather(int n, int unused) {
  (void)unused;
  for (int i = 0; i < n; i++) a[j[i]] = b[k[i]];
}
static void four_op(int n, int unused) {
  (void)unused;
  for (int i = 0; i < n; i++) a[i] = b[i] * c[i] + d[i] * e[i] + f[i];
}
static void inner_product(int n, int unused) {
  (void)unused;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += b[i] * c[i];
  kept = sum;
}
static void recurrence(int n, int unused) {
  (void)unused;
  for (int i = 1; i <= n; i++) a[i] = b[i] * a[i - 1] + d[i];
}
static void charge(int n, int unused) {
  (void)unused;
  for (int i = 0; i < n; i++) a[l[i]] = a[l[i]] + s;
}
static void transposition(int n, int unused) {
  (void)unused;
  for (int i = 0; i < n; i++)
    for (int m = 0; m < n; m++) y[i][m] = x[m][i];
}
static void matmul_inner(int n, int unused) {
  (void)unused;
  for (int i = 0; i < n; i++)
    for (int m = 0; m < n; m++) {
      double sum = x[i][m];
      for (int o = 0; o < n; o++) sum += y[i][o] * z[o][m];
      x[i][m] = sum;
    }
}
static void matmul_middle(int n, int unused) {
  (void)unused;
  for (int i = 0; i < n; i++)
    for (int o = 0; o < n; o++)
      for (int m = 0; m < n; m++) x[i][m] += y[i][o] * z[o][m];
}
static void matmul_outer(int n, int unused) {
  (void)unused;
  for (int o = 0; o < n; o++)
    for (int i = 0; i < n; i++)
      for (int m = 0; m < n; m++) x[i][m] += y[i][o] * z[o][m];
}
static void daxpy(int n, int unused) {
  (void)unused;
  for (int i = 0; i < n; i++) a[i] = s * b[i] + c[i];
}
static void indirect_daxpy(int n, int unused) {
  (void)unused;
  for (int i = 0; i < n; i++) a[j[i]] = s * b[k[i]] + c[l[i]];
}

// `levels`: nested loops over the length; `counted`: operations of an iteration of the innermost one.
static const struct {
  const char* name;
  void (*run)(int n, int stride);
  int counted, levels, stride, lengths[LENGTHS];
} LOOPS[] = {
    {"dyads", dyads, 1, 1, 1, {100, 200, 400, 800}},
    {"dyads-8", dyads, 1, 1, 8, {20, 40, 80, 160}},
    {"triads", triads, 2, 1, 1, {100, 200, 400, 800}},
    {"triads-8", triads, 2, 1, 8, {20, 40, 80, 160}},
    {"scatter-gather", scatter_gather, 2, 1, 1, {100, 200, 400, 800}},
    {"four-op", four_op, 4, 1, 1, {100, 200, 400, 600}},
    {"inner-product", inner_product, 2, 1, 1, {100, 200, 400, 800}},
    {"recurrence", recurrence, 2, 1, 1, {100, 200, 400, 800}},
    {"charge", charge, 1, 1, 1, {100, 200, 400, 800}},
    {"transposition", transposition, 1, 2, 1, {8, 16, 24, 32}},
    {"matmul-inner", matmul_inner, 2, 3, 1, {8, 12, 16, 24}},
    {"matmul-middle", matmul_middle, 2, 3, 1, {8, 12, 16, 24}},
    {"matmul-outer", matmul_outer, 2, 3, 1, {8, 12, 16, 24}},
    {"dyads-128", dyads, 1, 1, 128, {4, 8, 16, 32}},
    {"dyads-1024", dyads, 1, 1, 1024, {4, 8, 16, 32}},
    {"daxpy", daxpy, 2, 1, 1, {100, 200, 400, 800}},
    {"indirect-daxpy", indirect_daxpy, 2, 1, 1, {100, 200, 400, 800}},
};
enum { COUNT = sizeof LOOPS / sizeof LOOPS[0] };

// Processor time: what other processes take from this one does not count.
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double measured(int loop, int n, long times) {
  const double begun = now();
  for (long t = 0; t < times; t++) {
    LOOPS[loop].run(n, LOOPS[loop].stride);
    __asm__ volatile("" ::: "memory");
  }
  return now() - begun;
}

// Values with which recurrences and sums stay, over all rounds, among the numbers that a processor handles at full speed.
static void fill(void) {
  for (int i = 0; i < MOST; i++) {
    a[i] = 0.5;
    b[i] = 0.5 + 1e-6 * i;
    c[i] = e[i] = 0.25;
    d[i] = f[i] = 0.125;
  }
  for (int i = 0; i < LEADING; i++)
    for (int m = 0; m < LEADING; m++) x[i][m] = y[i][m] = z[i][m] = 1e-3;
}

// Random places among the first `n` elements; a charge goes to one of a tenth as many cells.
static void draw(int loop, int n) {
  uint32_t seed = 12345;
  const int cells = LOOPS[loop].run == charge ? n / 10 : n;
  for (int i = 0; i < n; i++) {
    int32_t* const of[] = {j, k, l};
    for (int which = 0; which < 3; which++) {
      seed = seed * 1664525u + 1013904223u;
      of[which][i] = (int32_t)((seed >> 8) % (uint32_t)cells);
    }
  }
}

int main(void) {
  static double best[COUNT][LENGTHS];
  const double begun = now();
  fill();
  while (now() - begun < 0.03) measured(0, 400, 100);  // until the clock of the processor has risen
  for (int round = 0; round < ROUNDS; round++)
    for (int loop = 0; loop < COUNT; loop++)
      for (int at = 0; at < LENGTHS; at++) {
        const int n = LOOPS[loop].lengths[at];
        double turns = n;
        for (int level = 1; level < LOOPS[loop].levels; level++) turns *= n;
        draw(loop, n);
        const long times = (long)(400000.0 / turns) + 1;
        measured(loop, n, 2);
        const double took = measured(loop, n, times);
        const double rate = took > 0 ? LOOPS[loop].counted * turns * (double)times / took : 0;
        if (rate > best[loop][at]) best[loop][at] = rate;
      }
  for (int loop = 0; loop < COUNT; loop++) {
    double most = 0;
    for (int at = 0; at < LENGTHS; at++) most = best[loop][at] > most ? best[loop][at] : most;
    printf("%s %.6g\n", LOOPS[loop].name, most);
  }
  return 0;
}
