// The profile of a rank: when its MPI part began and ended, its sections (MPI_Pcontrol) and, from the recorder, its calls by size and
// section. Shared by the recorder and by the timer, which adds no cost to the calls between MPI_Init and MPI_Finalize.
#ifndef RETROMPI_PROFILE_H
#define RETROMPI_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Profile Profile;

int64_t profile_clock(void);  // ps: the monotonic clock; under SMPI the simulated one
// After MPI_Init; NULL where no profile is wanted (RETROMPI_PROFILE_DIR). The MPI part begins now.
Profile *profile_begin(int rank, int ranks);
void profile_section(Profile *p, int level, int64_t now);
void profile_call(Profile *p, const char *name, int64_t size, int64_t time);
// Writes rank-N.profile; `how`: finalized or aborted.
void profile_end(Profile *p, int64_t now, const char *how);

#endif
