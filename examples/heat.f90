! The heat equation on a line by explicit steps: each process has a part of the points and exchanges its end points with its neighbours
! before every step.
!
!   mpif90 -O2 heat.f90 -o heat && mpirun -np 4 ./heat [--size N] [--steps N] [--every N]
!
! --size N   inner points (default 200000)
! --steps N  time steps (default 80)
! --every N  steps between two sums of the heat (default 20; each is an MPI_Allreduce)
!
! The rod begins at the temperature sin(pi x), an eigenvector of the step: with h = 1 / (size + 1) and r = dt / h**2 = 1/4 each step
! multiplies it by 1 - 4 r sin(pi h / 2)**2. The result is compared with that point by point: exit code 1 when it differs.
!
! Sections of MPI_Pcontrol: K (0, every, 2 every, ...) are the steps from number K on until the next sum; their parts are steps.
program heat
  use mpi
  use, intrinsic :: iso_fortran_env, only: error_unit, real64
  implicit none

  real(real64), parameter :: pi = acos(-1.0_real64), r = 0.25_real64
  integer, parameter :: to_left = 1, to_right = 2
  real(real64), allocatable :: now(:), next(:)
  real(real64) :: h, mine, total, start, took, known, wrong, all_wrong
  integer :: ierr, rank, ranks, left, right, first, points, i, done, more, step
  integer :: size_asked = 200000, steps = 80, every = 20

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call read_options()
  if (size_asked < ranks) then
    call refuse("heat: --size must be at least the number of processes")
  end if

  first = int(int(size_asked, 8) * rank / ranks)
  points = int(int(size_asked, 8) * (rank + 1) / ranks) - first
  left = merge(MPI_PROC_NULL, rank - 1, rank == 0)
  right = merge(MPI_PROC_NULL, rank + 1, rank == ranks - 1)
  h = 1.0_real64 / (size_asked + 1)
  allocate (now(0:points + 1), next(0:points + 1))
  now = 0
  next = 0
  do i = 1, points
    now(i) = sin(pi * h * (first + i))
  end do

  if (rank == 0) print '(a10, a18, a16)', "steps", "heat", "time_us_a_step"
  done = 0
  do while (done < steps)
    more = min(every, steps - done)
    call MPI_Pcontrol(done)
    start = MPI_Wtime()
    do step = 1, more
      call MPI_Sendrecv(now(1), 1, MPI_DOUBLE_PRECISION, left, to_left, now(points + 1), 1, MPI_DOUBLE_PRECISION, right, to_left, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_Sendrecv(now(points), 1, MPI_DOUBLE_PRECISION, right, to_right, now(0), 1, MPI_DOUBLE_PRECISION, left, to_right, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      do i = 1, points
        next(i) = now(i) + r * (now(i - 1) - 2 * now(i) + now(i + 1))
      end do
      now(1:points) = next(1:points)
    end do
    mine = h * sum(now(1:points))
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    took = MPI_Wtime() - start
    call MPI_Pcontrol(-more)
    done = done + more
    if (rank == 0) print '(i10, f18.12, f16.3)', done, total, took / more * 1e6_real64
  end do

  wrong = 0
  do i = 1, points
    known = (1 - 4 * r * sin(pi * h / 2)**2)**steps * sin(pi * h * (first + i))
    if (.not. abs(now(i) - known) <= 1e-10_real64) wrong = wrong + 1
  end do
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) then
    if (all_wrong < 0.5) print '(a)', "# temperatures: correct"
    if (all_wrong > 0.5) print '(a, i0, a)', "# temperatures: WRONG in ", nint(all_wrong), " places"
  end if
  call MPI_Finalize(ierr)
  if (all_wrong > 0.5) call exit(1)

contains

  ! One line from rank 0, and the end of every rank: an option is wrong on all of them alike.
  subroutine refuse(what)
    character(*), intent(in) :: what
    if (rank == 0) write (error_unit, '(a)') what
    call MPI_Finalize(ierr)
    call exit(2)
  end subroutine refuse

  subroutine read_options()
    character(32) :: name, text
    integer :: at, value, bad
    do at = 1, command_argument_count(), 2
      call get_command_argument(at, name)
      call get_command_argument(at + 1, text)
      if (name /= "--size" .and. name /= "--steps" .and. name /= "--every") then
        call refuse("heat: no option '" // trim(name) // "'; there are: --size --steps --every")
      end if
      read (text, *, iostat=bad) value
      if (bad /= 0 .or. value < 1 .or. verify(trim(text), "0123456789") /= 0) then
        call refuse("heat: " // trim(name) // " must be a number of at least 1, not '" // trim(text) // "'")
      end if
      if (name == "--size") size_asked = value
      if (name == "--steps") steps = value
      if (name == "--every") every = value
    end do
  end subroutine read_options
end program heat
