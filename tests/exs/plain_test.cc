#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
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
  EXPECT_EQ(1, write(client_, &sent, 1)) << "which is a call on the library";
  EXPECT_EQ(1, read(server_, &got, 1));
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
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
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
  EXPECT_ERRNO(EINVAL, exs_listen(connected, 1));
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

// --- sockets that listen -------------------------------------------------------------------------

class PlainListenerTest : public PlainTest {
 protected:
  void SetUp() override {
    PlainTest::SetUp();
    listener_ = Plain();
    ASSERT_NO_FATAL_FAILURE(BindAnyPort(listener_));
    ASSERT_EQ(0, listen(listener_, 64));
    port_ = PortOf(listener_);
  }
  int Accept(int count, exs_acceptaddr_t* addresses = nullptr) {
    return exs_accept(listener_, addresses, count, 0, queue_, Handle(1));
  }
  // A peer that is no SDP, and what it says first.
  int Say(std::string_view bytes) {
    const int peer = Plain();
    const sockaddr_in to = Loopback(port_);
    EXPECT_EQ(0, connect(peer, AsSockaddr(to), sizeof(to)));
    if (bytes.empty()) return peer;
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()), send(peer, bytes.data(), bytes.size(), 0));
    return peer;
  }
  static uint16_t PortOfPeer(int fd) {
    sockaddr_in name{};
    socklen_t len = sizeof(name);
    EXPECT_EQ(0, getpeername(fd, reinterpret_cast<sockaddr*>(&name), &len));
    return ntohs(name.sin_port);
  }
  // The next event is an accept of a plain connection, which has these bytes; it is closed.
  int Taken(std::string_view said) {
    const exs_event_t event = Next();
    EXPECT_EQ(0, event.exs_evt_errno);
    const int fd = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
    std::string text(100, 0);
    const ssize_t got = recv(fd, text.data(), text.size(), MSG_DONTWAIT);
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    EXPECT_EQ(said, text);
    EXPECT_EQ(0, close(fd));
    return event.exs_evt_type;
  }
  static bool IsClosed(int peer) {
    char byte = 0;
    const timeval bound{20, 0};
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
    ssize_t got = 0;
    do {
      got = recv(peer, &byte, 1, 0);  // it may be refused in so many words
    } while (got > 0);
    const bool closed = got == 0 || (got < 0 && errno == ECONNRESET);
    close(peer);
    return closed;
  }
  // A client and a server that are connected with each other; an accept is outstanding.
  void ConnectAccepted() {
    client_ = exs_socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(0, ConnectTo(port_, client_));
    for (int i = 0; i < 2; ++i) {
      const exs_event_t event = Next();
      ASSERT_EQ(0, event.exs_evt_errno);
      if (event.exs_evt_type != EXS_EVT_ACCEPT) continue;
      EXPECT_EQ(listener_, event.exs_evt_socket);
      EXPECT_EQ(Handle(1), event.exs_evt_ahandle);
      server_ = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
    }
    ASSERT_GE(server_, 0);
  }
  void CloseBoth() {
    for (int* fd : {&client_, &server_}) {
      EXPECT_EQ(0, exs_close(*fd, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr));
      *fd = -1;
    }
  }
};

TEST_F(PlainListenerTest, AnSdpConnectionIsTakenFromASocketThatListens) {
  exs_acceptaddr_t addresses{};
  ASSERT_EQ(0, Accept(1, &addresses));
  ASSERT_NO_FATAL_FAILURE(ConnectAccepted());
  sockaddr_in from{};
  socklen_t len = sizeof(from);
  ASSERT_EQ(0, exs_getsockname(client_, reinterpret_cast<sockaddr*>(&from), &len));
  const auto* remote = reinterpret_cast<const sockaddr_in*>(&addresses.exs_aa_remote);
  const auto* local = reinterpret_cast<const sockaddr_in*>(&addresses.exs_aa_local);
  EXPECT_EQ(from.sin_port, remote->sin_port);
  EXPECT_EQ(htons(port_), local->sin_port);
  const std::vector<uint8_t> sent = Pattern(100 * 1000);
  std::vector<uint8_t> got(sent.size());
  ASSERT_EQ(
      0, exs_send(server_, sent.data(), sent.size(), 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, exs_recv(client_, got.data(), got.size(), MSG_WAITALL, queue_, nullptr,
                        EXS_MHANDLE_UNREGISTERED));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_EQ(sent, got);
  int listens = 0;
  len = sizeof(listens);
  EXPECT_EQ(0, getsockopt(listener_, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len));
  EXPECT_EQ(1, listens) << "it is the system's";
}

TEST_F(PlainListenerTest, OneAcceptTakesSeveralAndTheNextTheRest) {
  ASSERT_EQ(0, Accept(2));
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(ConnectAccepted());
    CloseBoth();
  }
  client_ = exs_socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(0, ConnectTo(port_, client_));
  EXPECT_TRUE(NothingComes(queue_)) << "nobody accepts";
  ASSERT_EQ(0, Accept(1));
  for (int i = 0; i < 2; ++i) {
    const exs_event_t event = Next();
    EXPECT_EQ(0, event.exs_evt_errno);
    if (event.exs_evt_type == EXS_EVT_ACCEPT) {
      server_ = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
    }
  }
}

