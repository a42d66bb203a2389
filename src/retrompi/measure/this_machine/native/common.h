/* Shared by the measuring programs: clock, pinning, quantiles, order of sizes. */
#ifndef RETROMPI_MACHINE_COMMON_H
#define RETROMPI_MACHINE_COMMON_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Plan {
  int rank, peer; /* of two */
  int rounds;
  int quick;
  int ways; /* 1, or 2: both ranks send */
  int count;
  long* sizes;
  char *out, *in; /* buffers of the largest size, page aligned, touched */
} Plan;

/* Nanoseconds of the monotonic clock. */
double now_ns(void);
/* Spins outside MPI for the given number of nanoseconds. */
void spin_ns(double ns);
void* buffer(size_t bytes);
/* Sorts values; fills minimum, 10 %, 25 %, median, 75 %, 90 %, maximum. */
enum { QUANTILES = 7 };
void quantiles(double* values, int count, double* out);
/* Prints a line "what size round value..." on rank 0. */
void say(const char* what, long size, int round, const double* values, int count);
/* The sizes of a round in random order, the same on all ranks. */
void shuffle(long* sizes, int count, uint64_t seed);

/* Distance of the two cores: "state 0 WHEN ns", the transfer of a cache line from one to the other; WHEN is 0 before and 1 after a
 * measurement. A hypervisor that moves a virtual processor is visible only here. Prints nothing for ranks of two hosts. */
void say_state(const Plan* p, int when);
/* Whether the ranks share no memory. */
int far_apart(const Plan* p);

void measure_pingpong(Plan* p);
void measure_echo(Plan* p);
void measure_first(Plan* p);
void measure_rotating(Plan* p);
void measure_marked(Plan* p);
void measure_late(Plan* p);
void measure_stream(Plan* p);
void measure_exchange(Plan* p);
void measure_requests(Plan* p);
void measure_eager(Plan* p);
void measure_buffer_space(Plan* p);
void measure_costs(Plan* p);
void measure_copies(Plan* p);
void measure_compute(Plan* p);
void measure_alone(Plan* p);
void measure_temporary(Plan* p);

#endif
