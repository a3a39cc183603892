// What a Lender writes arrives as it is, by reference, and no signal comes of it.

#include "impl/fabric/qpip/lender.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fabric/loopback.h"

namespace esdp::fabric::qpip {
namespace {

class LenderTest : public ::testing::Test {
 protected:
  void SetUp() override { Connect({}); }

  void Connect(const QpipOptions& options) {
    TcpStream listener = *ListenOn(Loopback(0), 1);
    writer_ = *TcpStream::Connect(Address{}, listener.LocalAddress(), options);
    int error = 0;
    pollfd waits{listener.descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&waits, 1, 5000), 1);
    ASSERT_EQ(AcceptFrom(listener, reader_, error), IoOutcome::kMoved);
    ASSERT_TRUE(reader_.Configure(options).ok());
    waits = {writer_.descriptor(), POLLOUT, 0};
    ASSERT_EQ(poll(&waits, 1, 5000), 1);
  }

  IoResult Write(std::initializer_list<ConstBytes> pieces) {
    source_.Clear();
    for (const ConstBytes piece : pieces) source_.Add(piece);
    return lender_.Write(writer_, source_);
  }
  // All of it, or what has come when nothing more does for so long.
  std::vector<std::byte> Read(size_t most, int milliseconds = 5000) {
    std::vector<std::byte> got(most);
    size_t count = 0;
    pollfd waits{reader_.descriptor(), POLLIN, 0};
    while (count < most && poll(&waits, 1, milliseconds) == 1) {
      const IoResult result = reader_.Read(Bytes(got).subspan(count));
      if (result.outcome != IoOutcome::kMoved) break;
      count += result.bytes;
    }
    got.resize(count);
    return got;
  }

