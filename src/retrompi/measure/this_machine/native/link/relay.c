/* A link between two network namespaces where the kernel has no netem: relay A B RATE DELAY [QUEUE]
 *
 * Carries Ethernet frames between the TAP devices A and B, each direction at RATE bytes a second and DELAY nanoseconds after its last byte
 * was sent, one after the other; what does not fit into QUEUE bytes is dropped. Prints a line when the devices exist and ends with its
 * standard input. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { FRAME = 2048, PLACES = 16384, OVERHEAD = 24 }; /* preamble, checksum and gap of a frame */

typedef struct Frame {
  int64_t due;
  int length;
  char data[FRAME];
} Frame;

typedef struct Way {
  int from, to;
  int64_t free; /* until when the wire is busy with frames already sent */
  long held;
  unsigned head, tail;
  Frame* frames;
} Way;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int tap(const char* name) {
  struct ifreq request;
  memset(&request, 0, sizeof request);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0) {
    fprintf(stderr, "relay: %s: %s\n", name, strerror(errno));
    exit(2);
  }
  return fd;
}

static void take(Way* w, double rate, int64_t delay, long queue) {
  for (;;) {
    Frame* f = &w->frames[w->tail % PLACES];
    const int full = w->tail - w->head == PLACES || w->held > queue;
    char lost[FRAME];
    const ssize_t got = read(w->from, full ? lost : f->data, FRAME);
    if (got <= 0) return;
    if (full) continue;
    const int64_t t = now();
    const int64_t start = t > w->free ? t : w->free;
    w->free = start + (int64_t)((double)(got + OVERHEAD) / rate * 1e9);
    f->length = (int)got;
    f->due = w->free + delay;
    w->held += got;
    w->tail++;
  }
}

static int64_t give(Way* w) {
  while (w->head != w->tail) {
    Frame* f = &w->frames[w->head % PLACES];
    if (f->due > now()) return f->due;
    if (write(w->to, f->data, (size_t)f->length) < 0 && errno == EAGAIN) return now() + 10000;
    w->held -= f->length;
    w->head++;
  }
  return INT64_MAX;
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: relay A B RATE_BPS DELAY_NS [QUEUE_B]\n");
    return 2;
  }
  const int a = tap(argv[1]), b = tap(argv[2]);
  const double rate = atof(argv[3]);
  const int64_t delay = atoll(argv[4]);
  const long queue = argc > 5 ? atol(argv[5]) : 16L << 20;
  Way ways[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
  for (int i = 0; i < 2; i++) ways[i].frames = calloc(PLACES, sizeof *ways[i].frames);
  prctl(PR_SET_TIMERSLACK, 1UL);
  /* Higher priority than the ranks, which poll all the time: a frame must not wait for a quantum. */
  const struct sched_param first = {.sched_priority = 50};
  if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) perror("relay: no real-time priority");
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    struct pollfd fds[3] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    const int64_t x = give(&ways[0]), y = give(&ways[1]);
    const int64_t next = x < y ? x : y, left = next - now();
    struct timespec wait = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    if (left < 0) wait = (struct timespec){0};
    ppoll(fds, 3, next == INT64_MAX ? NULL : &wait, NULL);
    if (fds[2].revents != 0) return 0;
    take(&ways[0], rate, delay, queue);
    take(&ways[1], rate, delay, queue);
  }
}
