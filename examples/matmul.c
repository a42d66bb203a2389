/* C = A B by SUMMA (van de Geijn and Watts 1997): the processes form a grid and each has a block of A, B and C. For every panel of columns
 * of A and rows of B, the owners of the panel of A broadcast it along their rows, the owners of the panel of B along their columns, and
 * all add the product of the two.
 *
 *   mpicc -O2 matmul.c -lm -o matmul && mpirun -np 4 ./matmul [--size N] [--panel N] [--reps N]
 *
 * --size N   rows and columns of the matrices (default 320)
 * --panel N  largest width of a panel (default 32)
 * --reps N   repetitions (default 3)
 *
 * The elements are integers from -4 to 4 that follow from their place, so that the product is exact. It is checked by Freivalds' method:
 * C x = A (B x) for a vector x of ones and minus ones, each process with its own block, to which all of A and B are known.
 *
 * Section N of MPI_Pcontrol is the product of matrices of N rows; its parts are single products.
 */
#include "example.h"

enum { A = 1, B = 2, X = 3 };

static double element(int matrix, int i, int j) { return (double)(mixed((uint64_t)matrix, (uint64_t)i << 32 | (uint64_t)j) % 9) - 4; }

static double sign(int j) { return mixed(X, (uint64_t)j) & 1 ? 1 : -1; }

/* The first of n that belongs to part k of p; the parts differ by one at most. */
static int first_of(int n, int k, int p) { return (int)((long)n * k / p); }

static int part_of(int n, int i, int p) {
  int k = 0;
  while (first_of(n, k + 1, p) <= i) k++;
  return k;
}

typedef struct {
  int n, rows, columns; /* of the matrices, of the grid */
  int row, column;      /* of this process in the grid */
  int top, left, height, width;
  MPI_Comm along_row, along_column;
} Grid;

static Grid grid_of(int n) {
  Grid g = {0};
  int dims[2] = {0, 0};
  MPI_Dims_create(world_size(), 2, dims);
  if (dims[0] > n) refuse("matmul: matrices of %d rows are too small for %d x %d processes", n, dims[0], dims[1]);
  g.n = n;
  g.rows = dims[0];
  g.columns = dims[1];
  g.row = world_rank() / g.columns;
  g.column = world_rank() % g.columns;
  MPI_Comm_split(MPI_COMM_WORLD, g.row, g.column, &g.along_row);
  MPI_Comm_split(MPI_COMM_WORLD, g.column, g.row, &g.along_column);
  g.top = first_of(n, g.row, g.rows);
  g.left = first_of(n, g.column, g.columns);
  g.height = first_of(n, g.row + 1, g.rows) - g.top;
  g.width = first_of(n, g.column + 1, g.columns) - g.left;
  return g;
}

static int least(int a, int b) { return a < b ? a : b; }

/* c += a b, of which b's rows are together in memory. */
static void multiply_add(double* c, const double* a, const double* b, int height, int inner, int width) {
  for (int i = 0; i < height; i++)
    for (int k = 0; k < inner; k++) {
      const double factor = a[(size_t)i * (size_t)inner + (size_t)k];
      for (int j = 0; j < width; j++) c[(size_t)i * (size_t)width + (size_t)j] += factor * b[(size_t)k * (size_t)width + (size_t)j];
    }
}

static void summa(const Grid* g, const double* a, const double* b, double* c, double* a_panel, double* b_panel, int panel) {
  memset(c, 0, sizeof(double) * (size_t)g->height * (size_t)g->width);
  for (int k = 0; k < g->n;) {
    const int owner_column = part_of(g->n, k, g->columns);
    const int owner_row = part_of(g->n, k, g->rows);
    /* A panel ends where its owner's block of A or of B does. */
    const int a_end = first_of(g->n, owner_column + 1, g->columns);
    const int b_end = first_of(g->n, owner_row + 1, g->rows);
    const int inner = least(panel, least(a_end, b_end) - k);
    if (g->column == owner_column)
      for (int i = 0; i < g->height; i++)
        memcpy(a_panel + (size_t)i * (size_t)inner, a + (size_t)i * (size_t)g->width + (size_t)(k - g->left), sizeof(double) * (size_t)inner);
    if (g->row == owner_row) memcpy(b_panel, b + (size_t)(k - g->top) * (size_t)g->width, sizeof(double) * (size_t)inner * (size_t)g->width);
    MPI_Bcast(a_panel, g->height * inner, MPI_DOUBLE, owner_column, g->along_row);
    MPI_Bcast(b_panel, inner * g->width, MPI_DOUBLE, owner_row, g->along_column);
    multiply_add(c, a_panel, b_panel, g->height, inner, g->width);
    k += inner;
  }
}

/* Rows of this process's block in which C x is not A (B x), x being 0 outside of the block's columns. */
static long checked(const Grid* g, const double* c) {
  double* bx = memory((size_t)g->n, sizeof(double));
  for (int k = 0; k < g->n; k++)
    for (int j = g->left; j < g->left + g->width; j++) bx[k] += element(B, k, j) * sign(j);
  long wrong = 0;
  for (int i = 0; i < g->height; i++) {
    double want = 0;
    double have = 0;
    for (int k = 0; k < g->n; k++) want += element(A, g->top + i, k) * bx[k];
    for (int j = 0; j < g->width; j++) have += c[(size_t)i * (size_t)g->width + (size_t)j] * sign(g->left + j);
    wrong += want != have;
  }
  free(bx);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double size = 320;
  double panel = 32;
  double reps = 3;
  const Option options[] = {
      {"size", &size, 1, 20000, NULL, "rows and columns of the matrices"},
      {"panel", &panel, 1, 20000, NULL, "largest width of a panel"},
      {"reps", &reps, 1, 1e6, NULL, "repetitions"},
  };
  read_options(argc, argv, options, 3, "matmul: a matrix product over row and column communicators");
  Grid g = grid_of((int)size);

  const size_t block = (size_t)g.height * (size_t)g.width;
  double* a = memory(block, sizeof(double));
  double* b = memory(block, sizeof(double));
  double* c = memory(block, sizeof(double));
  double* a_panel = memory((size_t)g.height * (size_t)panel, sizeof(double));
  double* b_panel = memory((size_t)g.width * (size_t)panel, sizeof(double));
  for (int i = 0; i < g.height; i++)
    for (int j = 0; j < g.width; j++) {
      a[(size_t)i * (size_t)g.width + (size_t)j] = element(A, g.top + i, g.left + j);
      b[(size_t)i * (size_t)g.width + (size_t)j] = element(B, g.top + i, g.left + j);
    }

  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Pcontrol(g.n);
  const double start = MPI_Wtime();
  for (int k = 0; k < (int)reps; k++) summa(&g, a, b, c, a_panel, b_panel, (int)panel);
  const double took = MPI_Wtime() - start;
  MPI_Pcontrol(-(int)reps);

  const double each = slowest(took) / reps;
  if (world_rank() == 0) {
    printf("%10s %12s %12s %14s %14s\n", "rows", "processes", "repetitions", "time_us", "Mflop_per_s");
    printf("%10d %9dx%-2d %12d %14.3f %14.3f\n", g.n, g.rows, g.columns, (int)reps, each * 1e6, each > 0 ? 2.0 * g.n * g.n * g.n / each / 1e6 : 0);
  }
  const long wrong = checked(&g, c);
  free(b_panel);
  free(a_panel);
  free(c);
  free(b);
  free(a);
  MPI_Comm_free(&g.along_column);
  MPI_Comm_free(&g.along_row);
  return finish("product", wrong);
}
