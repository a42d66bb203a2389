/* Poisson's equation on the unit square by Jacobi's method: each process has a block of the grid and exchanges its border with up to four
 * neighbours of a Cartesian communicator before every sweep.
 *
 *   mpicc -O2 jacobi.c -lm -o jacobi && mpirun -np 4 ./jacobi [--size N] [--sweeps N] [--every N]
 *
 * --size N    inner grid points a side (default 400)
 * --sweeps N  sweeps over the grid (default 200)
 * --every N   sweeps between two residuals (default 50; each is an MPI_Allreduce)
 *
 * The right-hand side is s(x, y) = sin(pi x) sin(pi y), an eigenvector of the sweep. So the grid after k sweeps from zero is known:
 * with h = 1 / (size + 1) and c = cos(pi h) it is h^2 / 4 (1 - c^k) / (1 - c) s, and the largest residual is c^k times that of the start.
 * The result is compared with it point by point.
 *
 * Sections of MPI_Pcontrol: K (0, every, 2 every, ...) are the sweeps from number K on until the next residual; their parts are sweeps.
 */
#include "example.h"

enum { UP, DOWN, LEFT, RIGHT, SIDES };

/* A process's block: rows x columns points and a border of one point around them. */
typedef struct {
  int rows, columns, first_row, first_column, size;
  double* now;
  double* next;
  double* source; /* h^2 s */
  MPI_Comm grid;
  int neighbour[SIDES];
  MPI_Datatype column;
} Block;

/* The first of n points that belongs to part k of p; the parts differ by one point at most. */
static int first_of(int n, int k, int p) { return (int)((long)n * k / p); }

static size_t at(const Block* b, int row, int column) { return (size_t)row * (size_t)(b->columns + 2) + (size_t)column; }

static double eigenvector(const Block* b, int row, int column) {
  const double step = acos(-1.0) / (b->size + 1);
  return sin(step * (b->first_row + row)) * sin(step * (b->first_column + column));
}

static Block block_of(int size) {
  Block b = {0};
  int dims[2] = {0, 0};
  const int periods[2] = {0, 0};
  int coords[2];
  b.size = size;
  MPI_Dims_create(world_size(), 2, dims);
  if (dims[0] > size || dims[1] > size) refuse("jacobi: a grid of %d points a side is too small for %d x %d processes", size, dims[0], dims[1]);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &b.grid);
  MPI_Cart_coords(b.grid, world_rank(), 2, coords);
  MPI_Cart_shift(b.grid, 0, 1, &b.neighbour[UP], &b.neighbour[DOWN]);
  MPI_Cart_shift(b.grid, 1, 1, &b.neighbour[LEFT], &b.neighbour[RIGHT]);
  b.first_row = first_of(size, coords[0], dims[0]);
  b.first_column = first_of(size, coords[1], dims[1]);
  b.rows = first_of(size, coords[0] + 1, dims[0]) - b.first_row;
  b.columns = first_of(size, coords[1] + 1, dims[1]) - b.first_column;
  const size_t points = (size_t)(b.rows + 2) * (size_t)(b.columns + 2);
  b.now = memory(points, sizeof(double));
  b.next = memory(points, sizeof(double));
  b.source = memory(points, sizeof(double));
  const double h = 1.0 / (size + 1);
  for (int i = 1; i <= b.rows; i++)
    for (int j = 1; j <= b.columns; j++) b.source[at(&b, i, j)] = h * h * eigenvector(&b, i, j);
  MPI_Type_vector(b.rows, 1, b.columns + 2, MPI_DOUBLE, &b.column);
  MPI_Type_commit(&b.column);
  if (world_rank() == 0) printf("# %d x %d points on %d x %d processes\n", size, size, dims[0], dims[1]);
  return b;
}

static void release(Block* b) {
  MPI_Type_free(&b->column);
  MPI_Comm_free(&b->grid);
  free(b->source);
  free(b->next);
  free(b->now);
}

