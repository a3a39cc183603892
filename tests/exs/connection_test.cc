#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <set>

#include "tests/exs/pair.h"

namespace esdp::exs {
namespace {

using ConnectionTest = ExsTest;

TEST_F(ConnectionTest, OneAcceptTakesSeveralConnectionsAndTellsTheAddressesOfEach) {
  ASSERT_NO_FATAL_FAILURE(Listen());
  std::array<exs_acceptaddr_t, 3> addresses{};
  ASSERT_EQ(0, exs_accept(listener_, addresses.data(), 3, 0, queue_, Handle(9)));
  std::set<int> clients;
  const sockaddr_in to = Loopback(port_);
  for (int i = 0; i < 3; ++i) {
    const int fd = exs_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
    ASSERT_EQ(0, exs_connect(fd, AsSockaddr(to), sizeof(to), 0, queue_, nullptr));
    clients.insert(fd);
  }
  size_t accepted = 0;
  std::set<int> servers;
  for (int i = 0; i < 6; ++i) {
    const exs_event_t event = Next();
    ASSERT_EQ(0, event.exs_evt_errno);
    if (event.exs_evt_type != EXS_EVT_ACCEPT) continue;
    const exs_evt_accept_t& told = event.exs_evt_union.exs_evt_accept;
    EXPECT_EQ(Handle(9), event.exs_evt_ahandle);
    ASSERT_EQ(&addresses[accepted], told.exs_evt_addresses);
    sockaddr_in peer{};
    socklen_t len = sizeof(peer);
    ASSERT_EQ(0, exs_getpeername(told.exs_evt_newfd, reinterpret_cast<sockaddr*>(&peer), &len));
    const auto& remote = reinterpret_cast<const sockaddr_in&>(addresses[accepted].exs_aa_remote);
    EXPECT_EQ(peer.sin_port, remote.sin_port);
    EXPECT_EQ(sizeof(sockaddr_in), addresses[accepted].exs_aa_remote_len);
    const auto& local = reinterpret_cast<const sockaddr_in&>(addresses[accepted].exs_aa_local);
    EXPECT_EQ(htons(port_), local.sin_port);
    EXPECT_EQ(htonl(INADDR_LOOPBACK), local.sin_addr.s_addr);
    servers.insert(told.exs_evt_newfd);
    ++accepted;
  }
  EXPECT_EQ(3u, servers.size());
  EXPECT_TRUE(NothingComes(queue_));
  for (const auto& fds : {clients, servers}) {
    for (const int fd : fds) EXPECT_EQ(0, exs_close(fd, 0, EXS_QHANDLE_INVALID, nullptr));
  }
}

TEST_F(ConnectionTest, NobodyThereIsToldByTheEvent) {
  ASSERT_NO_FATAL_FAILURE(Listen());
  ASSERT_EQ(0, exs_close(listener_, EXSX_CLOSE_ABORT, queue_, nullptr));
  EXPECT_EQ(EXS_EVT_CLOSE, Next().exs_evt_type);
  listener_ = -1;
  client_ = exs_socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in to = Loopback(port_);
  ASSERT_EQ(0, exs_connect(client_, AsSockaddr(to), sizeof(to), 0, queue_, nullptr));
  const exs_event_t event = Next();
  EXPECT_EQ(EXS_EVT_CONNECT, event.exs_evt_type);
  EXPECT_EQ(ECONNREFUSED, event.exs_evt_errno);
}

TEST_F(ConnectionTest, TheEndOfTheStreamIsAReceiveOfNothing) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  ASSERT_EQ(0, exs_shutdown(client_, EXS_SHUT_WR, 0, queue_, Handle(5)));
  const exs_event_t shut = Next();
  EXPECT_EQ(EXS_EVT_SHUTDOWN, shut.exs_evt_type);
  EXPECT_EQ(0, shut.exs_evt_errno);
  EXPECT_EQ(Handle(5), shut.exs_evt_ahandle);
  uint8_t byte = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(0, exs_recv(server_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
    const exs_event_t end = Next();
    EXPECT_EQ(0, end.exs_evt_errno);
    EXPECT_EQ(0u, end.exs_evt_union.exs_evt_xfer.exs_evt_length);
    EXPECT_NE(0u, end.exs_evt_flags & EXSX_EVF_EOF);
  }
  EXPECT_ERRNO(EPIPE, exs_send(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  ASSERT_NO_FATAL_FAILURE(Send(server_, &byte, 1));  // the other direction goes on
  EXPECT_EQ(1u, Receive(client_, &byte, 1));
}

TEST_F(ConnectionTest, CloseEndsReceivesWithEcanceledAndItsEventIsTheLast) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  uint8_t byte = 0;
  ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, queue_, Handle(1), EXS_MHANDLE_UNREGISTERED));
  const uint8_t sent = 7;
  ASSERT_EQ(0, exs_send(client_, &sent, 1, 0, queue_, Handle(2), EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, exs_close(client_, 0, queue_, Handle(3)));
  EXPECT_ERRNO(EBADF, exs_send(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_ERRNO(EBADF, exs_close(client_, 0, queue_, nullptr));
  EXPECT_EQ(1u, [&] {  // what was sent arrives, however soon it was closed
    exs_qhandle_t other = exs_qcreate(1);
    uint8_t got = 0;
    EXPECT_EQ(0, exs_recv(server_, &got, 1, 0, other, nullptr, EXS_MHANDLE_UNREGISTERED));
    EXPECT_EQ(0, Next(other).exs_evt_errno);
    EXPECT_EQ(0, exs_qdelete(other));
    return got == 7 ? 1u : 0u;
  }());
  ASSERT_EQ(0, exs_close(server_, 0, EXS_QHANDLE_INVALID, nullptr));
  server_ = -1;
  std::set<int> types;
  for (int i = 0; i < 3; ++i) {
    const exs_event_t event = Next();
    types.insert(event.exs_evt_type);
    EXPECT_EQ(event.exs_evt_type == EXS_EVT_RECV ? ECANCELED : 0, event.exs_evt_errno);
    EXPECT_EQ(i == 2, event.exs_evt_type == EXS_EVT_CLOSE);
  }
  EXPECT_EQ((std::set<int>{EXS_EVT_SEND, EXS_EVT_RECV, EXS_EVT_CLOSE}), types);
  EXPECT_EQ(-1, fcntl(client_, F_GETFD)) << "the number is free";
  EXPECT_ERRNO(EBADF, exs_shutdown(client_, EXS_SHUT_WR, 0, queue_, nullptr));
  client_ = -1;
}

TEST_F(ConnectionTest, APeerThatAbortsEndsWhatIsPostedWithItsReason) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::array<uint8_t, 3> bytes{};
  for (uint8_t& byte : bytes) {
    ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  }
  ASSERT_EQ(0, exs_close(server_, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr));
  server_ = -1;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ECONNRESET, Next().exs_evt_errno);
  EXPECT_ERRNO(ECONNRESET,
               exs_send(client_, bytes.data(), 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
}

TEST_F(ConnectionTest, CancelByHandleEndsThoseAloneAndByDescriptorAll) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::array<uint8_t, 4> bytes{};
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(0,
              exs_recv(client_, &bytes[i], 1, 0, queue_, Handle(i % 2), EXS_MHANDLE_UNREGISTERED));
  }
  EXPECT_EQ(2, exs_cancel(client_, Handle(1), EXS_CAF_AHANDLE));
  for (int i = 0; i < 2; ++i) {
    const exs_event_t event = Next();
    EXPECT_EQ(ECANCELED, event.exs_evt_errno);
    EXPECT_EQ(Handle(1), event.exs_evt_ahandle);
  }
  EXPECT_EQ(0, exs_cancel(client_, Handle(1), EXS_CAF_AHANDLE | EXS_CAF_FILDES));
  EXPECT_EQ(0, exs_cancel(server_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(2, exs_cancel(client_, nullptr, EXS_CAF_FILDES));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Handle(0), Next().exs_evt_ahandle);
  EXPECT_ERRNO(EINVAL, exs_cancel(client_, nullptr, 0));
  EXPECT_ERRNO(EINVAL, exs_cancel(client_, nullptr, 4));
  EXPECT_ERRNO(EBADF, exs_cancel(-1, nullptr, EXS_CAF_FILDES));
}

TEST_F(ConnectionTest, ACancelledAcceptGivesItsSlotsBack) {
  ASSERT_NO_FATAL_FAILURE(Listen());
  const exs_qhandle_t small = exs_qcreate(4);
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 4, 0, small, nullptr));
  EXPECT_ERRNO(EAGAIN, exs_accept(listener_, nullptr, 1, 0, small, nullptr));
  EXPECT_EQ(1, exs_cancel(listener_, nullptr, EXS_CAF_FILDES));
  const exs_event_t event = Next(small);
  EXPECT_EQ(ECANCELED, event.exs_evt_errno);
  EXPECT_EQ(-1, event.exs_evt_union.exs_evt_accept.exs_evt_newfd);
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 4, 0, small, nullptr));
  EXPECT_EQ(1, exs_cancel(listener_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next(small).exs_evt_errno);
  EXPECT_EQ(0, exs_qdelete(small));
}

