#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "tests/exs/pair.h"

namespace esdp::exs {
namespace {

class PollTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_EQ(0, pipe2(pipe_.data(), O_CLOEXEC));
  }
  void TearDown() override {
    for (const int fd : pipe_) close(fd);
    ExsTest::TearDown();
  }

  std::array<int, 2> pipe_{};
  std::array<exs_pollfd_t, 4> fds_{};
};

TEST_F(PollTest, APipeThatGetsBytesIsToldOnceWithTheNumberOfReadyEntries) {
  fds_[0] = {-1, EXS_POLLIN, 55, {}};
  fds_[1] = {pipe_[0], EXS_POLLIN, 55, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 2, 0, queue_, Handle(4)));
  EXPECT_TRUE(NothingComes(queue_));
  EXPECT_EQ(55, fds_[1].exs_pfd_revents) << "written before the event only";
  exs_pollfd_t other = {pipe_[1], EXS_POLLOUT, 0, {}};
  ASSERT_EQ(0, exs_poll(&other, 1, 0, queue_, Handle(5)));  // what follows comes behind the look
  EXPECT_EQ(Handle(5), Next().exs_evt_ahandle);
  ASSERT_EQ(1, write(pipe_[1], "x", 1));
  const exs_event_t event = Next();
  EXPECT_EQ(EXS_EVT_POLL, event.exs_evt_type);
  EXPECT_EQ(0, event.exs_evt_errno);
  EXPECT_EQ(-1, event.exs_evt_socket);
  EXPECT_EQ(Handle(4), event.exs_evt_ahandle);
  EXPECT_EQ(1, event.exs_evt_union.exs_evt_poll.exs_evt_ready);
  EXPECT_EQ(fds_.data(), event.exs_evt_union.exs_evt_poll.exs_evt_fds);
  EXPECT_EQ(0, fds_[0].exs_pfd_revents);
  EXPECT_EQ(EXS_POLLIN, fds_[1].exs_pfd_revents);
  EXPECT_TRUE(NothingComes(queue_));
}

TEST_F(PollTest, WhatIsReadyAlreadyIsToldAtOnceFilesAmongIt) {
  const int file = memfd_create("file", MFD_CLOEXEC);
  fds_[0] = {pipe_[0], EXS_POLLIN, 0, {}};
  fds_[1] = {pipe_[1], EXS_POLLOUT, 0, {}};
  fds_[2] = {file, EXS_POLLIN | EXS_POLLOUT, 0, {}};
  fds_[3] = {987, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 4, 0, queue_, nullptr));
  EXPECT_EQ(3, Next().exs_evt_union.exs_evt_poll.exs_evt_ready);
  EXPECT_EQ(0, fds_[0].exs_pfd_revents);
  EXPECT_EQ(EXS_POLLOUT, fds_[1].exs_pfd_revents);
  EXPECT_EQ(EXS_POLLIN | EXS_POLLOUT, fds_[2].exs_pfd_revents);
  EXPECT_EQ(EXS_POLLNVAL, fds_[3].exs_pfd_revents);
  close(file);
}

TEST_F(PollTest, APlainTcpSocketAndAPeerThatLeavesAreTold) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = Loopback(0);
  socklen_t len = sizeof(at);
  ASSERT_EQ(0, bind(listening, AsSockaddr(at), len));
  ASSERT_EQ(0, listen(listening, 1));
  ASSERT_EQ(0, getsockname(listening, reinterpret_cast<sockaddr*>(&at), &len));
  fds_[0] = {listening, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 1, 0, queue_, nullptr));
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(0, connect(client, AsSockaddr(at), len));
  EXPECT_EQ(1, Next().exs_evt_union.exs_evt_poll.exs_evt_ready);
  const int server = accept(listening, nullptr, nullptr);
  fds_[0] = {server, EXS_POLLIN | EXS_POLLRDHUP, 0, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 1, 0, queue_, nullptr));
  close(client);
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_NE(0, fds_[0].exs_pfd_revents & EXS_POLLRDHUP);
  close(server);
  close(listening);
}

TEST_F(PollTest, ThatTheProgramClosesItsNumberMeanwhileDisturbsNothing) {
  const int copy = dup(pipe_[0]);
  fds_[0] = {copy, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 1, 0, queue_, nullptr));
  EXPECT_TRUE(NothingComes(queue_));
  close(copy);
  ASSERT_EQ(1, write(pipe_[1], "x", 1));
  EXPECT_EQ(1, Next().exs_evt_union.exs_evt_poll.exs_evt_ready);
}

TEST_F(PollTest, TheSamePipeInSeveralPollsIsToldToEach) {
  std::array<exs_pollfd_t, 8> fds;
  for (exs_pollfd_t& each : fds) {
    each = {pipe_[0], EXS_POLLIN, 0, {}};
    ASSERT_EQ(0, exs_poll(&each, 1, 0, queue_, nullptr));
  }
  ASSERT_EQ(1, write(pipe_[1], "x", 1));
  for (size_t i = 0; i < fds.size(); ++i) EXPECT_EQ(0, Next().exs_evt_errno);
}