TEST_F(PlainListenerTest, APeerThatIsNoSdpIsATcpSocketOfTheProgramAndHoldsUpNoOther) {
  const std::string_view frame("MPA ID Req Frame\0\1\0\4", 20);
  const std::vector<std::string_view> texts = {
      "GET / HTTP/1.1\r\n\r\n", "M", frame.substr(0, 17), frame, "MPA ID Req frame", ""};
  std::vector<int> peers;
  peers.reserve(texts.size());
  for (const std::string_view said : texts) peers.push_back(Say(said));
  ASSERT_EQ(0, Accept(1));
  EXPECT_EQ(EXS_EVT_ACCEPT, Taken("GET / HTTP/1.1\r\n\r\n"));
  client_ = exs_socket(AF_INET, SOCK_STREAM, 0);
  std::vector<exs_acceptaddr_t> addresses(6);
  ASSERT_EQ(0, Accept(6, addresses.data()));
  ASSERT_EQ(0, ConnectTo(port_, client_));
  std::vector<std::string> heard;
  for (int i = 0; i < 7; ++i) {
    const exs_event_t event = Next();
    ASSERT_EQ(0, event.exs_evt_errno);
    if (event.exs_evt_type != EXS_EVT_ACCEPT) continue;
    const int fd = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
    EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
    EXPECT_EQ(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
    if (PortOfPeer(fd) == PortOf(client_)) {
      server_ = fd;
      continue;
    }
    std::string text(100, 0);
    const ssize_t got = recv(fd, text.data(), text.size(), MSG_DONTWAIT);
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    heard.push_back(text);
    EXPECT_EQ(0, close(fd));
  }
  EXPECT_GE(server_, 0);
  std::ranges::sort(heard);
  EXPECT_EQ((std::vector<std::string>{"", "M", std::string(frame.substr(0, 17)), std::string(frame),
                                      "MPA ID Req frame"}),
            heard)
      << "every byte is there";
  for (const int peer : peers) EXPECT_TRUE(IsClosed(peer));
  EXPECT_TRUE(Drain().empty());
}

TEST_F(PlainListenerTest, APeerThatEndsBeforeItSaysSoIsPlainToo) {
  const std::string_view frame("MPA ID Req Frame\0\1\0\4", 20);
  ASSERT_EQ(0, Accept(2));
  close(Say(""));
  EXPECT_EQ(EXS_EVT_ACCEPT, Taken(""));
  const int half_closed = Say(frame.substr(0, 9));
  shutdown(half_closed, SHUT_WR);
  EXPECT_EQ(EXS_EVT_ACCEPT, Taken(frame.substr(0, 9)));
  EXPECT_TRUE(IsClosed(half_closed));
}

TEST_F(PlainListenerTest, ARequestThatComesInPiecesIsOneAndAWrongHelloIsDropped) {
  ASSERT_EQ(0, Accept(1));
  const std::string_view frame("MPA ID Req Frame\0\1\0\4abcd", 24);
  const int peer = Say("");
  for (const char& byte : frame) {
    ASSERT_EQ(1, send(peer, &byte, 1, 0));
    usleep(2000);
  }
  EXPECT_TRUE(IsClosed(peer));
  ASSERT_NO_FATAL_FAILURE(ConnectAccepted());
}

TEST_F(PlainListenerTest, ACancelledAcceptGivesItsSlotsBack) {
  const exs_qhandle_t small = exs_qcreate(4);
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 4, 0, small, nullptr));
  EXPECT_ERRNO(EAGAIN, exs_accept(listener_, nullptr, 1, 0, small, nullptr));
  EXPECT_ERRNO(EBUSY, exs_qdelete(small));
  EXPECT_EQ(0, exs_cancel(listener_, Handle(9), EXS_CAF_AHANDLE));
  EXPECT_EQ(1, exs_cancel(listener_, nullptr, EXS_CAF_FILDES));
  const exs_event_t event = Next(small);
  EXPECT_EQ(ECANCELED, event.exs_evt_errno);
  EXPECT_EQ(-1, event.exs_evt_union.exs_evt_accept.exs_evt_newfd);
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 4, 0, small, nullptr));
  EXPECT_EQ(1, exs_cancel(listener_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next(small).exs_evt_errno);
  EXPECT_EQ(0, exs_qdelete(small));
}

