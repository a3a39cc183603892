#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "tests/exs/pair.h"

// Operations that are posted on a TCP socket of the system.

namespace esdp::exs {
namespace {

class PlainStreamTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = Loopback(0);
    socklen_t len = sizeof(at);
    ASSERT_EQ(0, bind(listener, AsSockaddr(at), len));
    ASSERT_EQ(0, listen(listener, 1));
    ASSERT_EQ(0, getsockname(listener, reinterpret_cast<sockaddr*>(&at), &len));
    ours_ = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(0, connect(ours_, AsSockaddr(at), len));
    peer_ = accept(listener, nullptr, nullptr);
    ASSERT_GE(peer_, 0);
    const timeval bound{20, 0};
    setsockopt(peer_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
    close(listener);
  }
  void TearDown() override {
    for (const int fd : {ours_, peer_}) {
      if (fd >= 0) close(fd);
    }
    ExsTest::TearDown();
  }
  int PostSend(const void* bytes, size_t len, int flags = 0, uintptr_t handle = 3) {
    return exs_send(ours_, bytes, len, flags, queue_, Handle(handle), EXS_MHANDLE_UNREGISTERED);
  }
  int PostRecv(void* bytes, size_t len, int flags = 0, uintptr_t handle = 4) {
    return exs_recv(ours_, bytes, len, flags, queue_, Handle(handle), EXS_MHANDLE_UNREGISTERED);
  }
  // The next event of a transfer.
  void ExpectNext(int type, int error, uint64_t bytes, uint32_t flags) {
    const exs_event_t event = Next();
    EXPECT_EQ(type, event.exs_evt_type);
    EXPECT_EQ(error, event.exs_evt_errno);
    EXPECT_EQ(ours_, event.exs_evt_socket);
    EXPECT_EQ(bytes, event.exs_evt_union.exs_evt_xfer.exs_evt_length);
    EXPECT_EQ(flags, event.exs_evt_flags);
  }
  void Reset() {
    const linger now{1, 0};
    setsockopt(peer_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    ASSERT_EQ(0, close(peer_));
    peer_ = -1;
  }

  int ours_ = -1;
  int peer_ = -1;
};

TEST_F(PlainStreamTest, BytesAreCopiedBothWaysAndEventsSaySo) {
  ASSERT_EQ(0, PostSend("abc", 3));
  ExpectNext(EXS_EVT_SEND, 0, 3, EXSX_EVF_COPIED);
  char got[8] = {};
  EXPECT_EQ(3, recv(peer_, got, sizeof(got), 0));
  ASSERT_EQ(0, PostRecv(got, sizeof(got)));
  EXPECT_TRUE(NothingComes(queue_));
  ASSERT_EQ(2, send(peer_, "de", 2, 0));
  ExpectNext(EXS_EVT_RECV, 0, 2, EXSX_EVF_COPIED);
  EXPECT_EQ("dec", std::string(got, 3));
}

TEST_F(PlainStreamTest, WhatThePeerDoesNotTakeYetWaitsAndKeepsItsOrder) {
  const std::vector<uint8_t> large = Pattern(8 * 1024 * 1024);
  exs_mhandle_t memory = exs_mregister(const_cast<uint8_t*>(large.data()), large.size(), 0);
  ASSERT_EQ(0, exs_send(ours_, large.data(), large.size(), 0, queue_, Handle(1), memory));
  ASSERT_EQ(0, PostSend("xyz", 3, 0, 2));
  EXPECT_TRUE(NothingComes(queue_));
  std::vector<uint8_t> got(large.size() + 3);
  ASSERT_EQ(static_cast<ssize_t>(got.size()), recv(peer_, got.data(), got.size(), MSG_WAITALL));
  EXPECT_TRUE(std::equal(large.begin(), large.end(), got.begin()));
  EXPECT_EQ('z', got.back());
  const exs_event_t first = Next();
  EXPECT_EQ(Handle(1), first.exs_evt_ahandle);
  EXPECT_EQ(large.size(), first.exs_evt_union.exs_evt_xfer.exs_evt_length);
  EXPECT_EQ(Handle(2), Next().exs_evt_ahandle);
  EXPECT_EQ(0, exs_mderegister(memory));
}

TEST_F(PlainStreamTest, AReceiveOfAllWaitsForAllAndOneThatPeeksTakesNothing) {
  char got[6] = {};
  ASSERT_EQ(0, PostRecv(got, 2, MSG_PEEK));
  ASSERT_EQ(0, PostRecv(got, 6, MSG_WAITALL));
  ASSERT_EQ(3, send(peer_, "abc", 3, 0));
  ExpectNext(EXS_EVT_RECV, 0, 2, EXSX_EVF_COPIED);
  EXPECT_TRUE(NothingComes(queue_));
  ASSERT_EQ(3, send(peer_, "def", 3, 0));
  ExpectNext(EXS_EVT_RECV, 0, 6, EXSX_EVF_COPIED);
  EXPECT_EQ("abcdef", std::string(got, 6));
  EXPECT_ERRNO(EOPNOTSUPP, PostRecv(got, 2, MSG_PEEK | MSG_WAITALL));
  EXPECT_ERRNO(EINVAL, PostRecv(got, 2, 1 << 30));
  EXPECT_ERRNO(EFAULT, PostRecv(nullptr, 2));
}

TEST_F(PlainStreamTest, SeveralRangesAreOneMessage) {
  char ab[] = "ab";
  char cd[] = "cd";
  exs_iovec_t ranges[2] = {{ab, 2, EXS_MHANDLE_UNREGISTERED, 0, {}},
                           {cd, 2, EXS_MHANDLE_UNREGISTERED, 0, {}}};
  exs_msghdr_t message = {ranges, 2, {}};
  ASSERT_EQ(0, exs_sendmsg(ours_, &message, 0, queue_, nullptr));
  const exs_event_t sent = Next();
  EXPECT_EQ(&message, sent.exs_evt_union.exs_evt_xfermsg.exs_evt_msg);
  EXPECT_EQ(4u, sent.exs_evt_union.exs_evt_xfermsg.exs_evt_length);
  char got[4] = {};
  ASSERT_EQ(4, recv(peer_, got, 4, MSG_WAITALL));
  EXPECT_EQ("abcd", std::string(got, 4));
  ASSERT_EQ(4, send(peer_, "efgh", 4, 0));
  ASSERT_EQ(0, exs_recvmsg(ours_, &message, MSG_WAITALL, queue_, nullptr));
  EXPECT_EQ(4u, Next().exs_evt_union.exs_evt_xfermsg.exs_evt_length);
  EXPECT_STREQ("ef", ab);
  EXPECT_STREQ("gh", cd);
  EXPECT_ERRNO(EFAULT, exs_sendmsg(ours_, nullptr, 0, queue_, nullptr));
}

TEST_F(PlainStreamTest, AFileIsSentAndOneThatIsShorterIsEio) {
  const int file = memfd_create("file", MFD_CLOEXEC);
  const std::vector<uint8_t> bytes = Pattern(200 * 1000);
  ASSERT_EQ(static_cast<ssize_t>(bytes.size()), write(file, bytes.data(), bytes.size()));
  for (const bool whole : {true, false}) {
    exsx_xferpart_t part{};
    part.exsx_xfp_kind = EXS_FDVEC;
    part.exsx_xfp.exsx_xfp_fdv.exs_fdv_fd = file;
    part.exsx_xfp.exsx_xfp_fdv.exs_fdv_len = bytes.size() + (whole ? 0 : 1);
    exs_xferfile_t transfer{};
    transfer.exs_xf_parts = &part;
    transfer.exs_xf_count = 1;
    ASSERT_EQ(0, exs_sendfile(ours_, &transfer, 0, queue_, nullptr));
    std::vector<uint8_t> got(bytes.size());
    ASSERT_EQ(static_cast<ssize_t>(got.size()), recv(peer_, got.data(), got.size(), MSG_WAITALL));
    EXPECT_EQ(bytes, got);
    const exs_event_t event = Next();
    EXPECT_EQ(whole ? 0 : EIO, event.exs_evt_errno);
    EXPECT_EQ(bytes.size(), event.exs_evt_union.exs_evt_xferfile.exs_evt_length);
  }
  close(file);
}

TEST_F(PlainStreamTest, TheEndOfTheStreamIsAReceiveOfNoByte) {
  char got[4] = {};
  ASSERT_EQ(0, PostRecv(got, 4, MSG_WAITALL));
  ASSERT_EQ(1, send(peer_, "a", 1, 0));
  ASSERT_EQ(0, shutdown(peer_, SHUT_WR));
  ExpectNext(EXS_EVT_RECV, 0, 1, EXSX_EVF_COPIED | EXSX_EVF_EOF);
  ASSERT_EQ(0, PostRecv(got, 4));
  ExpectNext(EXS_EVT_RECV, 0, 0, EXSX_EVF_EOF);
}

TEST_F(PlainStreamTest, AResetEndsEveryOperationWithIt) {
  const std::vector<uint8_t> large = Pattern(8 * 1024 * 1024);
  char byte = 0;
  ASSERT_EQ(0, PostRecv(&byte, 1));
  ASSERT_EQ(0, PostRecv(&byte, 1));
  ASSERT_EQ(0, PostSend(large.data(), large.size()));
  ASSERT_NO_FATAL_FAILURE(Reset());
  int resets = 0;
  for (int i = 0; i < 3; ++i) {
    const int error = Next().exs_evt_errno;
    EXPECT_TRUE(error == ECONNRESET || error == EPIPE) << error;
    if (error == ECONNRESET) ++resets;
  }
  EXPECT_GE(resets, 1);
  EXPECT_ERRNO(ECONNRESET, PostRecv(&byte, 1));
}

TEST_F(PlainStreamTest, AShutdownComesBehindTheSends) {
  const std::vector<uint8_t> large = Pattern(8 * 1024 * 1024);
  ASSERT_EQ(0, PostSend(large.data(), large.size()));
  ASSERT_EQ(0, exs_shutdown(ours_, EXS_SHUT_WR, 0, queue_, Handle(9)));
  std::vector<uint8_t> got(large.size() + 1);
  EXPECT_EQ(static_cast<ssize_t>(large.size()), recv(peer_, got.data(), got.size(), MSG_WAITALL));
  EXPECT_EQ(EXS_EVT_SEND, Next().exs_evt_type);
  const exs_event_t shut = Next();
  EXPECT_EQ(EXS_EVT_SHUTDOWN, shut.exs_evt_type);
  EXPECT_EQ(Handle(9), shut.exs_evt_ahandle);
  ASSERT_EQ(0, PostSend("x", 1));
  EXPECT_EQ(EPIPE, Next().exs_evt_errno);
  EXPECT_ERRNO(EINVAL, exs_shutdown(ours_, 77, 0, queue_, nullptr));
}

TEST_F(PlainStreamTest, ACancelEndsThemWithTheirCount) {
  char got[4] = {};
  ASSERT_EQ(0, PostRecv(got, 4, MSG_WAITALL, 1));
  ASSERT_EQ(0, PostRecv(got, 4, 0, 2));
  ASSERT_EQ(2, send(peer_, "ab", 2, 0));
  usleep(20 * 1000);
  EXPECT_EQ(1, exs_cancel(ours_, Handle(1), EXS_CAF_AHANDLE));
  ExpectNext(EXS_EVT_RECV, ECANCELED, 2, EXSX_EVF_COPIED);
  EXPECT_EQ(1, exs_cancel(ours_, nullptr, EXS_CAF_FILDES));
  ExpectNext(EXS_EVT_RECV, ECANCELED, 0, 0);
  EXPECT_EQ(0, exs_cancel(ours_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(0, exs_cancel(peer_, nullptr, EXS_CAF_FILDES)) << "nothing was posted there";
}

TEST_F(PlainStreamTest, ACloseComesBehindTheSendsAndEndsTheReceives) {
  const std::vector<uint8_t> large = Pattern(8 * 1024 * 1024);
  char byte = 0;
  ASSERT_EQ(0, PostRecv(&byte, 1));
  ASSERT_EQ(0, PostSend(large.data(), large.size()));
  ASSERT_EQ(0, exs_close(ours_, 0, queue_, Handle(9)));
  ExpectNext(EXS_EVT_RECV, ECANCELED, 0, 0);
  EXPECT_ERRNO(EBADF, PostSend("x", 1));
  std::vector<uint8_t> got(large.size() + 1);
  EXPECT_EQ(static_cast<ssize_t>(large.size()), recv(peer_, got.data(), got.size(), MSG_WAITALL));
  ExpectNext(EXS_EVT_SEND, 0, large.size(), EXSX_EVF_COPIED);
  EXPECT_EQ(EXS_EVT_CLOSE, Next().exs_evt_type);
  EXPECT_EQ(-1, fcntl(ours_, F_GETFD)) << "the number is free";
  ours_ = -1;
}

TEST_F(PlainStreamTest, ACloseThatNobodyHearsOfFreesTheNumberAndWhatWasPostedLeaves) {
  const std::vector<uint8_t> large = Pattern(8 * 1024 * 1024);
  ASSERT_EQ(0, PostSend(large.data(), large.size()));
  ASSERT_EQ(0, exs_close(ours_, 0, EXS_QHANDLE_INVALID, nullptr));
  EXPECT_EQ(-1, fcntl(ours_, F_GETFD));
  std::vector<uint8_t> got(large.size() + 1);
  EXPECT_EQ(static_cast<ssize_t>(large.size()), recv(peer_, got.data(), got.size(), MSG_WAITALL));
  EXPECT_EQ(0, Next().exs_evt_errno);
  ours_ = -1;
}

TEST_F(PlainStreamTest, AnAbortResets) {
  const std::vector<uint8_t> large = Pattern(8 * 1024 * 1024);
  ASSERT_EQ(0, PostSend(large.data(), large.size()));
  ASSERT_EQ(0, exs_close(ours_, EXSX_CLOSE_ABORT, queue_, nullptr));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  EXPECT_EQ(EXS_EVT_CLOSE, Next().exs_evt_type);
  std::vector<uint8_t> got(large.size());
  EXPECT_ERRNO(ECONNRESET, [&] {
    while (recv(peer_, got.data(), got.size(), 0) > 0) continue;
    return -1;
  }());
  ours_ = -1;
}

TEST_F(PlainStreamTest, NamesAndOptionsAreTheSystems) {
  sockaddr_in name{};
  socklen_t len = sizeof(name);
  EXPECT_EQ(0, exs_getpeername(ours_, reinterpret_cast<sockaddr*>(&name), &len));
  EXPECT_NE(0, name.sin_port);
  int value = 1;
  len = sizeof(value);
  EXPECT_EQ(0, exs_setsockopt(ours_, SOL_SOCKET, SO_KEEPALIVE, &value, len));
  value = 0;
  EXPECT_EQ(0, exs_getsockopt(ours_, SOL_SOCKET, SO_KEEPALIVE, &value, &len));
  EXPECT_EQ(1, value);
  EXPECT_EQ(0, exs_fcntl(ours_, F_SETFL, O_NONBLOCK));
  EXPECT_EQ(O_NONBLOCK, exs_fcntl(ours_, F_GETFL, 0) & O_NONBLOCK);
}

TEST_F(PlainStreamTest, AFullQueueRefusesAPost) {
  const exs_qhandle_t small = exs_qcreate(1);
  char byte = 0;
  const auto post = [&] {
    return exs_recv(ours_, &byte, 1, 0, small, nullptr, EXS_MHANDLE_UNREGISTERED);
  };
  ASSERT_EQ(0, post());
  EXPECT_ERRNO(EAGAIN, post());
  EXPECT_EQ(1, exs_cancel(ours_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next(small).exs_evt_errno);
  EXPECT_EQ(0, exs_qdelete(small));
}

using PlainStreamCloseTest = PlainStreamTest;

TEST_F(PlainStreamCloseTest, ACloseByCloseEndsWhatWasPostedAndThePeerSeesIt) {
  char byte = 0;
  ASSERT_EQ(0, PostRecv(&byte, 1));
  ASSERT_EQ(0, close(ours_));
  ExpectNext(EXS_EVT_RECV, ECANCELED, 0, 0);
  EXPECT_EQ(0, recv(peer_, &byte, 1, 0));
  EXPECT_ERRNO(EBADF, PostRecv(&byte, 1));
  ours_ = -1;
}

TEST_F(PlainStreamCloseTest, OneThatNoCallToldIsNoticedToo) {
  char byte = 0;
  ASSERT_EQ(0, PostRecv(&byte, 1));
  const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_EQ(ours_, dup2(other, ours_));
  ExpectNext(EXS_EVT_RECV, ECANCELED, 0, 0);
  EXPECT_EQ(0, recv(peer_, &byte, 1, 0));
  EXPECT_ERRNO(ENOTSOCK, PostRecv(&byte, 1));
  close(other);
}

}  // namespace
}  // namespace esdp::exs