TEST_F(PollTest, ACancelEndsItByAnyOfItsDescriptors) {
  fds_[0] = {-1, EXS_POLLIN, 0, {}};
  fds_[1] = {pipe_[0], EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 2, 0, queue_, Handle(1)));
  EXPECT_ERRNO(ENOTSOCK, exs_cancel(pipe_[0], Handle(2), EXS_CAF_AHANDLE));
  EXPECT_EQ(1, exs_cancel(pipe_[0], Handle(1), EXS_CAF_AHANDLE));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  ASSERT_EQ(0, exs_poll(fds_.data(), 2, 0, queue_, Handle(1)));
  EXPECT_EQ(1, exs_cancel(pipe_[0], nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
}

// --- sockets of our own --------------------------------------------------------------------------

class PollOwnTest : public PollTest {
 protected:
  void SetUp() override {
    PollTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  // The bits of one descriptor that is ready or gets so.
  int Ready(int fd, short events) {
    exs_pollfd_t asked = {fd, events, 0, {}};
    EXPECT_EQ(0, exs_poll(&asked, 1, 0, queue_, nullptr));
    const exs_event_t event = Next();
    EXPECT_EQ(0, event.exs_evt_errno);
    EXPECT_EQ(1, event.exs_evt_union.exs_evt_poll.exs_evt_ready);
    return asked.exs_pfd_revents;
  }
};

TEST_F(PollOwnTest, AConnectionIsWritableAtOnceAndReadableOnceBytesHaveCome) {
  EXPECT_EQ(EXS_POLLOUT, Ready(client_, EXS_POLLIN | EXS_POLLOUT));
  fds_[0] = {client_, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 1, 0, queue_, Handle(7)));
  EXPECT_TRUE(NothingComes(queue_));
  uint8_t byte = 9;
  const exs_qhandle_t other = exs_qcreate(4);
  ASSERT_EQ(0, exs_send(server_, &byte, 1, 0, other, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(Handle(7), Next().exs_evt_ahandle);
  EXPECT_EQ(EXS_POLLIN, fds_[0].exs_pfd_revents);
  EXPECT_EQ(EXS_POLLIN, Ready(client_, EXS_POLLIN)) << "nothing was taken away";
  EXPECT_EQ(1u, Receive(client_, &byte, 1));
  EXPECT_EQ(0, Next(other).exs_evt_errno);
  EXPECT_EQ(0, exs_qdelete(other));
}

TEST_F(PollOwnTest, APipeAFileTcpAndAConnectionAreTakenInOneCall) {
  const int file = memfd_create("file", MFD_CLOEXEC);
  const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = Loopback(0);
  ASSERT_EQ(0, bind(tcp, AsSockaddr(at), sizeof(at)));
  ASSERT_EQ(0, listen(tcp, 1));
  // The transport says from the first time on that it was asked what a connection is ready for.
  EXPECT_EQ(EXS_POLLOUT, Ready(client_, EXS_POLLOUT));
  fds_ = {{{pipe_[0], EXS_POLLIN, 0, {}},
           {tcp, EXS_POLLIN, 0, {}},
           {client_, EXS_POLLOUT, 0, {}},
           {file, EXS_POLLIN, 0, {}}}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 4, 0, queue_, nullptr));
  EXPECT_EQ(2, Next().exs_evt_union.exs_evt_poll.exs_evt_ready);
  EXPECT_EQ(0, fds_[0].exs_pfd_revents);
  EXPECT_EQ(0, fds_[1].exs_pfd_revents);
  EXPECT_EQ(EXS_POLLOUT, fds_[2].exs_pfd_revents);
  EXPECT_EQ(EXS_POLLIN, fds_[3].exs_pfd_revents);
  fds_[2].exs_pfd_events = EXS_POLLIN;  // now the pipe is what comes first
  ASSERT_EQ(0, exs_poll(fds_.data(), 3, 0, queue_, nullptr));
  EXPECT_TRUE(NothingComes(queue_));
  ASSERT_EQ(1, write(pipe_[1], "x", 1));
  EXPECT_EQ(1, Next().exs_evt_union.exs_evt_poll.exs_evt_ready);
  EXPECT_EQ(EXS_POLLIN, fds_[0].exs_pfd_revents);
  EXPECT_EQ(0, fds_[2].exs_pfd_revents);
  close(file);
  close(tcp);
}

TEST_F(PollOwnTest, TheEndOfThePeerIsToldAndSoIsAReset) {
  ASSERT_EQ(0, exs_shutdown(server_, EXS_SHUT_WR, 0, queue_, nullptr));
  EXPECT_EQ(EXS_EVT_SHUTDOWN, Next().exs_evt_type);
  EXPECT_EQ(EXS_POLLIN | EXS_POLLRDHUP, Ready(client_, EXS_POLLIN | EXS_POLLRDHUP));
  ASSERT_EQ(0, exs_close(server_, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr));
  server_ = -1;
  EXPECT_EQ(EXS_POLLERR | EXS_POLLHUP, Ready(client_, 0));
}

TEST_F(PollOwnTest, ACancelOfTheSocketOrOfThePollEndsIt) {
  fds_[0] = {client_, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 1, 0, queue_, Handle(3)));
  EXPECT_EQ(0, exs_cancel(client_, Handle(4), EXS_CAF_AHANDLE));
  EXPECT_EQ(1, exs_cancel(client_, Handle(3), EXS_CAF_AHANDLE));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  ASSERT_EQ(0, exs_poll(fds_.data(), 1, 0, queue_, nullptr));
  ASSERT_EQ(0, exs_close(client_, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr));
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_NE(0, fds_[0].exs_pfd_revents & EXS_POLLHUP);
  client_ = -1;
}

TEST_F(PollOwnTest, ASocketThatIsNotConnectedHangsUp) {
  const int fresh = exs_socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(EXS_POLLHUP, Ready(fresh, EXS_POLLIN));
  EXPECT_EQ(0, exs_close(fresh, 0, EXS_QHANDLE_INVALID, nullptr));
}

TEST_F(PollOwnTest, AListenerIsReadableWhileAConnectionWaitsToBeAccepted) {
  fds_[0] = {listener_, EXS_POLLIN | EXS_POLLOUT, 0, {}};
  fds_[1] = {client_, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(fds_.data(), 2, 0, queue_, Handle(5)));
  EXPECT_TRUE(NothingComes(queue_));
  const int second = exs_socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in to = Loopback(port_);
  const exs_qhandle_t other = exs_qcreate(4);
  ASSERT_EQ(0, exs_connect(second, AsSockaddr(to), sizeof(to), 0, other, nullptr));
  const exs_event_t event = Next();
  EXPECT_EQ(Handle(5), event.exs_evt_ahandle);
  EXPECT_EQ(1, event.exs_evt_union.exs_evt_poll.exs_evt_ready);
  EXPECT_EQ(EXS_POLLIN, fds_[0].exs_pfd_revents);
  EXPECT_EQ(0, fds_[1].exs_pfd_revents);
  EXPECT_EQ(EXS_POLLIN, Ready(listener_, EXS_POLLIN)) << "it waits still";
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 1, 0, queue_, nullptr));
  const int accepted = Next().exs_evt_union.exs_evt_accept.exs_evt_newfd;
  EXPECT_GE(accepted, 0);
  ASSERT_EQ(0, exs_poll(fds_.data(), 1, 0, queue_, Handle(6)));
  EXPECT_TRUE(NothingComes(queue_));
  ASSERT_EQ(0, exs_close(listener_, 0, EXS_QHANDLE_INVALID, nullptr));
  listener_ = -1;
  EXPECT_EQ(Handle(6), Next().exs_evt_ahandle);
  EXPECT_EQ(EXS_POLLHUP, fds_[0].exs_pfd_revents);
  EXPECT_EQ(0, Next(other).exs_evt_errno);
  for (const int fd : {second, accepted}) exs_close(fd, 0, EXS_QHANDLE_INVALID, nullptr);
  EXPECT_EQ(0, exs_qdelete(other));
}

TEST_F(PollTest, WrongArgumentsAreRefused) {
  fds_[0] = {pipe_[0], EXS_POLLIN, 0, {}};
  EXPECT_ERRNO(EFAULT, exs_poll(nullptr, 1, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_poll(fds_.data(), 0, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_poll(fds_.data(), -1, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_poll(fds_.data(), 65537, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_poll(fds_.data(), 1, 1, queue_, nullptr));
  EXPECT_ERRNO(EBADF, exs_poll(fds_.data(), 1, 0, -1, nullptr));
  fds_[0].exs_pfd_events = 0x4000;
  EXPECT_ERRNO(EINVAL, exs_poll(fds_.data(), 1, 0, queue_, nullptr));
  const exs_qhandle_t small = exs_qcreate(1);
  fds_[0].exs_pfd_events = EXS_POLLIN;
  ASSERT_EQ(0, exs_poll(fds_.data(), 1, 0, small, nullptr));
  EXPECT_ERRNO(EAGAIN, exs_poll(fds_.data(), 1, 0, small, nullptr));
  EXPECT_EQ(1, exs_cancel(pipe_[0], nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next(small).exs_evt_errno);
  EXPECT_EQ(0, exs_qdelete(small));
}

}  // namespace
}  // namespace esdp::exs