// What its first bytes say is known a second later: the accept that has brought it in is over.
TEST_F(PlainListenerTest, APollTellsOfAConnectionThatTheLibraryHasTakenAlready) {
  ASSERT_EQ(0, Accept(1));
  const int peer = Say("");
  pollfd waits{listener_, POLLIN, 0};
  while (poll(&waits, 1, 0) != 0) continue;  // until it was taken from the system
  ASSERT_EQ(1, exs_cancel(listener_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  exs_pollfd_t polled = {listener_, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(&polled, 1, 0, queue_, nullptr));
  EXPECT_EQ(1, Next().exs_evt_union.exs_evt_poll.exs_evt_ready);
  EXPECT_EQ(EXS_POLLIN, polled.exs_pfd_revents);
  ASSERT_EQ(0, Accept(1));
  const exs_event_t accepted = Next();
  EXPECT_EQ(0, accepted.exs_evt_errno);
  close(accepted.exs_evt_union.exs_evt_accept.exs_evt_newfd);
  close(peer);
}

TEST_F(PlainListenerTest, WrongArgumentsOfAnAcceptAreRefused) {
  EXPECT_ERRNO(EINVAL, exs_accept(listener_, nullptr, 0, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_accept(listener_, nullptr, 257, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_accept(listener_, nullptr, 1, 8, queue_, nullptr));
  EXPECT_ERRNO(EBADF, exs_accept(listener_, nullptr, 1, 0, -1, nullptr));
}

TEST_F(PlainListenerTest, AClosedListenerEndsItsAcceptsAndWhoeverConnects) {
  for (const int flags : {0, EXSX_CLOSE_ABORT}) {
    if (listener_ < 0) SetUp();
    ASSERT_EQ(0, Accept(2));
    const int silent = Say("");
    ASSERT_EQ(0, exs_close(listener_, flags, queue_, Handle(7)));
    EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
    const exs_event_t last = Next();
    EXPECT_EQ(EXS_EVT_CLOSE, last.exs_evt_type);
    EXPECT_EQ(listener_, last.exs_evt_socket);
    EXPECT_EQ(Handle(7), last.exs_evt_ahandle);
    EXPECT_TRUE(IsClosed(silent));
    EXPECT_ERRNO(EBADF, Accept(1));
    listener_ = exs_socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(0, ConnectTo(port_, listener_));
    EXPECT_EQ(ECONNREFUSED, Next().exs_evt_errno);
    ASSERT_EQ(0, exs_close(listener_, 0, EXS_QHANDLE_INVALID, nullptr));
    listener_ = -1;
    ASSERT_EQ(0, exs_qdelete(queue_));
  }
  SetUp();
}

TEST_F(PlainListenerTest, WhatTheSystemsCallsDoToAListenerEndsItsAccepts) {
  ASSERT_EQ(0, Accept(2));
  ASSERT_EQ(0, shutdown(listener_, SHUT_RDWR));
  EXPECT_EQ(EINVAL, Next().exs_evt_errno);
  ASSERT_EQ(0, listen(listener_, 4));
  port_ = PortOf(listener_);
  ASSERT_EQ(0, Accept(1));
  ASSERT_NO_FATAL_FAILURE(ConnectAccepted());
}

}  // namespace
}  // namespace esdp::exs
