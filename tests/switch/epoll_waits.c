// Waits with epoll for a connection that goes through the switch, and tells of each kind whether it ended as the system's
// own would have.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int near_end, far_end, set;

static void must(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: errno %d\n", what, errno);
  exit(1);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_for(long microseconds) {
  const struct timespec time = {0, microseconds * 1000};
  nanosleep(&time, NULL);
}

static void connect_to_self(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof(address);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  must(bind(listener, (struct sockaddr*)&address, bytes) == 0 && listen(listener, 1) == 0, "listen");
  getsockname(listener, (struct sockaddr*)&address, &bytes);
  far_end = socket(AF_INET, SOCK_STREAM, 0);
  must(connect(far_end, (struct sockaddr*)&address, bytes) == 0, "connect");
  near_end = accept(listener, NULL, NULL);
  close(listener);
  set = epoll_create1(0);
  struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = 7};
  must(epoll_ctl(set, EPOLL_CTL_ADD, near_end, &wanted) == 0, "epoll_ctl");
}

static void exchange(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    char byte = (char)i, there = 0;
    struct epoll_event event = {0};
    must(send(far_end, &byte, 1, 0) == 1, "send");
    errno = 77;
    must(epoll_wait(set, &event, 1, 20000) == 1 && event.events == EPOLLIN && event.data.u64 == 7, "epoll_wait");
    must(errno == 77, "errno of a wait that has not failed");
    must(recv(near_end, &there, 1, 0) == 1 && there == byte, "recv");
  }
  printf("exchanged %d\n", rounds);
}

static void time_out(void) {
  struct epoll_event event;
  for (int i = 0; i < 5; ++i) {
    const double begin = seconds();
    must(epoll_wait(set, &event, 1, 20) == 0, "a wait with a timeout");
    const double waited = seconds() - begin;
    must(waited >= 0.02 && waited < 5, "its time");
  }
  must(epoll_wait(set, &event, 1, 0) == 0, "a look");
  puts("timed out");
}

static volatile sig_atomic_t handled;
static void handle(int number) { handled += number == SIGALRM; }

static void mask_alarm(int how) {
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(how, &alarm, NULL);
}

static void interrupt(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct epoll_event event;
  for (int i = 0; i < 10; ++i) {
    const struct itimerval soon = {.it_value.tv_usec = 20000};
    setitimer(ITIMER_REAL, &soon, NULL);
    must(epoll_wait(set, &event, 1, i % 2 == 0 ? -1 : 20000) == -1 && errno == EINTR, "an interrupted wait");
  }
  sigset_t none, now;
  sigemptyset(&none);
  mask_alarm(SIG_BLOCK);
  raise(SIGALRM);
  must(epoll_wait(set, &event, 1, 20) == 0, "a wait with the signal blocked");
  must(epoll_pwait(set, &event, 1, 20000, &none) == -1 && errno == EINTR, "epoll_pwait");
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  must(sigismember(&now, SIGALRM) == 1 && sigismember(&now, SIGTERM) == 0, "the mask");
  mask_alarm(SIG_UNBLOCK);
  printf("interrupted %d\n", (int)handled);
}

static void refuse(void) {
  struct epoll_event event;
  must(epoll_wait(set, &event, 0, 10) == -1 && errno == EINVAL, "room for none");
  must(epoll_wait(near_end, &event, 1, 10) == -1 && errno == EINVAL, "no set");
  must(epoll_wait(999, &event, 1, 10) == -1 && errno == EBADF, "no descriptor");
  puts("refused");
}

static void count(void* cancelled) { ++*(int*)cancelled; }

static volatile int waits;
static void* wait_for_ever(void* cancelled) {
  struct epoll_event event;
  pthread_cleanup_push(count, cancelled);
  for (waits = 1;;) epoll_wait(set, &event, 1, -1);
  pthread_cleanup_pop(0);
}

// Wherever in its wait the thread is, it ends.
static void cancel(void) {
  int cancelled = 0;
  for (int i = 0; i < 400; ++i) {
    pthread_t thread;
    waits = 0;
    must(pthread_create(&thread, NULL, wait_for_ever, &cancelled) == 0, "a thread");
    while (waits == 0) sched_yield();
    if (i % 2 != 0) sleep_for(i);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
  }
  printf("cancelled %d\n", cancelled);
}

// All in one thread that is not the first one: others then have its place.
static void* run(void* argument) {
  mask_alarm(SIG_UNBLOCK);
  connect_to_self();
  exchange(100);
  time_out();
  exchange(100);
  interrupt();
  refuse();
  exchange(100);
  return argument;
}

int main(void) {
  pthread_t thread;
  mask_alarm(SIG_BLOCK);  // the thread is to have it
  must(pthread_create(&thread, NULL, run, NULL) == 0, "a thread");
  pthread_join(thread, NULL);
  cancel();
  return 0;
}
