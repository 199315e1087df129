/* A time of day that a test sets, for a process that is started with this before its libraries (LD_PRELOAD).
   The file that SHIFTED_CLOCK names holds the nanoseconds by which it is ahead: a signed number of 64 bits. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile long long *ahead;

__attribute__((constructor)) static void begin(void) {
  int file = open(getenv("SHIFTED_CLOCK"), O_RDONLY);
  void *map = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED)
    abort();
  ahead = map;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    long long set = now->tv_sec * SECOND + now->tv_nsec + *ahead;
    now->tv_sec = set / SECOND;
    now->tv_nsec = set % SECOND;
  }
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec precise;
  int failed = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return failed;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out)
    *out = now.tv_sec;
  return now.tv_sec;
}
