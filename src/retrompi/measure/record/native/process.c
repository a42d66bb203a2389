// Under SMPI the ranks share one process: what ends a rank must not end the others, and what a rank's private copy of the Fortran
// run-time library (see record/smpi.py) does not know of the process is asked of the library that SimGrid itself has told it.
#ifdef RECORD_SMPI
#include <dlfcn.h>
#include <simgrid/actor.h>
#include <stdio.h>

#include "recorder.h"

#define NEXT(type, name, params) \
  static type(*next) params;     \
  if (next == NULL) next = (type(*) params)next_function(name)

// --- the end of a rank ------------------------------------------------------------------------------------------------------

API void smpi_exit(int status) __attribute__((noreturn));
API void smpi_exit(int status) {
  Rank *const r = self();
  if (r != NULL && r->on) {
    char row[64];
    snprintf(row, sizeof row, "exit with code %d", status);
    comment(r, row);
  }
  void (*online)(int);  // the plug-in's: ends the run where the rank has not finalized
  *(void **)&online = dlsym(RTLD_DEFAULT, "retrompi_smpi_exit");
  if (online != NULL) online(status);
  NEXT(void, "smpi_exit", (int));
  next(status);
  abort();
}

// What smpicc's macro does not reach: STOP and the run-time errors of Fortran, calls of exit in libraries.
API void exit(int status) {
  if (sg_actor_self() != NULL) smpi_exit(status);
  NEXT(void, "exit", (int));
  next(status);
  abort();
}

// --- the command line in Fortran --------------------------------------------------------------------------------------------

#define FORTRAN(type, name, params, args)   \
  API type _gfortran_##name params;         \
  API type _gfortran_##name params {        \
    NEXT(type, "_gfortran_" #name, params); \
    return next args;                       \
  }
FORTRAN(int32_t, iargc, (void), ())
FORTRAN(void, getarg_i4, (int32_t * at, char *value, size_t size), (at, value, size))
FORTRAN(void, getarg_i8, (int64_t * at, char *value, size_t size), (at, value, size))
FORTRAN(void, get_command_i4, (char *value, int32_t *length, int32_t *status, size_t size), (value, length, status, size))
FORTRAN(void, get_command_i8, (char *value, int64_t *length, int64_t *status, size_t size), (value, length, status, size))
FORTRAN(void, get_command_argument_i4, (int32_t * at, char *value, int32_t *length, int32_t *status, size_t size), (at, value, length, status, size))
FORTRAN(void, get_command_argument_i8, (int64_t * at, char *value, int64_t *length, int64_t *status, size_t size), (at, value, length, status, size))
#endif
