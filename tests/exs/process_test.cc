#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "impl/exs/environment.h"
#include "tests/exs/pair.h"

// What the process does that forks, ends, or has not begun.

namespace {
bool forked = false;
}  // namespace

// To a child what only a thread of its parent held looks like a leak.
extern "C" int __lsan_is_turned_off() { return forked ? 1 : 0; }

namespace esdp::exs {
namespace {

// Runs it in a child, and tells what it answered.
template <typename Body>
int InChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// 0 where a call fails with that errno.
int Differs(int expected, int answer) { return answer == -1 && errno == expected ? 0 : 1; }

TEST(BeforeInitTest, EveryCallAnswersEnxio) {
  EXPECT_ERRNO(ENXIO, exs_qcreate(1));
  EXPECT_ERRNO(ENXIO, exs_socket(AF_INET, SOCK_STREAM, 0));
  uint8_t byte = 0;
  EXPECT_ERRNO(ENXIO, exs_mregister(&byte, 1, 0));
  EXPECT_ERRNO(ENXIO, exs_qdequeue(3, nullptr, 1, nullptr));
}

TEST(BeforeInitTest, AnotherVersionOrAnUnknownFabricIsRefused) {
  EXPECT_ERRNO(EINVAL, exs_init(0));
  EXPECT_ERRNO(EINVAL, exs_init(EXS_VERSION1 + 1));
  EXPECT_ERRNO(ENODEV, exsx_init(EXS_VERSION1, "bogus"));
  setenv("EXS_FABRIC", "bogus", 1);
  EXPECT_ERRNO(ENODEV, exs_init(EXS_VERSION1));
  setenv("EXS_FABRIC", "qpip", 1);
}

TEST(BeforeInitTest, TheLimitOfWhatIsRegisteredForTransfersIsThatOfTheEnvironment) {
  EXPECT_EQ(UINT64_MAX, PinLimitOfEnvironment());
  setenv("EXS_PIN_MAX", "1048576", 1);
  EXPECT_EQ(1048576u, PinLimitOfEnvironment());
  for (const char* wrong : {"", "-1", "1x", "99999999999999999999999"}) {
    setenv("EXS_PIN_MAX", wrong, 1);
    EXPECT_EQ(UINT64_MAX, PinLimitOfEnvironment()) << wrong;
  }
  unsetenv("EXS_PIN_MAX");
}

using ProcessTest = ExsTest;

TEST_F(ProcessTest, InitAnswersTheVersionEachTime) {
  EXPECT_EQ(EXS_VERSION1, exs_init(EXS_VERSION1));
  EXPECT_EQ(EXS_VERSION, exsx_init(EXS_VERSION1, nullptr));
  EXPECT_ERRNO(EBUSY, exsx_init(EXS_VERSION1, "verbs"));
}

TEST_F(ProcessTest, AChildIsRefusedUntilItsOwnInitAndThenHasNoneOfTheHandles) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  uint8_t byte = 7;
  const exs_mhandle_t memory = exs_mregister(&byte, 1, 0);
  EXPECT_EQ(0, InChild([&] {
              int wrong = Differs(EPERM, exs_send(client_, &byte, 1, 0, queue_, nullptr, memory));
              wrong += Differs(EPERM, exs_qdequeue(queue_, nullptr, 1, nullptr));
              wrong += exs_init(EXS_VERSION1) == EXS_VERSION1 ? 0 : 1;
              wrong += Differs(EBADF, exs_send(client_, &byte, 1, 0, queue_, nullptr, memory));
              wrong += Differs(EBADF, exs_qdequeue(queue_, nullptr, 1, nullptr));
              wrong += Differs(EBADF, exs_mderegister(memory));
              wrong += Differs(EBADF, exs_close(server_, 0, EXS_QHANDLE_INVALID, nullptr));
              const int own = exs_qcreate(1);
              wrong += own >= 0 && exs_qdelete(own) == 0 ? 0 : 1;
              return wrong;
            }));
  ASSERT_NO_FATAL_FAILURE(Send(client_, &byte, 1));  // the parent's go on
  EXPECT_EQ(1u, Receive(server_, &byte, 1));
  EXPECT_EQ(0, exs_mderegister(memory));
}

// A child that talks to a listener of this process, and ends with what it has posted still out.
class EndTest : public ExsTest {
 protected:
  template <typename Body>
  void RunChild(const Body& body) {
    ASSERT_NO_FATAL_FAILURE(Listen());
    ASSERT_EQ(0, exs_accept(listener_, nullptr, 1, 0, queue_, nullptr));
    child_ = fork();
    if (child_ == 0) {
      forked = true;
      if (exs_init(EXS_VERSION1) < 0) _exit(1);
      const exs_qhandle_t queue = exs_qcreate(64);
      const int fd = exs_socket(AF_INET, SOCK_STREAM, 0);
      const sockaddr_in to = Loopback(port_);
      exs_event_t event;
      exs_connect(fd, AsSockaddr(to), sizeof(to), 0, queue, nullptr);
      if (exs_qdequeue(queue, &event, 1, nullptr) != 1 || event.exs_evt_errno != 0) _exit(2);
      body(fd, queue);
      _exit(3);
    }
    const exs_event_t accepted = Next();
    ASSERT_EQ(0, accepted.exs_evt_errno);
    server_ = accepted.exs_evt_union.exs_evt_accept.exs_evt_newfd;
  }
  int Wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  pid_t child_ = -1;
};

TEST_F(EndTest, ExitWithSendsOutEndsSoonAndThePeerSeesReset) {
  ASSERT_NO_FATAL_FAILURE(RunChild([](int fd, exs_qhandle_t queue) {
    static uint8_t bytes[1024 * 1024];
    const exs_mhandle_t memory = exs_mregister(bytes, sizeof(bytes), 0);
    for (int i = 0; i < 16; ++i) exs_send(fd, bytes, sizeof(bytes), 0, queue, nullptr, memory);
    exit(0);
  }));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(0, Wait());
  // A second is bound enough on a machine that is not busy; a close in order lingers for longer than this.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
  uint8_t byte = 0;
  while (exs_recv(server_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED) == 0) {
    const int error = Next().exs_evt_errno;
    ASSERT_EQ(error == 0 ? 0 : ECONNRESET, error);
  }
  EXPECT_EQ(ECONNRESET, errno);
}

TEST_F(EndTest, WhatWasPostedBeforeExitArrives) {
  ASSERT_NO_FATAL_FAILURE(RunChild([](int fd, exs_qhandle_t queue) {
    static uint8_t bytes[100000];
    bytes[99999] = 5;
    exs_send(fd, bytes, sizeof(bytes), 0, queue, nullptr, EXS_MHANDLE_UNREGISTERED);
    exit(0);
  }));
  std::vector<uint8_t> to(100000);
  EXPECT_EQ(to.size(), Receive(server_, to.data(), to.size()));
  EXPECT_EQ(5, to.back());
  EXPECT_EQ(0, Wait());
}

TEST_F(EndTest, WhatIsSentInPiecesArrivesToo) {
  ASSERT_NO_FATAL_FAILURE(RunChild([](int fd, exs_qhandle_t queue) {
    static uint8_t bytes[8 * 1000 * 1000];
    bytes[sizeof(bytes) - 1] = 5;
    exs_send(fd, bytes, sizeof(bytes), 0, queue, nullptr, EXS_MHANDLE_UNREGISTERED);
    exs_send(fd, bytes, sizeof(bytes), 0, queue, nullptr, EXS_MHANDLE_UNREGISTERED);
    exit(0);
  }));
  std::vector<uint8_t> to(2 * 8 * 1000 * 1000);
  EXPECT_EQ(to.size(), Receive(server_, to.data(), to.size()));
  EXPECT_EQ(5, to.back());
  EXPECT_EQ(0, Wait());
}

TEST_F(EndTest, ExitFromAHandlerOfASignalWorks) {
  ASSERT_NO_FATAL_FAILURE(RunChild([](int, exs_qhandle_t queue) {
    signal(SIGALRM, [](int) { exit(7); });
    const itimerval once{{0, 0}, {0, 50 * 1000}};
    setitimer(ITIMER_REAL, &once, nullptr);
    exs_event_t event;
    for (;;) exs_qdequeue(queue, &event, -1, nullptr);
  }));
  EXPECT_EQ(7, Wait());
}

TEST_F(EndTest, APeerThatIsKilledEndsEverySendWithAnEvent) {
  ASSERT_NO_FATAL_FAILURE(RunChild([](int, exs_qhandle_t) { pause(); }));
  const std::vector<uint8_t> bytes(1024 * 1024);
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(0, exs_send(server_, bytes.data(), bytes.size(), 0, queue_, nullptr,
                          EXS_MHANDLE_UNREGISTERED));
  }
  kill(child_, SIGKILL);
  exs_event_t events[16];
  timeval bound{20, 0};
  ASSERT_EQ(16, exs_qdequeue(queue_, events, -16, &bound));
  for (const exs_event_t& event : events) EXPECT_EQ(ECONNRESET, event.exs_evt_errno);
  EXPECT_EQ(-SIGKILL, Wait());
}

}  // namespace
}  // namespace esdp::exs