/* A message's tag is the side of the sender's block that it leaves by. At the edge of the grid the neighbour is MPI_PROC_NULL. */
static void exchange_border(Block* b) {
  MPI_Request requests[2 * SIDES];
  MPI_Status statuses[2 * SIDES]; /* gcc 12 takes MPICH's MPI_STATUSES_IGNORE for an array that is too short */
  double* u = b->now;
  const int bottom = b->rows;
  const int right = b->columns;
  MPI_Irecv(&u[at(b, 0, 1)], b->columns, MPI_DOUBLE, b->neighbour[UP], DOWN, b->grid, &requests[0]);
  MPI_Irecv(&u[at(b, bottom + 1, 1)], b->columns, MPI_DOUBLE, b->neighbour[DOWN], UP, b->grid, &requests[1]);
  MPI_Irecv(&u[at(b, 1, 0)], 1, b->column, b->neighbour[LEFT], RIGHT, b->grid, &requests[2]);
  MPI_Irecv(&u[at(b, 1, right + 1)], 1, b->column, b->neighbour[RIGHT], LEFT, b->grid, &requests[3]);
  MPI_Isend(&u[at(b, 1, 1)], b->columns, MPI_DOUBLE, b->neighbour[UP], UP, b->grid, &requests[4]);
  MPI_Isend(&u[at(b, bottom, 1)], b->columns, MPI_DOUBLE, b->neighbour[DOWN], DOWN, b->grid, &requests[5]);
  MPI_Isend(&u[at(b, 1, 1)], 1, b->column, b->neighbour[LEFT], LEFT, b->grid, &requests[6]);
  MPI_Isend(&u[at(b, 1, right)], 1, b->column, b->neighbour[RIGHT], RIGHT, b->grid, &requests[7]);
  MPI_Waitall(2 * SIDES, requests, statuses);
}

/* One sweep; the largest change of a point, a quarter of its residual times h^2. */
static double sweep(Block* b) {
  exchange_border(b);
  double change = 0;
  for (int i = 1; i <= b->rows; i++) {
    for (int j = 1; j <= b->columns; j++) {
      const size_t here = at(b, i, j);
      const size_t row = (size_t)(b->columns + 2);
      b->next[here] = 0.25 * (b->now[here - row] + b->now[here + row] + b->now[here - 1] + b->now[here + 1] + b->source[here]);
      change = fmax(change, fabs(b->next[here] - b->now[here]));
    }
  }
  double* done = b->next;
  b->next = b->now;
  b->now = done;
  return change;
}

/* Points that differ from the known result by more than rounding explains. */
static long compared(const Block* b, int sweeps) {
  const double h = 1.0 / (b->size + 1);
  const double c = cos(acos(-1.0) * h);
  const double amplitude = h * h / 4 * (1 - pow(c, sweeps)) / (1 - c);
  long wrong = 0;
  for (int i = 1; i <= b->rows; i++)
    for (int j = 1; j <= b->columns; j++) wrong += !(fabs(b->now[at(b, i, j)] - amplitude * eigenvector(b, i, j)) <= 1e-10 * amplitude);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double size = 400;
  double sweeps = 200;
  double every = 50;
  const Option options[] = {
      {"size", &size, 1, 30000, NULL, "inner grid points a side"},
      {"sweeps", &sweeps, 1, 1e6, NULL, "sweeps over the grid"},
      {"every", &every, 1, 1e6, NULL, "sweeps between two residuals"},
  };
  read_options(argc, argv, options, 3, "jacobi: Poisson's equation on a square, blocks with exchanged borders");
  Block b = block_of((int)size);
  const double h = 1.0 / ((int)size + 1);

  if (world_rank() == 0) printf("%10s %14s %16s\n", "sweeps", "residual", "time_us_a_sweep");
  for (int done = 0; done < (int)sweeps;) {
    const int more = (int)fmin(every, sweeps - done);
    double change = 0;
    MPI_Pcontrol(done);
    const double start = MPI_Wtime();
    for (int k = 0; k < more; k++) change = sweep(&b);
    double residual = 0;
    MPI_Allreduce(&change, &residual, 1, MPI_DOUBLE, MPI_MAX, b.grid);
    const double took = MPI_Wtime() - start;
    MPI_Pcontrol(-more);
    done += more;
    if (world_rank() == 0) printf("%10d %14.6e %16.3f\n", done, 4 * residual / (h * h), took / more * 1e6);
  }
  const long wrong = compared(&b, (int)sweeps);
  release(&b);
  return finish("grid", wrong);
}
