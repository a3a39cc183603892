#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Stands between the switch and libc: a thread that looks into a socket and is held up in the kernel, between finding what is
   under the number and reading of it, for as long as others need to put something else there. */

static void* next_of(const char* name) { return dlsym(RTLD_NEXT, name); }

ssize_t recv(int number, void* to, size_t bytes, int flags) {
  ssize_t (*const next)(int, void*, size_t, int) =
      (ssize_t(*)(int, void*, size_t, int))next_of("recv");
  int (*const duplicate)(int, int, ...) = (int (*)(int, int, ...))next_of("fcntl64");
  int (*const close_it)(int) = (int (*)(int))next_of("close");
  const struct timespec held_up = {0, 300000000};
  int held;
  ssize_t got;
  if (flags != MSG_PEEK || number > 100) return next(number, to, bytes, flags);
  held = duplicate(number, F_DUPFD_CLOEXEC, 200);
  nanosleep(&held_up, NULL);
  got = next(held, to, bytes, flags);
  close_it(held);
  return got;
}
