/* Derived datatypes: a column of a matrix and a structure travel as their bytes. */
#include <mpi.h>
#include <stddef.h>

int main(int argc, char **argv) {
  int rank, size;
  double matrix[10][10] = {{0}};
  struct { int a; double b[3]; } record = {0, {0}};
  MPI_Datatype column, structure, types[2] = {MPI_INT, MPI_DOUBLE};
  int lengths[2] = {1, 3};
  MPI_Aint at[2] = {0, (char *)&record.b - (char *)&record};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Type_vector(10, 1, 10, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Type_create_struct(2, lengths, at, types, &structure);
  MPI_Type_commit(&structure);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Request r;
  MPI_Irecv(&matrix[0][0], 1, column, left, 1, MPI_COMM_WORLD, &r);
  MPI_Send(&matrix[0][9], 1, column, right, 1, MPI_COMM_WORLD);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Bcast(&record, 1, structure, 0, MPI_COMM_WORLD);
  MPI_Type_free(&structure);
  MPI_Type_free(&column);
  MPI_Finalize();
  return 0;
}
