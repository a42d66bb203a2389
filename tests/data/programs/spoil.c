/* Put before a program by LD_PRELOAD: every rank damages a byte of what it sends, so that a program that checks its result must see it. */
#include <mpi.h>

static void spoil(const void* data, int count, MPI_Datatype type) {
  int size;
  MPI_Type_size(type, &size);
  if (count == 0 || data == MPI_IN_PLACE) return;
  /* Of the first element: the sign and exponent of a number, whatever its layout around. */
  ((unsigned char*)data)[(size > 8 ? 8 : size) - 1] += 3;
}

int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  spoil(data, count, type);
  return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  spoil(data, count, type);
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Sendrecv(const void* data, int count, MPI_Datatype type, int to, int tag, void* in, int in_count, MPI_Datatype in_type, int from, int in_tag,
                 MPI_Comm comm, MPI_Status* status) {
  spoil(data, count, type);
  return PMPI_Sendrecv(data, count, type, to, tag, in, in_count, in_type, from, in_tag, comm, status);
}

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  spoil(data, count, type);
  return PMPI_Bcast(data, count, type, root, comm);
}

int MPI_Alltoallv(const void* data, const int counts[], const int places[], MPI_Datatype type, void* in, const int in_counts[], const int in_places[],
                  MPI_Datatype in_type, MPI_Comm comm) {
  spoil(data, 1, type);
  return PMPI_Alltoallv(data, counts, places, type, in, in_counts, in_places, in_type, comm);
}
