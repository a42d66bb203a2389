! Fortran: point-to-point, requests, a sub-communicator and collectives.
program exchange
  implicit none
  include 'mpif.h'
  integer :: rank, size, ierr, half, requests(2), left, right, total
  integer :: statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE)
  double precision :: out(20), in(20)
  call MPI_INIT(ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
  right = mod(rank + 1, size)
  left = mod(rank + size - 1, size)
  out = rank
  call MPI_IRECV(in, 20, MPI_DOUBLE_PRECISION, left, 5, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_ISEND(out, 20, MPI_DOUBLE_PRECISION, right, 5, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_WAITALL(2, requests, statuses, ierr)
  call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
  call MPI_ALLREDUCE(rank, total, 1, MPI_INTEGER, MPI_SUM, half, ierr)
  call MPI_BCAST(out, 20, MPI_DOUBLE_PRECISION, 0, half, ierr)
  if (rank == 0) then
    call MPI_SEND(total, 1, MPI_INTEGER, size - 1, 8, MPI_COMM_WORLD, ierr)
  end if
  if (rank == size - 1) then
    call MPI_RECV(total, 1, MPI_INTEGER, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, status, ierr)
  end if
  call MPI_COMM_FREE(half, ierr)
  call MPI_BARRIER(MPI_COMM_WORLD, ierr)
  call MPI_FINALIZE(ierr)
end program exchange
