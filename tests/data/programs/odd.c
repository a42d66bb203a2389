/* One oddity a run, named by the first argument: bad ends, and calls that a recorder must get right. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size, value;

static volatile int waiting;

static void *receive(void *unused) {
  int token;
  waiting = 1;
  MPI_Recv(&token, 1, MPI_INT, 1 - rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return unused;
}

/* One thread receives what the other sends only after calls of its own: they are in MPI at once. */
static void threads(void) {
  pthread_t other;
  pthread_create(&other, NULL, receive, NULL);
  while (!waiting) usleep(1000);
  for (int i = 0; i < 100; i++) {
    int mine = i, yours;
    usleep(2000); /* for the other thread to get there */
    MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank, 78, &yours, 1, MPI_INT, 1 - rank, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Send(&value, 1, MPI_INT, 1 - rank, 77, MPI_COMM_WORLD);
  pthread_join(other, NULL);
}

static void cancel(void) {
  MPI_Request r[2];
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &r[0]);
  MPI_Irecv(&value, 1, MPI_INT, (rank + 1) % size, 98, MPI_COMM_WORLD, &r[1]);
  MPI_Send(&value, 1, MPI_INT, (rank + size - 1) % size, 98, MPI_COMM_WORLD);
  MPI_Cancel(&r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &r[0]);
  MPI_Cancel(&r[0]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &r[0]);
  MPI_Cancel(&r[0]);
  MPI_Request_free(&r[0]);
}

static void files(void) {
  MPI_File f;
  MPI_Request r;
  MPI_File_open(MPI_COMM_WORLD, "odd.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f);
  MPI_File_write_at_all(f, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_iwrite_at(f, rank * 4, &value, 1, MPI_INT, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_File_close(&f);
}

static void epochs(void) {
  double memory[8], local[8] = {0};
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Win win;
  MPI_Group all, origin, target;
  MPI_Request r;
  MPI_Win_create(memory, sizeof memory, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &left, &origin);
  MPI_Group_incl(all, 1, &right, &target);
  MPI_Win_post(origin, 0, win);
  MPI_Win_start(target, 0, win);
  MPI_Put(local, 8, MPI_DOUBLE, right, 0, 8, MPI_DOUBLE, win);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  MPI_Win_lock_all(0, win);
  MPI_Rput(local, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, win, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

static void matched_probes(void) {
  MPI_Message m;
  MPI_Status s;
  if (rank != 0) MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
  for (int i = 1; rank == 0 && i < size; i++) {
    MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &m, &s);
    MPI_Mrecv(&value, 1, MPI_INT, &m, &s);
  }
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int provided;
  if (strcmp(what, "threads") == 0)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "threads") == 0) threads();
  if (strcmp(what, "cancel") == 0) cancel();
  if (strcmp(what, "io") == 0) files();
  if (strcmp(what, "epochs") == 0) epochs();
  if (strcmp(what, "mprobe") == 0) matched_probes();
  if (strcmp(what, "hang") == 0) MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (strcmp(what, "sleep") == 0) {
    const struct timespec t = {0, 5000000};
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(20000);
    nanosleep(&t, NULL);
  }
  for (int i = 0; strcmp(what, "kill") == 0; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (i == 500 && rank == 1) kill(getpid(), SIGKILL);
  }
  if (strcmp(what, "segv") == 0 || strcmp(what, "abort") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && *what == 'a') MPI_Abort(MPI_COMM_WORLD, 7);
    if (rank == 1) raise(SIGSEGV);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return strcmp(what, "three") == 0 ? 3 : 0;
}
