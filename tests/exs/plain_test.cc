#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "tests/exs/pair.h"

// Sockets that the program made with socket().

namespace esdp::exs {
namespace {

class PlainTest : public ExsTest {
 protected:
  static int Plain(int family = AF_INET) { return socket(family, SOCK_STREAM, 0); }
  // Of a socket that has a name.
  static uint16_t PortOf(int fd) {
    sockaddr_in name{};
    socklen_t len = sizeof(name);
    EXPECT_EQ(0, getsockname(fd, reinterpret_cast<sockaddr*>(&name), &len));
    return ntohs(name.sin_port);
  }
  static void BindAnyPort(int fd) {
    const sockaddr_in any = Loopback(0);
    ASSERT_EQ(0, bind(fd, AsSockaddr(any), sizeof(any)));
  }
  int ConnectTo(uint16_t port, int fd, uintptr_t handle = 2) {
    const sockaddr_in to = Loopback(port);
    return exs_connect(fd, AsSockaddr(to), sizeof(to), 0, queue_, Handle(handle));
  }
  // The client is connected from `fd` to a listener of this library, which has taken it.
  void ConnectPlain(int fd) {
    client_ = fd;
    ASSERT_NO_FATAL_FAILURE(Listen());
    ASSERT_EQ(0, exs_accept(listener_, nullptr, 1, 0, queue_, Handle(1)));
    ASSERT_EQ(0, ConnectTo(port_, client_));
    for (int i = 0; i < 2; ++i) {
      const exs_event_t event = Next();
      ASSERT_EQ(0, event.exs_evt_errno);
      if (event.exs_evt_type == EXS_EVT_ACCEPT) {
        server_ = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
      } else {
        EXPECT_EQ(client_, event.exs_evt_socket) << "it keeps its number";
      }
    }
    ASSERT_GE(server_, 0);
  }
};

// --- sockets that are not connected --------------------------------------------------------------

TEST_F(PlainTest, ASocketOfTheSystemIsConnectedUnderItsNumberAndMovesBytes) {
  ASSERT_NO_FATAL_FAILURE(ConnectPlain(Plain()));
  const uint8_t sent = 7;
  uint8_t got = 0;
  ASSERT_NO_FATAL_FAILURE(Send(client_, &sent, 1));
  EXPECT_EQ(1u, Receive(server_, &got, 1));
  EXPECT_EQ(7, got);
  EXPECT_EQ(-1, write(client_, &sent, 1)) << "nobody writes past the library";
  ASSERT_EQ(0, exs_close(client_, EXSX_CLOSE_ABORT, queue_, nullptr));
  EXPECT_EQ(EXS_EVT_CLOSE, Next().exs_evt_type);
  EXPECT_EQ(-1, fcntl(client_, F_GETFD)) << "the number is free";
  client_ = -1;
}

TEST_F(PlainTest, AConnectionComesFromWhereTheSocketWasBound) {
  const int plain = Plain();
  ASSERT_NO_FATAL_FAILURE(BindAnyPort(plain));
  const uint16_t port = PortOf(plain);
  ASSERT_NO_FATAL_FAILURE(ConnectPlain(plain));
  sockaddr_in peer{};
  socklen_t len = sizeof(peer);
  ASSERT_EQ(0, exs_getpeername(server_, reinterpret_cast<sockaddr*>(&peer), &len));
  EXPECT_EQ(port, ntohs(peer.sin_port));
  EXPECT_EQ(htonl(INADDR_LOOPBACK), peer.sin_addr.s_addr);
}

TEST_F(PlainTest, FlagsOfTheDescriptorAndTheLingerTimeAreKept) {
  for (const bool closes : {false, true}) {
    const int plain = socket(AF_INET, SOCK_STREAM | (closes ? SOCK_CLOEXEC | SOCK_NONBLOCK : 0), 0);
    const linger waits{1, 7};
    ASSERT_EQ(0, setsockopt(plain, SOL_SOCKET, SO_LINGER, &waits, sizeof(waits)));
    ASSERT_EQ(0, ConnectTo(1, plain));
    EXPECT_EQ(closes ? FD_CLOEXEC : 0, exs_fcntl(plain, F_GETFD, 0));
    EXPECT_EQ(closes ? O_NONBLOCK : 0, exs_fcntl(plain, F_GETFL, 0) & O_NONBLOCK);
    linger kept{};
    socklen_t len = sizeof(kept);
    EXPECT_EQ(0, exs_getsockopt(plain, SOL_SOCKET, SO_LINGER, &kept, &len));
    EXPECT_EQ(7, kept.l_linger);
    EXPECT_EQ(ECONNREFUSED, Next().exs_evt_errno);
    EXPECT_EQ(0, exs_close(plain, 0, EXS_QHANDLE_INVALID, nullptr));
  }
}

TEST_F(PlainTest, ASocketThatIsNotConnectedAnswersSo) {
  const int plain = Plain(AF_INET6);
  uint8_t byte = 0;
  exs_iovec_t part = {&byte, 1, EXS_MHANDLE_UNREGISTERED, 0, {}};
  exs_msghdr_t message = {&part, 1, {}};
  EXPECT_ERRNO(ENOTCONN, exs_send(plain, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_ERRNO(ENOTCONN, exs_recv(plain, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_ERRNO(ENOTCONN, exs_sendmsg(plain, &message, 0, queue_, nullptr));
  EXPECT_ERRNO(ENOTCONN, exs_recvmsg(plain, &message, 0, queue_, nullptr));
  EXPECT_ERRNO(ENOTCONN, exs_shutdown(plain, EXS_SHUT_WR, 0, queue_, nullptr));
  EXPECT_ERRNO(ENOTCONN, exs_sendfile(plain, nullptr, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_accept(plain, nullptr, 1, 0, queue_, nullptr));
  const sockaddr_in6 any{.sin6_family = AF_INET6};
  EXPECT_EQ(0, bind(plain, reinterpret_cast<const sockaddr*>(&any), sizeof(any)))
      << "it is the system's";
  EXPECT_EQ(0, exs_close(plain, 0, queue_, Handle(5)));
  EXPECT_EQ(Handle(5), Next().exs_evt_ahandle);
  EXPECT_EQ(-1, fcntl(plain, F_GETFD));
}

TEST_F(PlainTest, AConnectWithAWrongArgumentLeavesTheSocketAsItIs) {
  const int plain = Plain();
  const sockaddr_in to = Loopback(1);
  EXPECT_ERRNO(EINVAL, exs_connect(plain, AsSockaddr(to), sizeof(to), 1, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_connect(plain, AsSockaddr(to), 1, 0, queue_, nullptr));
  EXPECT_ERRNO(EFAULT, exs_connect(plain, nullptr, sizeof(to), 0, queue_, nullptr));
  EXPECT_ERRNO(EBADF, exs_connect(plain, AsSockaddr(to), sizeof(to), 0, -1, nullptr));
  EXPECT_EQ(-1, connect(plain, AsSockaddr(to), sizeof(to)));
  EXPECT_EQ(ECONNREFUSED, errno) << "the system's own call";
  close(plain);
}

TEST_F(PlainTest, ASocketOfTheSystemListensUnderItsNumber) {
  listener_ = Plain();
  ASSERT_NO_FATAL_FAILURE(BindAnyPort(listener_));
  port_ = PortOf(listener_);
  ASSERT_EQ(0, exs_listen(listener_, 4));
  ASSERT_NO_FATAL_FAILURE(Connect());
}

TEST_F(PlainTest, OptionsAndNamesOfThisLibraryMayBeSetBeforeTheConnect) {
  const int plain = Plain();
  const sockaddr_in any = Loopback(0);
  EXPECT_EQ(0, exs_bind(plain, AsSockaddr(any), sizeof(any)));
  const int other = Plain();
  const timeval period{1, 0};
  EXPECT_EQ(0, exs_setsockopt(other, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &period, sizeof(period)));
  for (const int fd : {plain, other}) {
    int type = 0;
    socklen_t len = sizeof(type);
    EXPECT_EQ(0, exs_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len));
    EXPECT_EQ(0, exs_close(fd, 0, EXS_QHANDLE_INVALID, nullptr));
  }
}

TEST_F(PlainTest, TwoThreadsThatConnectOneSocketGetOneConnection) {
  ASSERT_NO_FATAL_FAILURE(Listen());
  client_ = Plain();
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 1, 0, queue_, Handle(1)));
  std::array<int, 2> answers{};
  std::thread other([&] { answers[1] = ConnectTo(port_, client_); });
  answers[0] = ConnectTo(port_, client_);
  other.join();
  EXPECT_EQ(-1, answers[0] + answers[1]) << "the second is refused";
  for (int i = 0; i < 2; ++i) {
    const exs_event_t event = Next();
    EXPECT_EQ(0, event.exs_evt_errno);
    if (event.exs_evt_type == EXS_EVT_ACCEPT) {
      server_ = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
    }
  }
  EXPECT_TRUE(Drain().empty());
}

TEST_F(PlainTest, WhatIsConnectedOrListensIsConnectedNoMore) {
  const int listener = Plain();
  ASSERT_NO_FATAL_FAILURE(BindAnyPort(listener));
  ASSERT_EQ(0, listen(listener, 1));
  const int connected = Plain();
  const sockaddr_in to = Loopback(PortOf(listener));
  ASSERT_EQ(0, connect(connected, AsSockaddr(to), sizeof(to)));
  EXPECT_ERRNO(EISCONN, ConnectTo(1, listener));
  EXPECT_ERRNO(EISCONN, ConnectTo(1, connected));
  EXPECT_ERRNO(EOPNOTSUPP, exs_listen(connected, 1));
  for (const int fd : {listener, connected}) close(fd);
}

TEST_F(PlainTest, SocketsOfOtherKindsAreNotTaken) {
  const int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
  const int local = Plain(AF_UNIX);
  for (const int fd : {datagrams, local}) {
    uint8_t byte = 0;
    EXPECT_ERRNO(EOPNOTSUPP, ConnectTo(1, fd));
    EXPECT_ERRNO(EOPNOTSUPP, exs_accept(fd, nullptr, 1, 0, queue_, nullptr));
    EXPECT_ERRNO(EOPNOTSUPP, exs_send(fd, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
    EXPECT_ERRNO(EOPNOTSUPP, exs_close(fd, 0, EXS_QHANDLE_INVALID, nullptr));
    EXPECT_EQ(0, close(fd)) << "it was left alone";
  }
  const int file = open("/proc/self/exe", O_RDONLY);
  EXPECT_ERRNO(ENOTSOCK, ConnectTo(1, file));
  close(file);
}

}  // namespace
}  // namespace esdp::exs
