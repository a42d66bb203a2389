! The modules of MPI-3's Fortran, whose calls go other ways into the libraries.
program modern
  use mpi_f08
  implicit none
  integer :: rank, size
  type(MPI_Request) :: r(2)
  type(MPI_Comm) :: c
  type(MPI_Status) :: s
  double precision :: a(10), b(10)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  a = rank
  call MPI_Irecv(b, 10, MPI_DOUBLE_PRECISION, mod(rank + size - 1, size), 1, MPI_COMM_WORLD, r(1))
  call MPI_Isend(a, 10, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 1, MPI_COMM_WORLD, r(2))
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  call MPI_Sendrecv(a, 10, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 2, b, 10, MPI_DOUBLE_PRECISION, &
                    MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, s)
  call MPI_Comm_dup(MPI_COMM_WORLD, c)
  call MPI_Allreduce(MPI_IN_PLACE, a, 10, MPI_DOUBLE_PRECISION, MPI_SUM, c)
  call MPI_Comm_free(c)
  call MPI_Finalize()
end program modern
