#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "tests/exs/pair.h"

// Calls of libc on numbers of the library.

namespace esdp::exs {
namespace {

using Clock = std::chrono::steady_clock;

class CallsTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
    for (const int fd : {client_, server_}) SetTimeouts(fd, 20, 0);  // a hang fails
  }
  static void SetTimeouts(int fd, time_t seconds, suseconds_t microseconds) {
    const timeval bound{seconds, microseconds};
    ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound)));
    ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound)));
  }
  static ssize_t Say(int fd, std::string_view bytes) {
    return write(fd, bytes.data(), bytes.size());
  }
  static std::string Hear(int fd, size_t most = 100, int flags = 0) {
    std::string got(most, 0);
    const ssize_t bytes = recv(fd, got.data(), most, flags);
    EXPECT_GE(bytes, 0) << strerror(errno);
    got.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
    return got;
  }
  // `bytes` have come.
  static void Await(int fd, int bytes) {
    int there = 0;
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (there < bytes && Clock::now() < end) {
      ASSERT_EQ(0, ioctl(fd, FIONREAD, &there));
      usleep(500);
    }
    ASSERT_GE(there, bytes);
  }
  void CloseClient() {
    ASSERT_EQ(0, close(client_));
    client_ = -1;
  }
};

// --- reading and writing -------------------------------------------------------------------------

