/* Performs the actions of a trace (docs/trace-format.md): follow FOLDER, with FOLDER/rank-N.txt for rank N.

   Its computation is the trace's, given to the SMPI plug-in as the recorder gives what it has measured, and not measured itself:
   a run online takes the same simulated time each time. Of the calls it knows those of the tests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COMMS = 64, MOST_REQUESTS = 256, MOST_BYTES = 1 << 20 };
static MPI_Comm comms[MOST_COMMS];
static MPI_Request requests[MOST_REQUESTS];
static char out[MOST_BYTES], in[MOST_BYTES * 8];

static long number(const char* line, const char* key) {
  const char* at = strstr(line, key);
  return at ? atol(at + strlen(key)) : 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int me;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  comms[0] = MPI_COMM_WORLD;
  void (*compute)(double) = (void (*)(double))dlsym(RTLD_DEFAULT, "retrompi_smpi_compute");
  char path[4096], line[4096], op[64];
  snprintf(path, sizeof path, "%s/rank-%d.txt", argv[1], me);
  FILE* file = fopen(path, "r");
  if (!file || !compute) MPI_Abort(MPI_COMM_WORLD, 2);
  compute(0);
  while (fgets(line, sizeof line, file)) {
    if (line[0] == '#') continue;
    double a = 0;
    long b = 0, c = 0;
    char rest[4096] = "";
    sscanf(line, "%*d %63s %lf %ld %ld", op, &a, &b, &c);
    const int x = (int)a;
    MPI_Comm comm = comms[number(line, "comm=")];
    MPI_Request* request = &requests[number(line, "req=")];
#define IS(name) (strcmp(op, name) == 0)
    if (IS("compute"))
      compute(a);
    else if (IS("send"))
      MPI_Send(out, (int)c, MPI_BYTE, x, (int)b, comm);
    else if (IS("Ssend"))
      MPI_Ssend(out, (int)c, MPI_BYTE, x, (int)b, comm);
    else if (IS("isend"))
      MPI_Isend(out, (int)c, MPI_BYTE, x, (int)b, comm, request);
    else if (IS("recv"))
      MPI_Recv(in, (int)c, MPI_BYTE, x, (int)b, comm, MPI_STATUS_IGNORE);
    else if (IS("irecv"))
      MPI_Irecv(in, (int)c, MPI_BYTE, x, (int)b, comm, request);
    else if (IS("wait"))
      MPI_Wait(request, MPI_STATUS_IGNORE);
    else if (IS("barrier"))
      MPI_Barrier(comm);
    else if (IS("bcast"))
      MPI_Bcast(out, x, MPI_BYTE, (int)b, comm);
    else if (IS("reduce"))
      MPI_Reduce(out, in, x, MPI_BYTE, MPI_BAND, (int)c, comm);
    else if (IS("allreduce"))
      MPI_Allreduce(out, in, x, MPI_BYTE, MPI_BAND, comm);
    else if (IS("allgather"))
      MPI_Allgather(out, x, MPI_BYTE, in, x, MPI_BYTE, comm);
    else if (IS("alltoall"))
      MPI_Alltoall(out, x, MPI_BYTE, in, x, MPI_BYTE, comm);
    else if (IS("comm_split")) {
      sscanf(line, "%*d %*s %*s %4095s", rest);
      MPI_Comm_split(comm, atoi(rest), me, &comms[x]); /* the color is the group's first rank */
    } else if (IS("comm_free"))
      MPI_Comm_free(&comms[number(line, "comm=")]);
    else if (!IS("init") && !IS("finalize"))
      MPI_Abort(MPI_COMM_WORLD, 3);
  }
  fclose(file);
  MPI_Finalize();
  return 0;
}
