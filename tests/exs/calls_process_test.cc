#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/exs/pair.h"

// Calls of libc on numbers of the library in children and under signals.

namespace esdp::exs {
namespace {

class CallsProcessTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  void ExpectThatItMovesBytes() {
    char byte = 0;
    EXPECT_EQ(1, write(client_, "x", 1));
    EXPECT_EQ(1, read(server_, &byte, 1));
  }
};

int Differs(int expected, ssize_t answer) { return answer == -1 && errno == expected ? 0 : 1; }

TEST_F(CallsProcessTest, AChildHasNoUseOfANumberAndItsCloseLeavesTheParentsAlone) {
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    int wrong = 0;
    for (int again = 0; again < 2; ++again) {
      wrong += Differs(EBADF, read(server_, &byte, 1)) + Differs(EBADF, write(client_, &byte, 1));
      wrong += Differs(EBADF, shutdown(client_, SHUT_WR));
      if (exs_init(EXS_VERSION1) != EXS_VERSION1) ++wrong;
    }
    wrong += close(client_) == 0 && close(server_) == 0 ? 0 : 1;
    const int own = exs_socket(AF_INET, SOCK_STREAM, 0);  // has one of these numbers
    wrong += Differs(EPIPE, send(own, &byte, 1, MSG_NOSIGNAL)) + (close(own) == 0 ? 0 : 1);
    _exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  ExpectThatItMovesBytes();
}

TEST_F(CallsProcessTest, AChildThatSharesTheMemoryClosesItsOwnNumbersAlone) {
  const pid_t child = vfork();
  if (child == 0) {
    close(client_);
    close(server_);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  ExpectThatItMovesBytes();
}

TEST_F(CallsProcessTest, APeerThatWasKilledIsAReset) {
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 1, 0, queue_, nullptr));
  const pid_t child = fork();
  if (child == 0) {
    if (exs_init(EXS_VERSION1) < 0) _exit(1);
    const int fd = exs_socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in to = Loopback(port_);
    if (connect(fd, AsSockaddr(to), sizeof(to)) != 0) _exit(2);
    for (;;) pause();
  }
  const exs_event_t event = Next();
  ASSERT_EQ(0, event.exs_evt_errno);
  const int fd = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
  ASSERT_EQ(0, kill(child, SIGKILL));
  char byte = 0;
  EXPECT_ERRNO(ECONNRESET, read(fd, &byte, 1));
  EXPECT_EQ(0, close(fd));
  waitpid(child, nullptr, 0);
}

TEST_F(CallsProcessTest, WhatWasSentBeforeExitArrives) {
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 1, 0, queue_, nullptr));
  const pid_t child = fork();
  if (child == 0) {
    if (exs_init(EXS_VERSION1) < 0) _exit(1);
    const int fd = exs_socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in to = Loopback(port_);
    if (connect(fd, AsSockaddr(to), sizeof(to)) != 0) _exit(2);
    const std::vector<uint8_t> bytes = Pattern(200 * 1000);
    exit(write(fd, bytes.data(), bytes.size()) == 200 * 1000 ? 0 : 3);
  }
  const exs_event_t event = Next();
  ASSERT_EQ(0, event.exs_evt_errno);
  const int fd = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
  std::vector<uint8_t> got(200 * 1000);
  EXPECT_EQ(200 * 1000, recv(fd, got.data(), got.size(), MSG_WAITALL));
  EXPECT_EQ(Pattern(200 * 1000), got);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
  EXPECT_EQ(0, close(fd));
}

// --- signals -------------------------------------------------------------------------------------

std::atomic<int> handled{0};
void Handle(int) { ++handled; }

class CallsSignalTest : public CallsProcessTest {
 protected:
  // Once, soon.
  static void Alarm(int flags) {
    struct sigaction action {};
    action.sa_handler = Handle;
    action.sa_flags = flags;
    ASSERT_EQ(0, sigaction(SIGALRM, &action, nullptr));
    handled = 0;
    const itimerval once{{0, 0}, {0, 30 * 1000}};
    ASSERT_EQ(0, setitimer(ITIMER_REAL, &once, nullptr));
  }
  std::thread SayLater() {
    return std::thread([this] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      usleep(100 * 1000);
      EXPECT_EQ(1, write(client_, "x", 1));
    });
  }
};

TEST_F(CallsSignalTest, ASignalEndsAReceiveUnlessItsHandlerRestarts) {
  char byte = 0;
  ASSERT_NO_FATAL_FAILURE(Alarm(0));
  EXPECT_ERRNO(EINTR, read(server_, &byte, 1));
  EXPECT_EQ(1, handled);
  std::thread later = SayLater();
  ASSERT_NO_FATAL_FAILURE(Alarm(SA_RESTART));
  EXPECT_EQ(1, read(server_, &byte, 1));
  EXPECT_EQ(1, handled);
  later.join();
}

TEST_F(CallsSignalTest, WithATimeItEndsInAnyCaseAndLosesNoByte) {
  char bytes[4] = {};
  const timeval bound{20, 0};
  ASSERT_EQ(0, setsockopt(server_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound)));
  ASSERT_NO_FATAL_FAILURE(Alarm(SA_RESTART));
  EXPECT_ERRNO(EINTR, read(server_, bytes, 1));
  ASSERT_EQ(2, write(client_, "ab", 2));
  ASSERT_NO_FATAL_FAILURE(Alarm(0));
  EXPECT_EQ(2, recv(server_, bytes, 4, MSG_WAITALL)) << "what had come";
  ASSERT_EQ(2, write(client_, "cd", 2));
  EXPECT_EQ(2, recv(server_, bytes + 2, 2, MSG_WAITALL));
  EXPECT_EQ("abcd", std::string(bytes, 4));
}

TEST_F(CallsSignalTest, ASignalEndsASendThatWaitsForRoom) {
  const std::vector<uint8_t> bytes = Pattern(4 * 1000 * 1000);
  ASSERT_NO_FATAL_FAILURE(Alarm(0));
  const ssize_t sent = send(client_, bytes.data(), bytes.size(), 0);
  EXPECT_GT(sent, 0) << "some were taken";
  EXPECT_LT(sent, 4 * 1000 * 1000);
  ASSERT_NO_FATAL_FAILURE(Alarm(0));
  ssize_t more = 0;
  while ((more = send(client_, bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0) continue;
  EXPECT_EQ(EAGAIN, errno);
  EXPECT_ERRNO(EINTR, send(client_, bytes.data(), 1, 0));
}

}  // namespace
}  // namespace esdp::exs
