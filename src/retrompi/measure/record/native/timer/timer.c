// The timer: measures how long a rank's MPI part and its sections take, without interposing any other call. For measurements whose
// times must not include the cost of profiling.
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "../profile.h"

#define API __attribute__((visibility("default")))

static Profile *profile;

static void *next_function(const char *name) {
  void *const found = dlsym(RTLD_NEXT, name);
  if (found == NULL) {
    fprintf(stderr, "retrompi run: the MPI library has no %s\n", name);
    abort();
  }
  return found;
}

static void begin(void) {
  MPI_Comm parent = MPI_COMM_NULL;
  if (profile != NULL || (PMPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL)) return;  // spawned: a different MPI_COMM_WORLD
  int rank = 0, ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  profile = profile_begin(rank, ranks);
}

static void end(const char *how) {
  if (profile == NULL) return;
  profile_end(profile, profile_clock(), how);
  profile = NULL;
}

// A function of the program arrives here as MPI_X or, from Fortran bindings that call the profiling interface, as PMPI_X.
#define DEFINE(name, params)                                       \
  API int MPI_##name params __attribute__((alias("PMPI_" #name))); \
  API int PMPI_##name params
#define REAL(name) ((__typeof__(&MPI_##name))next_function("PMPI_" #name))

DEFINE(Init, (int *argc, char ***argv)) {
  const int rc = REAL(Init)(argc, argv);
  if (rc == MPI_SUCCESS) begin();
  return rc;
}

DEFINE(Init_thread, (int *argc, char ***argv, int required, int *provided)) {
  const int rc = REAL(Init_thread)(argc, argv, required, provided);
  if (rc == MPI_SUCCESS) begin();
  return rc;
}

DEFINE(Finalize, (void)) {
  end("finalized");
  return REAL(Finalize)();
}

DEFINE(Abort, (MPI_Comm comm, int code)) {
  end("aborted");
  return REAL(Abort)(comm, code);
}

API int MPI_Pcontrol(const int level, ...) __attribute__((alias("PMPI_Pcontrol")));
API int PMPI_Pcontrol(const int level, ...) {
  if (profile != NULL) profile_section(profile, level, profile_clock());
  return MPI_SUCCESS;
}