TEST_F(CallsTest, EachCallThatSendsIsHeardByEachThatReceives) {
  char text[] = "cd";
  iovec pieces[2] = {{text, 1}, {text + 1, 1}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  mmsghdr several[2] = {{message, 0}, {message, 0}};
  EXPECT_EQ(2, write(client_, "ab", 2));
  EXPECT_EQ(2, writev(client_, pieces, 2));
  EXPECT_EQ(2, send(client_, "ef", 2, 0));
  const sockaddr_in ignored = Loopback(1);
  EXPECT_EQ(2, sendto(client_, "gh", 2, 0, AsSockaddr(ignored), sizeof(ignored)));
  EXPECT_EQ(2, sendmsg(client_, &message, 0));
  EXPECT_EQ(2, sendmmsg(client_, several, 2, 0));
  EXPECT_EQ(2u, several[1].msg_len);
  ASSERT_NO_FATAL_FAILURE(Await(server_, 14));
  std::array<char, 14> got{};
  EXPECT_EQ(2, read(server_, &got[0], 2));
  iovec room[2] = {{&got[2], 1}, {&got[3], 1}};
  EXPECT_EQ(2, readv(server_, room, 2));
  EXPECT_EQ(2, recv(server_, &got[4], 2, 0));
  sockaddr_in from{};
  socklen_t len = sizeof(from);
  EXPECT_EQ(2, recvfrom(server_, &got[6], 2, 0, reinterpret_cast<sockaddr*>(&from), &len));
  EXPECT_EQ(0u, len) << "as TCP has it";
  room[0] = {&got[8], 1};
  room[1] = {&got[9], 1};
  char control[64];
  message.msg_iov = room;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  EXPECT_EQ(2, recvmsg(server_, &message, 0));
  EXPECT_EQ(0u, message.msg_controllen);
  iovec last[2] = {{&got[10], 2}, {&got[12], 2}};
  mmsghdr more[2] = {};
  for (int i = 0; i < 2; ++i) {
    more[i].msg_hdr.msg_iov = &last[i];
    more[i].msg_hdr.msg_iovlen = 1;
  }
  EXPECT_EQ(2, recvmmsg(server_, more, 2, 0, nullptr));
  EXPECT_EQ("abcdefghcdcdcd", std::string(got.data(), got.size()));
}

TEST_F(CallsTest, ManyMegabytesArriveInOrderThroughBlockingCalls) {
  const std::vector<uint8_t> sent = Pattern(8 * 1000 * 1000);
  std::thread sender([&] {
    EXPECT_EQ(static_cast<ssize_t>(sent.size()), send(client_, sent.data(), sent.size(), 0));
    EXPECT_EQ(0, shutdown(client_, SHUT_WR));
  });
  std::vector<uint8_t> got(sent.size());
  size_t have = 0;
  for (ssize_t bytes = 1; bytes > 0; have += static_cast<size_t>(std::max<ssize_t>(bytes, 0))) {
    bytes = read(server_, got.data() + have, std::min<size_t>(got.size() - have + 1, 77777));
    ASSERT_GE(bytes, 0) << strerror(errno);
  }
  sender.join();
  EXPECT_EQ(sent.size(), have);
  EXPECT_EQ(sent, got);
}

TEST_F(CallsTest, WithoutBytesACallThatMustNotWaitAnswersEagain) {
  char byte = 0;
  EXPECT_ERRNO(EAGAIN, recv(server_, &byte, 1, MSG_DONTWAIT));
  ASSERT_EQ(0, fcntl(server_, F_SETFL, O_NONBLOCK));
  EXPECT_ERRNO(EAGAIN, read(server_, &byte, 1));
  ASSERT_EQ(0, fcntl(server_, F_SETFL, 0));
  int on = 1;
  ASSERT_EQ(0, ioctl(server_, FIONBIO, &on));
  EXPECT_ERRNO(EAGAIN, read(server_, &byte, 1));
  EXPECT_EQ(1, Say(client_, "x"));
  ASSERT_NO_FATAL_FAILURE(Await(server_, 1));
  EXPECT_EQ("x", Hear(server_));
}

TEST_F(CallsTest, APeerThatReadsNothingMakesSendsThatMustNotWaitAnswerEagainUntilItReads) {
  const std::vector<uint8_t> bytes = Pattern(100 * 1000);
  size_t sent = 0;
  ssize_t more = 0;
  const auto end = Clock::now() + std::chrono::seconds(20);
  while ((more = send(client_, bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0) {
    sent += static_cast<size_t>(more);
    ASSERT_LT(Clock::now(), end);
    usleep(1000);
  }
  EXPECT_EQ(EAGAIN, errno);
  EXPECT_GE(sent, 256u * 1024);
  SetTimeouts(client_, 0, 50 * 1000);
  EXPECT_ERRNO(EAGAIN, send(client_, bytes.data(), 1, 0));  // nor after its time
  int unsent = 0;
  EXPECT_EQ(0, ioctl(client_, TIOCOUTQ, &unsent));
  EXPECT_EQ(256 * 1024, unsent);
  std::thread reader([&] {
    std::vector<uint8_t> got(sent + 1);
    EXPECT_EQ(static_cast<ssize_t>(got.size()), recv(server_, got.data(), got.size(), MSG_WAITALL));
  });
  SetTimeouts(client_, 20, 0);
  EXPECT_EQ(1, send(client_, bytes.data(), 1, 0));
  reader.join();
}

TEST_F(CallsTest, APeekTakesNothingAndWaitallTakesAll) {
  ASSERT_EQ(3, Say(client_, "abc"));
  EXPECT_EQ("a", Hear(server_, 1, MSG_PEEK));
  EXPECT_EQ("ab", Hear(server_, 2, MSG_PEEK | MSG_WAITALL));
  std::thread later([&] {
    usleep(20 * 1000);
    EXPECT_EQ(3, Say(client_, "def"));
  });
  EXPECT_EQ("abcdef", Hear(server_, 6, MSG_WAITALL));
  later.join();
  ASSERT_EQ(2, Say(client_, "gh"));
  ASSERT_EQ(0, shutdown(client_, SHUT_WR));
  EXPECT_EQ("gh", Hear(server_, 6, MSG_WAITALL)) << "less only at the end";
  EXPECT_EQ("", Hear(server_));
}

TEST_F(CallsTest, BytesThatAreDiscardedAreGone) {
  ASSERT_EQ(4, Say(client_, "abcd"));
  ASSERT_NO_FATAL_FAILURE(Await(server_, 4));
  EXPECT_EQ(2, recv(server_, nullptr, 2, MSG_TRUNC));
  EXPECT_EQ("cd", Hear(server_));
  EXPECT_EQ(0, recv(server_, nullptr, 0, 0)) << "which waits for nothing";
}

TEST_F(CallsTest, AReceiveGivesUpAfterItsTime) {
  SetTimeouts(server_, 0, 30 * 1000);
  timeval told{};
  socklen_t len = sizeof(told);
  ASSERT_EQ(0, getsockopt(server_, SOL_SOCKET, SO_RCVTIMEO, &told, &len));
  EXPECT_EQ(30 * 1000, told.tv_usec);
  char byte = 0;
  const auto begun = Clock::now();
  EXPECT_ERRNO(EAGAIN, recv(server_, &byte, 1, 0));
  EXPECT_GE(Clock::now() - begun, std::chrono::milliseconds(29));
  const timeval wrong{0, 1000 * 1000};
  EXPECT_ERRNO(EDOM, setsockopt(server_, SOL_SOCKET, SO_RCVTIMEO, &wrong, sizeof(wrong)));
}

TEST_F(CallsTest, WrongPointersAndFlagsAreErrors) {
  char byte = 0;
  ASSERT_EQ(1, Say(client_, "x"));
  void* volatile nowhere = nullptr;
  EXPECT_ERRNO(EFAULT, read(server_, nowhere, 1));
  EXPECT_ERRNO(EFAULT, write(client_, nowhere, 1));
  EXPECT_ERRNO(EINVAL, recv(server_, &byte, 1, MSG_OOB));
  EXPECT_ERRNO(EAGAIN, recv(server_, &byte, 1, MSG_ERRQUEUE));
  EXPECT_ERRNO(EINVAL, readv(server_, nullptr, -1));
  EXPECT_EQ("x", Hear(server_));
}

// --- the end -------------------------------------------------------------------------------------

TEST_F(CallsTest, AfterAShutdownThePeerReadsTheEndAndMayStillAnswer) {
  ASSERT_EQ(1, Say(client_, "q"));
  ASSERT_EQ(0, shutdown(client_, SHUT_WR));
  ASSERT_EQ(0, shutdown(client_, SHUT_WR)) << "twice is once";
  EXPECT_EQ("q", Hear(server_));
  EXPECT_EQ("", Hear(server_));
  EXPECT_ERRNO(EPIPE, send(client_, "x", 1, MSG_NOSIGNAL));
  ASSERT_EQ(1, Say(server_, "a"));
  EXPECT_EQ("a", Hear(client_));
  ASSERT_EQ(0, shutdown(client_, SHUT_RD));
  EXPECT_EQ("", Hear(client_)) << "nothing more is read";
  EXPECT_ERRNO(EINVAL, shutdown(client_, 7));
}

std::atomic<int> signals{0};
void Count(int) { ++signals; }

TEST_F(CallsTest, ASendToNobodyRaisesSigpipeUnlessItIsAskedNotTo) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = Count;
  ASSERT_EQ(0, sigaction(SIGPIPE, &action, &before));
  signals = 0;
  ASSERT_EQ(0, shutdown(client_, SHUT_WR));
  EXPECT_ERRNO(EPIPE, send(client_, "x", 1, MSG_NOSIGNAL));
  EXPECT_EQ(0, signals);
  EXPECT_ERRNO(EPIPE, write(client_, "x", 1));
  EXPECT_EQ(1, signals);
  sigaction(SIGPIPE, &before, nullptr);
}

TEST_F(CallsTest, WhatWasSentBeforeACloseArrivesAndThenTheEnd) {
  const std::vector<uint8_t> sent = Pattern(200 * 1000);
  ASSERT_EQ(static_cast<ssize_t>(sent.size()), send(client_, sent.data(), sent.size(), 0));
  const int number = client_;
  ASSERT_NO_FATAL_FAILURE(CloseClient());
  EXPECT_EQ(-1, fcntl(number, F_GETFD)) << "the number is free";
  EXPECT_ERRNO(EBADF, write(number, "x", 1));
  EXPECT_ERRNO(EBADF, close(number));
  std::vector<uint8_t> got(sent.size() + 1);
  EXPECT_EQ(static_cast<ssize_t>(sent.size()), recv(server_, got.data(), got.size(), MSG_WAITALL));
  got.pop_back();
  EXPECT_EQ(sent, got);
}

TEST_F(CallsTest, AfterAResetCallsTellSo) {
  ASSERT_EQ(0, exs_close(client_, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr));
  client_ = -1;
  char byte = 0;
  EXPECT_ERRNO(ECONNRESET, recv(server_, &byte, 1, 0));
  EXPECT_ERRNO(ECONNRESET, send(server_, &byte, 1, MSG_NOSIGNAL));
}

TEST_F(CallsTest, WhatIsNotConnectedAnswersAsTcpDoes) {
  const int fresh = exs_socket(AF_INET, SOCK_STREAM, 0);
  char byte = 0;
  EXPECT_ERRNO(ENOTCONN, recv(fresh, &byte, 1, 0));
  EXPECT_ERRNO(EPIPE, send(fresh, &byte, 1, MSG_NOSIGNAL));
  EXPECT_ERRNO(ENOTCONN, shutdown(fresh, SHUT_WR));
  sockaddr_in name{};
  socklen_t len = sizeof(name);
  EXPECT_ERRNO(ENOTCONN, getpeername(fresh, reinterpret_cast<sockaddr*>(&name), &len));
  EXPECT_ERRNO(EINVAL, accept(fresh, nullptr, nullptr));
  EXPECT_EQ(0, close(fresh));
}

// --- connecting ----------------------------------------------------------------------------------

TEST_F(CallsTest, ASocketIsBoundListensConnectsAndAcceptsByCallsOfLibc) {
  const int listener = exs_socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = Loopback(0);
  socklen_t len = sizeof(at);
  ASSERT_EQ(0, bind(listener, AsSockaddr(at), len));
  ASSERT_EQ(0, listen(listener, 4));
  ASSERT_EQ(0, getsockname(listener, reinterpret_cast<sockaddr*>(&at), &len));
  ASSERT_EQ(0, fcntl(listener, F_SETFL, O_NONBLOCK));
  EXPECT_ERRNO(EAGAIN, accept(listener, nullptr, nullptr));
  ASSERT_EQ(0, fcntl(listener, F_SETFL, 0));
  const int client = exs_socket(AF_INET, SOCK_STREAM, 0);
  std::thread connects([&] { EXPECT_EQ(0, connect(client, AsSockaddr(at), sizeof(at))); });
  sockaddr_in from{};
  len = sizeof(from);
  const int server =
      accept4(listener, reinterpret_cast<sockaddr*>(&from), &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
  connects.join();
  ASSERT_GE(server, 0) << strerror(errno);
  EXPECT_EQ(O_NONBLOCK, fcntl(server, F_GETFL) & O_NONBLOCK);
  EXPECT_EQ(FD_CLOEXEC, fcntl(server, F_GETFD));
  sockaddr_in name{};
  len = sizeof(name);
  EXPECT_EQ(0, getsockname(client, reinterpret_cast<sockaddr*>(&name), &len));
  EXPECT_EQ(from.sin_port, name.sin_port);
  EXPECT_EQ(0, getpeername(client, reinterpret_cast<sockaddr*>(&name), &len));
  EXPECT_EQ(at.sin_port, name.sin_port);
  EXPECT_ERRNO(EISCONN, connect(client, AsSockaddr(at), sizeof(at)));
  EXPECT_EQ(1, Say(server, "x"));
  EXPECT_EQ("x", Hear(client));
  for (const int fd : {listener, client, server}) EXPECT_EQ(0, close(fd));
}

TEST_F(CallsTest, AConnectThatMustNotWaitIsToldByPollAndSoError) {
  for (const bool listens : {true, false}) {
    const int fresh = exs_socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(0, fcntl(fresh, F_SETFL, O_NONBLOCK));
    const sockaddr_in to = Loopback(listens ? port_ : 1);
    EXPECT_ERRNO(EINPROGRESS, connect(fresh, AsSockaddr(to), sizeof(to)));
    pollfd asked{fresh, POLLOUT, 0};
    ASSERT_EQ(1, poll(&asked, 1, 20 * 1000));
    int error = -1;
    socklen_t len = sizeof(error);
    ASSERT_EQ(0, getsockopt(fresh, SOL_SOCKET, SO_ERROR, &error, &len));
    EXPECT_EQ(listens ? 0 : ECONNREFUSED, error);
    ASSERT_EQ(0, getsockopt(fresh, SOL_SOCKET, SO_ERROR, &error, &len));
    EXPECT_EQ(0, error) << "it is told once";
    EXPECT_EQ(0, close(fresh));
  }
}

TEST_F(CallsTest, ASocketOfTheSystemThatConnectConnectsStaysTcp) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = Loopback(0);
  socklen_t len = sizeof(at);
  ASSERT_EQ(0, bind(listener, AsSockaddr(at), len));
  ASSERT_EQ(0, listen(listener, 1));
  ASSERT_EQ(0, getsockname(listener, reinterpret_cast<sockaddr*>(&at), &len));
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(0, connect(client, AsSockaddr(at), len));
  const int server = accept(listener, nullptr, nullptr);
  EXPECT_EQ(3, Say(client, "tcp"));
  EXPECT_EQ("tcp", Hear(server, 3, MSG_WAITALL));
  tcp_info info{};
  len = sizeof(info);
  EXPECT_EQ(0, getsockopt(server, IPPROTO_TCP, TCP_INFO, &info, &len));
  for (const int fd : {listener, client, server}) EXPECT_EQ(0, close(fd));
}

// --- options -------------------------------------------------------------------------------------

TEST_F(CallsTest, OptionsThatProgramsSetAreTaken) {
  const int value = 1;
  for (const auto& [level, name] : {std::pair<int, int>{IPPROTO_TCP, TCP_NODELAY},
                                    {IPPROTO_TCP, TCP_CORK},
                                    {SOL_SOCKET, SO_KEEPALIVE},
                                    {SOL_SOCKET, SO_REUSEADDR},
                                    {SOL_SOCKET, SO_SNDBUF},
                                    {SOL_SOCKET, SO_RCVBUF}}) {
    EXPECT_EQ(0, setsockopt(client_, level, name, &value, sizeof(value))) << level << " " << name;
  }
  EXPECT_ERRNO(EINVAL, setsockopt(client_, IPPROTO_TCP, TCP_NODELAY, &value, 1));
  EXPECT_ERRNO(ENOPROTOOPT, setsockopt(client_, IPPROTO_TCP, TCP_ULP, &value, sizeof(value)));
  const auto get = [&](int level, int name) {
    int got = -1;
    socklen_t len = sizeof(got);
    EXPECT_EQ(0, getsockopt(client_, level, name, &got, &len));
    return got;
  };
  EXPECT_EQ(0, get(SOL_SOCKET, SO_ERROR));
  EXPECT_EQ(SOCK_STREAM, get(SOL_SOCKET, SO_TYPE));
  EXPECT_EQ(AF_INET, get(SOL_SOCKET, SO_DOMAIN));
  EXPECT_EQ(IPPROTO_TCP, get(SOL_SOCKET, SO_PROTOCOL));
  EXPECT_EQ(1, get(IPPROTO_TCP, TCP_NODELAY));
}

// --- beside posted operations --------------------------------------------------------------------

TEST_F(CallsTest, ReceivesThatWerePostedComeFirst) {
  char posted[2] = {};
  ASSERT_EQ(0,
            exs_recv(server_, posted, 2, MSG_WAITALL, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  char byte = 0;
  EXPECT_ERRNO(EAGAIN, recv(server_, &byte, 1, MSG_DONTWAIT));
  ASSERT_EQ(3, Say(client_, "abc"));
  EXPECT_EQ("c", Hear(server_));
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_EQ("ab", std::string(posted, 2));
}

TEST_F(CallsTest, WhatWasReadAheadByACallIsReceivedByAnOperation) {
  ASSERT_EQ(4, Say(client_, "abcd"));
  EXPECT_EQ("a", Hear(server_, 1, MSG_PEEK));
  EXPECT_EQ("a", Hear(server_, 1));
  char bytes[3] = {};
  EXPECT_EQ(3u, Receive(server_, bytes, 3));
  EXPECT_EQ("bcd", std::string(bytes, 3));
}

TEST_F(CallsTest, SendsOfBothKindsLeaveInTheirOrder) {
  const std::vector<uint8_t> large = Pattern(3 * 1024 * 1024);  // in pieces
  ASSERT_EQ(0, exs_send(client_, large.data(), large.size(), 0, queue_, nullptr,
                        EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(3, Say(client_, "abc"));
  ASSERT_EQ(0, exs_send(client_, "def", 3, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  std::vector<uint8_t> got(large.size());
  ASSERT_EQ(static_cast<ssize_t>(got.size()), recv(server_, got.data(), got.size(), MSG_WAITALL));
  EXPECT_EQ(large, got);
  EXPECT_EQ("abcdef", Hear(server_, 6, MSG_WAITALL));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(0, Next().exs_evt_errno);
}

TEST_F(CallsTest, ACancelEndsOperationsAndNoCall) {
  std::thread reader([&] { EXPECT_EQ("x", Hear(server_)); });
  usleep(20 * 1000);
  EXPECT_EQ(0, exs_cancel(server_, nullptr, EXS_CAF_FILDES)) << "nothing was posted";
  EXPECT_EQ(1, Say(client_, "x"));
  reader.join();
}

TEST_F(CallsTest, ANoticeOfTimeTellsOfOperationsAlone) {
  const timeval period{0, 10 * 1000};
  ASSERT_EQ(0, exs_setsockopt(server_, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &period, sizeof(period)));
  SetTimeouts(server_, 0, 60 * 1000);
  char byte = 0;
  EXPECT_ERRNO(EAGAIN, recv(server_, &byte, 1, 0));
  EXPECT_TRUE(Drain().empty());
}

TEST_F(CallsTest, ACloseByAnotherThreadEndsACallThatWaits) {
  std::thread reader([&] {
    char byte = 0;
    EXPECT_ERRNO(EBADF, recv(server_, &byte, 1, 0));
  });
  usleep(20 * 1000);
  ASSERT_EQ(0, exs_close(server_, 0, EXS_QHANDLE_INVALID, nullptr));
  server_ = -1;
  reader.join();
}

// --- processes -----------------------------------------------------------------------------------

TEST_F(CallsTest, OtherDescriptorsAreTheSystems) {
  int pipes[2];
  ASSERT_EQ(0, pipe(pipes));
  EXPECT_EQ(1, write(pipes[1], "x", 1));
  char byte = 0;
  EXPECT_EQ(1, read(pipes[0], &byte, 1));
  EXPECT_EQ('x', byte);
  EXPECT_ERRNO(ENOTSOCK, send(pipes[1], "x", 1, 0));
  for (const int fd : pipes) EXPECT_EQ(0, close(fd));
  EXPECT_ERRNO(EBADF, read(-1, &byte, 1));
  EXPECT_ERRNO(EBADF, read(1 << 30, &byte, 1));
}

TEST_F(CallsTest, ANumberThatIsReusedIsTheSystems) {
  const int number = client_;
  ASSERT_NO_FATAL_FAILURE(CloseClient());
  int pipes[2];
  ASSERT_EQ(0, pipe(pipes));
  EXPECT_EQ(number, pipes[0]);
  EXPECT_EQ(1, write(pipes[1], "x", 1));
  char byte = 0;
  EXPECT_EQ(1, read(pipes[0], &byte, 1));
  for (const int fd : pipes) EXPECT_EQ(0, close(fd));
}

}  // namespace
}  // namespace esdp::exs
