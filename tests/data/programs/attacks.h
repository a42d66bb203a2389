// What the attacks of tests/test_box_attacks.py share. Each is a function; those on recordings run in the recorder's folder, where they leave
// what is to be assembled. The others print LEAK where they succeed.
#pragma once
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
extern const char* server;
extern int port;
extern struct known {
  const char* name;
  void (*run)(void);
} known[128];
extern int count;
#define LEAK(...) (printf("LEAK " __VA_ARGS__), printf("\n"), fflush(stdout))
#define TRY(what, call)                          \
  do {                                           \
    errno = 0;                                   \
    if ((long)(call) != -1)                      \
      LEAK(what);                                \
    else                                         \
      printf("%s: %s\n", what, strerror(errno)); \
  } while (0)
static void put(const char* name, const char* text) {
  FILE* f = fopen(name, "wb");
  if (f) {
    fputs(text, f);
    fclose(f);
  }
}
static void add(const char* name, const char* text) {
  FILE* f = fopen(name, "ab");
  if (f) {
    fputs(text, f);
    fclose(f);
  }
}
static void state(const char* name, uint64_t rank, uint64_t ranks, uint64_t written, uint64_t phase, const char* inside) {
  uint64_t n[14] = {rank, ranks, written, 3, 3, phase};
  char in[64] = "";
  strncpy(in, inside, 63);
  FILE* f = fopen(name, "wb");
  if (!f) return;
  fwrite("RETROREC", 1, 8, f);
  fwrite(n, 8, 14, f);
  fwrite(in, 1, 64, f);
  fclose(f);
}
/* A right recording of two ranks, in the working folder; `line` comes into rank 0. */
static void right(const char* line) {
  for (int r = 0; r < 2; r++) {
    char name[64];
    FILE* f;
    long n;
    snprintf(name, sizeof name, "rank-%d.txt", r);
    f = fopen(name, "wb");
    fprintf(f, "# retrompi record 1: rank %d of 2\n%d init\n%s%d finalize\n", r, r, r ? "" : line, r);
    n = ftell(f);
    fclose(f);
    snprintf(name, sizeof name, "rank-%d.state", r);
    state(name, r, 2, n, 2, "");
  }
}
static void* held(size_t n) {
  char* p = malloc(n);
  if (p) memset(p, 1, n);
  return p;
}
static void daemonized(void) {
  if (fork()) {
    usleep(200000);
    exit(0);
  }
  setsid();
  if (fork()) exit(0);
  signal(SIGHUP, SIG_IGN);
}
static int sum(const unsigned char* b, int n) {
  int s = 0;
  while (n--) s += *b++;
  return s;
}
/* What the box's last program writes to: of the parent's pipes the one that is not ours. -1 where it cannot be opened. */
static int stream(int flags) {
  char mine[64] = "", to[64], path[64];
  if (readlink("/proc/self/fd/1", mine, 63) < 0) return -1;
  for (int f = 0; f < 32; f++) {
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getppid(), f);
    memset(to, 0, sizeof to);
    if (readlink(path, to, 63) < 0 || strncmp(to, "pipe:", 5) || strcmp(to, mine) == 0) continue;
    const int found = open(path, O_WRONLY | flags);
    if (found >= 0) return found;
  }
  return -1;
}
/* A forged archive of one file there. */
static void forged(const char* name, char type, unsigned long size) {
  unsigned char h[2048] = {0};
  strncpy((char*)h, name, 99);
  memcpy(h + 100, "0000644\0000000000\0000000000", 23);
  sprintf((char*)h + 124, "%011lo", size);
  memcpy(h + 136, "00000000000", 11);
  memset(h + 148, ' ', 8);
  h[156] = (unsigned char)type;
  memcpy(h + 257, "ustar\00000", 8);
  sprintf((char*)h + 148, "%06o", sum(h, 512));
  h[155] = ' ';
  memcpy(h + 512, "forged", 6);
  int f = stream(0);
  if (f < 0) {
    puts("no stream");
    return;
  }
  if (write(f, h, sizeof h) < 0) puts("no writing");
}

#define ATTACK(attack)                                           \
  static void do_##attack(void);                                 \
  __attribute__((constructor)) static void know_##attack(void) { \
    known[count].name = #attack;                                 \
    known[count++].run = do_##attack;                            \
  }                                                              \
  static void do_##attack(void)