  Lender lender_ = *Lender::Open();
  TcpStream writer_;
  TcpStream reader_;
  IoVector source_;
};

std::vector<std::byte> Random(size_t length, std::mt19937& random) {
  std::vector<std::byte> bytes(length);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The peer takes little at a time, so that writes end at every place of a piece and of a page.
TEST_F(LenderTest, PiecesOfEverySizeArriveInOrderHoweverTheStreamIsCut) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Connect({.send_buffer_bytes = 30000});
  const std::vector<std::byte> memory = Random(300000, random);
  for (int round = 0; round < 30; ++round) {
    source_.Clear();
    std::vector<std::byte> expected;
    for (int i = 0; i < 7; ++i) {
      const size_t length = random() % 2 == 0 ? random() % 100 : random() % 70000;
      const ConstBytes piece = ConstBytes(memory).subspan(random() % 200000, length);
      source_.Add(piece);
      expected.insert(expected.end(), piece.begin(), piece.end());
    }
    std::vector<std::byte> got;
    while (got.size() < expected.size()) {
      const int writer = source_.bytes() == 0 ? -1 : writer_.descriptor();
      pollfd waits[] = {{writer, POLLOUT, 0}, {reader_.descriptor(), POLLIN, 0}};
      ASSERT_GT(poll(waits, 2, 5000), 0) << got.size() << " of " << expected.size();
      if (waits[0].revents != 0) {
        const IoResult result = lender_.Write(writer_, source_);
        ASSERT_NE(result.outcome, IoOutcome::kFailed) << result.error;
        source_.Skip(result.bytes);
      }
      const std::vector<std::byte> part = Read(random() % 40000 + 1, 0);
      got.insert(got.end(), part.begin(), part.end());
    }
    ASSERT_TRUE(got == expected) << "round " << round;
  }
}

TEST_F(LenderTest, ALargePieceIsNotCopiedAndASmallOneIs) {
  std::vector<std::byte> memory(4 * Lender::kPieceMin, std::byte{1});
  const ConstBytes large = ConstBytes(memory).last(3 * Lender::kPieceMin);
  const ConstBytes small = ConstBytes(memory).first(100);
  const IoResult result = Write({small, large});
  ASSERT_EQ(result.outcome, IoOutcome::kMoved);
  ASSERT_GT(result.bytes, small.size());
  std::fill(memory.begin(), memory.end(), std::byte{2});
  const std::vector<std::byte> got = Read(result.bytes);
  ASSERT_EQ(got.size(), result.bytes);
  EXPECT_EQ(got[0], std::byte{1});
  EXPECT_EQ(got[small.size() - 1], std::byte{1});
  EXPECT_EQ(got[small.size()], std::byte{2});
  EXPECT_EQ(got.back(), std::byte{2});
}

// From now on a system call fails in this thread, as on a system that refuses it.
void Forbid(uint32_t call) {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EFAULT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(steps), .filter = steps};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST_F(LenderTest, WhatTheSystemDoesNotLendIsCopied) {
  std::vector<std::byte> memory(4 * Lender::kPieceMin, std::byte{1});
  IoResult result;
  std::thread([&] {
    ASSERT_NO_FATAL_FAILURE(Forbid(SYS_vmsplice));
    result = Write({memory});
  }).join();
  ASSERT_EQ(result.outcome, IoOutcome::kMoved) << result.error;
  std::fill(memory.begin(), memory.end(), std::byte{2});
  const std::vector<std::byte> got = Read(result.bytes);
  EXPECT_EQ(got, std::vector<std::byte>(result.bytes, std::byte{1}));
}

// What stays in the pipe would go to the next stream.
TEST_F(LenderTest, PagesThatCannotBeTakenBackAreNeverSentAndNoneAreLentAfterThem) {
  const std::vector<std::byte> stuck(4 * Lender::kPieceMin, std::byte{1});
  std::thread([&] {
    ASSERT_NO_FATAL_FAILURE(Forbid(SYS_splice));
    EXPECT_EQ(Write({stuck}).outcome, IoOutcome::kFailed);
  }).join();
  std::vector<std::byte> memory(4 * Lender::kPieceMin, std::byte{2});
  const IoResult result = Write({memory});
  ASSERT_EQ(result.outcome, IoOutcome::kMoved) << result.error;
  std::fill(memory.begin(), memory.end(), std::byte{3});
  EXPECT_EQ(Read(result.bytes), std::vector<std::byte>(result.bytes, std::byte{2}));
}

TEST_F(LenderTest, MemoryThatIsNotThereIsAnError) {
  constexpr size_t kBytes = 4 * Lender::kPieceMin;
  void* const nothing = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  const IoResult result = Write({ConstBytes(static_cast<std::byte*>(nothing), kBytes)});
  EXPECT_EQ(result.outcome, IoOutcome::kFailed);
  EXPECT_EQ(result.error, EFAULT);
  munmap(nothing, kBytes);
}

TEST_F(LenderTest, AFullStreamTakesNothing) {
  const std::vector<std::byte> memory(size_t{1} << 20, std::byte{1});
  IoResult result;
  do {
    result = Write({memory});
  } while (result.outcome == IoOutcome::kMoved);
  EXPECT_EQ(result.outcome, IoOutcome::kWouldBlock);
}

// It would end this program. The first pieces leave, and their answer is that the peer is gone. It
// comes in the middle of the write, unless the system is busy with other things.
TEST_F(LenderTest, APeerThatGoesInTheMiddleOfAWriteIsNoSignal) {
  const std::vector<std::byte> memory(size_t{1} << 20);
  bool in_the_middle = false;
  for (int attempts = 0; attempts < 100 && !in_the_middle; ++attempts) {
    ASSERT_NO_FATAL_FAILURE(Connect({}));
    reader_.Close();
    const IoResult result = Write({memory});
    ASSERT_EQ(result.outcome, IoOutcome::kMoved);
    in_the_middle = result.bytes < memory.size() && Write({memory}).outcome == IoOutcome::kFailed;
  }
  EXPECT_TRUE(in_the_middle) << "nothing went wrong in it";
}

class LenderSignalTest : public LenderTest {
 protected:
  void SetUp() override {
    LenderTest::SetUp();
    reader_.Abort();
    pollfd waits{writer_.descriptor(), POLLERR, 0};
    ASSERT_EQ(poll(&waits, 1, 5000), 1);
    while (writer_.TakeError() == 0) {
    }
  }
  static bool IsPending() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
  }

  const std::vector<std::byte> memory_ = std::vector<std::byte>(4 * Lender::kPieceMin);
};

// It would end this program.
TEST_F(LenderSignalTest, APeerThatIsGoneIsAnErrorAndNoSignal) {
  const IoResult result = Write({memory_});
  EXPECT_EQ(result.outcome, IoOutcome::kFailed);
  EXPECT_EQ(result.error, EPIPE);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGPIPE), 0) << "the caller's mask has changed";
}

TEST_F(LenderSignalTest, TheCallersOwnPendingSignalIsLeftToIt) {
  sigset_t pipe;
  sigset_t before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  EXPECT_EQ(Write({memory_}).error, EPIPE);
  EXPECT_FALSE(IsPending()) << "it was ours";
  raise(SIGPIPE);
  EXPECT_EQ(Write({memory_}).error, EPIPE);
  EXPECT_TRUE(IsPending()) << "it was the caller's";
  const timespec at_once{};
  EXPECT_EQ(sigtimedwait(&pipe, nullptr, &at_once), SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace esdp::fabric::qpip