TEST_F(ConnectionTest, WrongArgumentsOfConnectionCallsAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const sockaddr_in to = Loopback(port_);
  const int fresh = exs_socket(AF_INET, SOCK_STREAM, 0);
  uint8_t byte = 0;
  EXPECT_ERRNO(EAFNOSUPPORT, exs_socket(AF_UNIX, SOCK_STREAM, 0));
  EXPECT_ERRNO(EPROTONOSUPPORT, exs_socket(AF_INET, SOCK_DGRAM, 0));
  EXPECT_ERRNO(EPROTONOSUPPORT, exs_socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
  EXPECT_ERRNO(EFAULT, exs_connect(fresh, nullptr, sizeof(to), 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_connect(fresh, AsSockaddr(to), 1, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_connect(fresh, AsSockaddr(to), sizeof(to), 1, queue_, nullptr));
  sockaddr_in other = to;
  other.sin_family = AF_UNIX;
  EXPECT_ERRNO(EAFNOSUPPORT, exs_connect(fresh, AsSockaddr(other), sizeof(to), 0, queue_, nullptr));
  EXPECT_ERRNO(EBADF, exs_connect(fresh, AsSockaddr(to), sizeof(to), 0, -1, nullptr));
  EXPECT_ERRNO(EINVAL, exs_accept(fresh, nullptr, 1, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_accept(listener_, nullptr, 0, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_accept(listener_, nullptr, -1, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_accept(listener_, nullptr, 257, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_accept(listener_, nullptr, 1, 8, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_shutdown(client_, 0, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_shutdown(client_, EXS_SHUT_WR, 1, queue_, nullptr));
  EXPECT_ERRNO(ENOTCONN, exs_shutdown(fresh, EXS_SHUT_WR, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_close(client_, 2, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_close(client_, 2, EXS_QHANDLE_INVALID, nullptr));
  EXPECT_ERRNO(EBADF, exs_close(-1, 0, queue_, nullptr));
  EXPECT_ERRNO(ENOTCONN, exs_send(fresh, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_ERRNO(ENOTCONN, exs_recv(fresh, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_ERRNO(EFAULT, exs_bind(fresh, nullptr, sizeof(to)));
  EXPECT_ERRNO(EINVAL, exs_bind(listener_, AsSockaddr(to), sizeof(to)));
  EXPECT_ERRNO(EADDRINUSE, [&] {
    EXPECT_EQ(0, exs_bind(fresh, AsSockaddr(to), sizeof(to)));
    return exs_listen(fresh, 1);
  }());
  EXPECT_TRUE(Drain().empty());
  EXPECT_EQ(0, exs_close(fresh, 0, EXS_QHANDLE_INVALID, nullptr));
}

TEST_F(ConnectionTest, ANumberThatWasClosedByCloseIsNoneOfOurs) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  uint8_t byte = 0;
  ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, close(client_));
  EXPECT_ERRNO(EBADF, exs_send(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  int pipes[2];
  ASSERT_EQ(0, pipe(pipes));  // has the number now
  EXPECT_ERRNO(ENOTSOCK,
               exs_send(pipes[0], &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  for (const int fd : pipes) close(fd);
  client_ = -1;
}

TEST_F(ConnectionTest, ACloseByCloseIsNoticedWithoutAnotherCallOnTheNumber) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  uint8_t byte = 0;
  const std::vector<uint8_t> large = Pattern(8 * 1024 * 1024);
  ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, queue_, Handle(1), EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, exs_send(client_, large.data(), large.size(), 0, queue_, Handle(2),
                        EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, close(client_));
  const int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(client_, other) << "the number is another's at once";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  // What had come before can be read.
  while (exs_recv(server_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED) == 0) {
    const int error = Next().exs_evt_errno;
    ASSERT_TRUE(error == 0 || error == ECONNRESET) << error;
  }
  EXPECT_EQ(ECONNRESET, errno);
  EXPECT_ERRNO(EOPNOTSUPP, exs_send(other, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(0, close(other)) << "it was left alone";
  client_ = -1;
}

TEST_F(ConnectionTest, AListenerThatWasClosedByCloseTakesNoConnectionAnyMore) {
  ASSERT_NO_FATAL_FAILURE(Listen());
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 1, 0, queue_, nullptr));
  ASSERT_EQ(0, close(listener_));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  EXPECT_ERRNO(EBADF, exs_accept(listener_, nullptr, 1, 0, queue_, nullptr));
  const int fresh = exs_socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in to = Loopback(port_);
  ASSERT_EQ(0, exs_connect(fresh, AsSockaddr(to), sizeof(to), 0, queue_, nullptr));
  EXPECT_EQ(ECONNREFUSED, Next().exs_evt_errno);
  EXPECT_EQ(0, exs_close(fresh, 0, EXS_QHANDLE_INVALID, nullptr));
  listener_ = -1;
}

TEST_F(ConnectionTest, WhereACopyOfTheNumberIsLeftTheNextCallNotices) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  uint8_t byte = 0;
  ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  const int copy = dup(client_);
  ASSERT_EQ(0, close(client_));
  EXPECT_ERRNO(EBADF, exs_cancel(client_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  close(copy);
  client_ = -1;
}

TEST_F(ConnectionTest, AQueueThatWasClosedByCloseIsNone) {
  const exs_qhandle_t other = exs_qcreate(1);
  ASSERT_EQ(0, close(other));
  exs_event_t event;
  EXPECT_ERRNO(EBADF, exs_qdequeue(other, &event, 1, nullptr));
  EXPECT_ERRNO(EBADF, exs_qdelete(other));
  const exs_qhandle_t again = exs_qcreate(1);
  EXPECT_GE(again, 0);
  EXPECT_EQ(0, exs_qdelete(again));
}

TEST_F(ConnectionTest, OptionsReadBackWhatIsInForce) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const auto read = [&](int fd, int level, int name) {
    int value = -1;
    socklen_t len = sizeof(value);
    EXPECT_EQ(0, exs_getsockopt(fd, level, name, &value, &len));
    return value;
  };
  EXPECT_EQ(SOCK_STREAM, read(client_, SOL_SOCKET, SO_TYPE));
  EXPECT_EQ(AF_INET, read(client_, SOL_SOCKET, SO_DOMAIN));
  EXPECT_EQ(0, read(client_, SOL_SOCKET, SO_ERROR));
  EXPECT_EQ(1, read(listener_, SOL_SOCKET, SO_ACCEPTCONN));
  EXPECT_EQ(0, read(client_, SOL_SOCKET, SO_ACCEPTCONN));
  EXPECT_EQ(1, read(client_, SOL_SOCKET, SO_ASYNC_RECV_ORDERED));
  EXPECT_EQ(1, read(client_, IPPROTO_TCP, TCP_NODELAY));
  const int zero = 0;
  const int one = 1;
  EXPECT_ERRNO(EINVAL, exs_setsockopt(client_, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &zero, 4));
  EXPECT_EQ(0, exs_setsockopt(client_, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &one, 4));
  EXPECT_EQ(0, exs_setsockopt(client_, IPPROTO_TCP, TCP_NODELAY, &one, 4));
  EXPECT_ERRNO(ENOPROTOOPT, exs_setsockopt(client_, SOL_SOCKET, SO_RCVBUF, &one, 4));
  EXPECT_ERRNO(ENOPROTOOPT, exs_setsockopt(client_, 77, 1, &one, 4));
  EXPECT_ERRNO(EFAULT, exs_setsockopt(client_, SOL_SOCKET, SO_LINGER, nullptr, 8));
  uint64_t bytes = 4096;
  socklen_t len = sizeof(bytes);
  EXPECT_EQ(0, exs_setsockopt(client_, SOL_EXSX, EXSX_SO_ZCOPY_SEND_MIN, &bytes, len));
  bytes = 0;
  EXPECT_EQ(0, exs_getsockopt(client_, SOL_EXSX, EXSX_SO_ZCOPY_SEND_MIN, &bytes, &len));
  EXPECT_EQ(4096u, bytes);
  EXPECT_ERRNO(EINVAL, exs_setsockopt(client_, SOL_EXSX, EXSX_SO_ZCOPY_SEND_MIN, &bytes, 4));
}

TEST_F(ConnectionTest, FlagsOfTheDescriptorAreKept) {
  client_ = exs_socket(AF_INET6, SOCK_STREAM, 0);
  EXPECT_EQ(FD_CLOEXEC, exs_fcntl(client_, F_GETFD, 0));
  EXPECT_EQ(0, exs_fcntl(client_, F_SETFL, O_NONBLOCK));
  EXPECT_NE(0, exs_fcntl(client_, F_GETFL, 0) & O_NONBLOCK);
  EXPECT_ERRNO(EINVAL, exs_fcntl(client_, F_DUPFD, 0));
  EXPECT_ERRNO(EBADF, exs_fcntl(-1, F_GETFL, 0));
}

TEST_F(ConnectionTest, NamesAreCutToTheLengthGivenAndTheWholeLengthIsTold) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  sockaddr_in name{};
  socklen_t len = 4;
  ASSERT_EQ(0, exs_getsockname(server_, reinterpret_cast<sockaddr*>(&name), &len));
  EXPECT_EQ(sizeof(sockaddr_in), len);
  EXPECT_EQ(htons(port_), name.sin_port);
  EXPECT_EQ(0u, name.sin_addr.s_addr);
  EXPECT_ERRNO(EFAULT, exs_getsockname(server_, nullptr, &len));
  EXPECT_ERRNO(ENOTCONN, exs_getpeername(listener_, reinterpret_cast<sockaddr*>(&name), &len));
}

// --- notices -------------------------------------------------------------------------------------

TEST_F(ConnectionTest, AReceiveThatWaitsIsToldEachPeriodAndGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const timeval period{0, 30 * 1000};
  ASSERT_EQ(0, exs_setsockopt(client_, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &period, sizeof(period)));
  timeval back{};
  socklen_t len = sizeof(back);
  ASSERT_EQ(0, exs_getsockopt(client_, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &back, &len));
  EXPECT_EQ(30 * 1000, back.tv_usec);
  uint8_t byte = 0;
  EXPECT_TRUE(NothingComes(queue_)) << "nothing is outstanding";
  ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, queue_, Handle(6), EXS_MHANDLE_UNREGISTERED));
  for (int i = 0; i < 2; ++i) {
    const exs_event_t event = Next();
    EXPECT_EQ(EXS_EVT_RECVTIMEOUT, event.exs_evt_type);
    EXPECT_EQ(client_, event.exs_evt_socket);
    EXPECT_EQ(Handle(6), event.exs_evt_ahandle);
  }
  const timeval never{0, 0};
  ASSERT_EQ(0, exs_setsockopt(client_, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &never, sizeof(never)));
  Drain();
  EXPECT_TRUE(NothingComes(queue_));
  const uint8_t sent = 9;
  ASSERT_NO_FATAL_FAILURE(Send(server_, &sent, 1));
  EXPECT_EQ(EXS_EVT_RECV, Next().exs_evt_type);
  EXPECT_EQ(9, byte);
}

TEST_F(ConnectionTest, ANoticeForOnceComesAgainOnlyAfterAnotherPost) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  exsx_timeout_t once{};
  once.exsx_to_period = {0, 20 * 1000};
  once.exsx_to_flags = EXS_TIMEOUT_ONCE;
  ASSERT_EQ(0, exs_setsockopt(client_, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &once, sizeof(once)));
  std::array<uint8_t, 2> bytes{};
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(0, exs_recv(client_, &bytes[i], 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
    EXPECT_EQ(EXS_EVT_RECVTIMEOUT, Next().exs_evt_type);
    EXPECT_TRUE(NothingComes(queue_));
  }
}

TEST_F(ConnectionTest, ASendThatIsNotTakenIsToldAndOneThatHasEndedIsNot) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const timeval period{0, 40 * 1000};
  ASSERT_EQ(0, exs_setsockopt(client_, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &period, sizeof(period)));
  uint8_t byte = 0;
  ASSERT_EQ(0, exs_send(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  usleep(120 * 1000);  // nobody comes for its event
  EXPECT_EQ(EXS_EVT_SEND, Next().exs_evt_type);
  EXPECT_TRUE(NothingComes(queue_));
  const std::vector<uint8_t> large(20 * 1024 * 1024);
  ASSERT_EQ(0, exs_send(client_, large.data(), large.size(), 0, queue_, Handle(8),
                        EXS_MHANDLE_UNREGISTERED));
  const exs_event_t event = Next();
  EXPECT_EQ(EXS_EVT_SENDTIMEOUT, event.exs_evt_type);
  EXPECT_EQ(Handle(8), event.exs_evt_ahandle);
  exs_close(client_, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr);
  client_ = -1;
  exs_event_t last = Next();
  while (last.exs_evt_type == EXS_EVT_SENDTIMEOUT) last = Next();
  EXPECT_EQ(EXS_EVT_SEND, last.exs_evt_type);
  EXPECT_NE(0, last.exs_evt_errno);
}

TEST_F(ConnectionTest, ANoticeWithoutASlotLosesNoEvent) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const exs_qhandle_t small = exs_qcreate(1);
  const timeval period{0, 10 * 1000};
  ASSERT_EQ(0, exs_setsockopt(client_, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &period, sizeof(period)));
  uint8_t byte = 0;
  ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, small, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_TRUE(NothingComes(small));
  ASSERT_NO_FATAL_FAILURE(Send(server_, &byte, 1));
  EXPECT_EQ(EXS_EVT_RECV, Next(small).exs_evt_type);
  EXPECT_EQ(0, exs_qdelete(small));
}

TEST_F(ConnectionTest, WrongNoticesAreRefused) {
  client_ = exs_socket(AF_INET, SOCK_STREAM, 0);
  const timeval negative{-1, 0};
  exsx_timeout_t unknown{};
  unknown.exsx_to_flags = 2;
  const auto set = [&](const void* value, socklen_t len) {
    return exs_setsockopt(client_, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, value, len);
  };
  EXPECT_ERRNO(EINVAL, set(&negative, sizeof(negative)));
  EXPECT_ERRNO(EINVAL, set(&unknown, sizeof(unknown)));
  EXPECT_ERRNO(EINVAL, set(&unknown, 4));
  EXPECT_ERRNO(EFAULT, set(nullptr, sizeof(timeval)));
}

}  // namespace
}  // namespace esdp::exs
