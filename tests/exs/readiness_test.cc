#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "tests/exs/pair.h"

// What the numbers of the library show to poll, select and epoll.

namespace esdp::exs {
namespace {

constexpr int kLong = 20 * 1000;  // ms; a hang fails

class ReadinessTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  static int PollFor(int fd, int events, int timeout) {
    pollfd asked{fd, static_cast<short>(events), 0};
    const int ready = poll(&asked, 1, timeout);
    return ready < 0 ? -1 : asked.revents;
  }
  static void Say(int fd, size_t bytes = 1) {
    const std::vector<char> text(bytes, 'x');
    ASSERT_EQ(static_cast<ssize_t>(bytes), send(fd, text.data(), bytes, 0));
  }
  static size_t Take(int fd, size_t most) {
    std::vector<char> got(most);
    const ssize_t bytes = recv(fd, got.data(), most, MSG_DONTWAIT);
    return bytes < 0 ? 0 : static_cast<size_t>(bytes);
  }
};

TEST_F(ReadinessTest, ANumberIsReadableFromTheFirstByteToTheLast) {
  EXPECT_EQ(0, PollFor(server_, POLLIN, 0));
  EXPECT_EQ(POLLOUT, PollFor(server_, POLLIN | POLLOUT, 0));
  std::thread later([&] {
    usleep(20 * 1000);
    ASSERT_NO_FATAL_FAILURE(Say(client_, 3));
  });
  EXPECT_EQ(POLLIN, PollFor(server_, POLLIN, kLong));
  later.join();
  EXPECT_EQ(2u, Take(server_, 2));
  EXPECT_EQ(POLLIN, PollFor(server_, POLLIN, 0)) << "a byte is left";
  EXPECT_EQ(1u, Take(server_, 2));
  EXPECT_EQ(0, PollFor(server_, POLLIN, 0));
}

TEST_F(ReadinessTest, TenThousandMessagesAreNeverLeftUnshown) {
  std::thread peer([&] {
    for (int i = 0; i < 10 * 1000; ++i) {
      char byte = 0;
      ASSERT_EQ(1, recv(server_, &byte, 1, 0));
      ASSERT_NO_FATAL_FAILURE(Say(server_));
    }
  });
  for (int i = 0; i < 10 * 1000; ++i) {
    ASSERT_NO_FATAL_FAILURE(Say(client_));
    ASSERT_EQ(POLLIN, PollFor(client_, POLLIN, kLong)) << i;
    ASSERT_EQ(1u, Take(client_, 1)) << "what was shown was not there";
  }
  peer.join();
}

TEST_F(ReadinessTest, TheEndOfTheStreamIsShownAndAResetToo) {
  EXPECT_EQ(0, PollFor(server_, POLLIN | POLLRDHUP, 0));
  ASSERT_EQ(0, shutdown(client_, SHUT_WR));
  EXPECT_EQ(POLLIN | POLLRDHUP, PollFor(server_, POLLIN | POLLRDHUP, kLong));
  ASSERT_EQ(0, shutdown(server_, SHUT_WR));
  EXPECT_EQ(POLLHUP, PollFor(server_, 0, kLong)) << "both have ended";
  EXPECT_EQ(0, PollFor(client_, POLLPRI, 0) & POLLERR);
  ASSERT_EQ(0, exs_close(server_, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr));
  server_ = -1;
}

TEST_F(ReadinessTest, AResetIsShownAsAnError) {
  EXPECT_EQ(0, PollFor(server_, POLLIN, 0));
  ASSERT_EQ(0, exs_close(client_, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr));
  client_ = -1;
  EXPECT_EQ(POLLERR | POLLHUP, PollFor(server_, 0, kLong));
  EXPECT_NE(0, PollFor(server_, POLLIN, 0) & POLLIN) << "a read tells";
}

TEST_F(ReadinessTest, WithoutRoomItIsNotWritableUntilThePeerReads) {
  const std::vector<char> bytes(100 * 1000);
  size_t sent = 0;
  do {
    const ssize_t more = send(client_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (more > 0) sent += static_cast<size_t>(more);
  } while (PollFor(client_, POLLOUT, 20) == POLLOUT);
  EXPECT_GT(sent, 0u);
  std::thread reader([&] {
    std::vector<char> got(sent);
    EXPECT_EQ(static_cast<ssize_t>(sent), recv(server_, got.data(), sent, MSG_WAITALL));
  });
  EXPECT_EQ(POLLOUT, PollFor(client_, POLLOUT, kLong));
  reader.join();
}

TEST_F(ReadinessTest, AnEdgeComesWithEachArrivalAfterAllWasRead) {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{};
  wanted.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(0, epoll_ctl(set, EPOLL_CTL_ADD, server_, &wanted));
  std::array<epoll_event, 4> ready;
  EXPECT_EQ(0, epoll_wait(set, ready.data(), 4, 0));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NO_FATAL_FAILURE(Say(client_, 5));
    size_t taken = 0;
    while (taken < 5) {
      ASSERT_EQ(1, epoll_wait(set, ready.data(), 4, kLong));
      for (size_t more = 1; more > 0; taken += more) more = Take(server_, 2);
    }
    ASSERT_EQ(5u, taken);
  }
  close(set);
}

TEST_F(ReadinessTest, SelectSeesTheSame) {
  fd_set in;
  FD_ZERO(&in);
  FD_SET(server_, &in);
  timeval now{0, 0};
  EXPECT_EQ(0, select(server_ + 1, &in, nullptr, nullptr, &now));
  ASSERT_NO_FATAL_FAILURE(Say(client_));
  FD_SET(server_, &in);
  const timespec bound{20, 0};
  EXPECT_EQ(1, pselect(server_ + 1, &in, nullptr, nullptr, &bound, nullptr));
  EXPECT_TRUE(FD_ISSET(server_, &in));
  pollfd asked{server_, POLLIN, 0};
  EXPECT_EQ(1, ppoll(&asked, 1, &bound, nullptr));
}

TEST_F(ReadinessTest, BytesThatAPostedReceiveTakesAreNotShown) {
  EXPECT_EQ(0, PollFor(server_, POLLIN, 0));
  char posted[2];
  ASSERT_EQ(0,
            exs_recv(server_, posted, 2, MSG_WAITALL, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  ASSERT_NO_FATAL_FAILURE(Say(client_, 2));
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_EQ(0, PollFor(server_, POLLIN, 20));
  ASSERT_NO_FATAL_FAILURE(Say(client_, 1));
  EXPECT_EQ(POLLIN, PollFor(server_, POLLIN, kLong));
  ASSERT_EQ(0, exs_recv(server_, posted, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_EQ(0, PollFor(server_, POLLIN, 0));
}

TEST_F(ReadinessTest, AListenerIsReadableWhileAConnectionWaits) {
  EXPECT_EQ(0, PollFor(listener_, POLLIN | POLLOUT, 0));
  const int fresh = exs_socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in to = Loopback(port_);
  ASSERT_EQ(0, connect(fresh, AsSockaddr(to), sizeof(to)));
  EXPECT_EQ(POLLIN, PollFor(listener_, POLLIN | POLLOUT, kLong));
  const int taken = accept(listener_, nullptr, nullptr);
  EXPECT_GE(taken, 0);
  EXPECT_EQ(0, PollFor(listener_, POLLIN, 0));
  for (const int fd : {fresh, taken}) EXPECT_EQ(0, close(fd));
}

TEST_F(ReadinessTest, ASocketThatIsNotConnectedShowsNothing) {
  const int fresh = exs_socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(0, PollFor(fresh, POLLIN | POLLOUT, 0));
  EXPECT_EQ(0, close(fresh));
}

}  // namespace
}  // namespace esdp::exs
