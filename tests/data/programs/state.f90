! Each rank has its own state: variables of a module, a COMMON block, saved variables, and units of files. Ends by STOP.
module grid
  implicit none
  integer :: me = -1, ranks = 0
  real(8), allocatable :: field(:)
end module grid

subroutine step(total)
  use grid
  implicit none
  real(8), intent(out) :: total
  integer :: count
  real(8) :: weight
  common /balance/ count, weight
  integer, save :: calls = 0
  calls = calls + 1
  count = count + calls
  total = weight * sum(field) + count
end subroutine step

program state
  use grid
  implicit none
  include 'mpif.h'
  integer :: error, i, cells, status(MPI_STATUS_SIZE), next, before, read_back
  integer :: count
  real(8) :: weight, total, all
  character(32) :: word, name
  common /balance/ count, weight

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call get_command_argument(1, word)
  read (word, *) cells
  allocate (field(cells * (me + 1)))
  field = me + 1
  count = 10 * me
  weight = 0.5d0

  ! All ranks: the same file under the same unit, then each rank a file of its own under that unit.
  if (me == 0) then
    open (unit=21, file='state.in', status='replace')
    write (21, *) 42
    close (21)
  end if
  call MPI_Barrier(MPI_COMM_WORLD, error)
  open (unit=21, file='state.in', status='old', action='read')
  call MPI_Barrier(MPI_COMM_WORLD, error)
  read (21, *) read_back
  close (21)
  if (read_back /= 42) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  write (name, '(a,i0)') 'state.out', me
  open (unit=21, file=name, status='replace')
  next = mod(me + 1, ranks)
  before = mod(me + ranks - 1, ranks)
  do i = 1, 3
    call step(total)
    write (21, *) total
    call MPI_Sendrecv(total, 1, MPI_DOUBLE_PRECISION, next, i, all, 1, MPI_DOUBLE_PRECISION, before, i, &
                      MPI_COMM_WORLD, status, error)
    field(1) = field(1) + all
  end do
  rewind (21)
  do i = 1, 3
    read (21, *) total
  end do
  close (21)
  call MPI_Allreduce(total, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  print '(a,i0,a,f0.3,a,f0.3,a,l1)', 'rank ', me, ': ', total, ' of ', all, ' ', MPI_Wtime() > 0
  call MPI_Finalize(error)
  stop
end program state
