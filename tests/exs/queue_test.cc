#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/exs/pair.h"

namespace esdp::exs {
namespace {

class QueueTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  // Each gives one event, at once or soon.
  void PostSends(int count) {
    static const uint8_t byte = 1;
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(0, exs_send(client_, &byte, 1, 0, queue_, Handle(static_cast<uintptr_t>(i)),
                            EXS_MHANDLE_UNREGISTERED));
    }
  }
  std::array<exs_event_t, 300> events_;
};

bool Readable(int fd, int wait_ms) {
  pollfd asked{fd, POLLIN, 0};
  return poll(&asked, 1, wait_ms) == 1;
}

TEST_F(QueueTest, ANegativeCountTakesExactlySoManyAndLeavesTheRest) {
  PostSends(5);
  ASSERT_EQ(3, exs_qdequeue(queue_, events_.data(), -3, nullptr));
  EXPECT_EQ(2, exs_qdequeue(queue_, events_.data(), -2, nullptr));
  EXPECT_EQ(Handle(3), events_[0].exs_evt_ahandle);
}

TEST_F(QueueTest, APositiveCountTakesWhatIsThere) {
  PostSends(2);
  ASSERT_EQ(2, exs_qdequeue(queue_, events_.data(), -2, nullptr));
  PostSends(1);
  EXPECT_EQ(1, exs_qdequeue(queue_, events_.data(), 100, nullptr));
}

TEST_F(QueueTest, CountZeroAnswersAtOnceWhateverIsOutstanding) {
  EXPECT_EQ(0, exs_qdequeue(queue_, events_.data(), 0, nullptr));
  EXPECT_EQ(0, exs_qdequeue(queue_, nullptr, -0, nullptr));
}

TEST_F(QueueTest, AThresholdThatIsNotReachedInTimeTakesNothing) {
  PostSends(2);
  timeval soon{0, 30 * 1000};
  EXPECT_ERRNO(ETIMEDOUT, exs_qdequeue(queue_, events_.data(), -3, &soon));
  EXPECT_EQ(2, exs_qdequeue(queue_, events_.data(), -2, nullptr));
  timeval now{0, 0};
  EXPECT_ERRNO(ETIMEDOUT, exs_qdequeue(queue_, events_.data(), -1, &now));
  EXPECT_EQ(0, exs_qdequeue(queue_, events_.data(), 1, &now));
  EXPECT_EQ(0, exs_qdequeue(queue_, events_.data(), 1, &soon));
}

TEST_F(QueueTest, WrongArgumentsOfADequeueAreRefused) {
  timeval negative{-1, 0};
  timeval too_many{0, 1000 * 1000};
  exs_event_t* out = events_.data();
  EXPECT_ERRNO(EBADF, exs_qdequeue(-1, out, 1, nullptr));
  EXPECT_ERRNO(EBADF, exs_qdequeue(client_, out, 1, nullptr));
  EXPECT_ERRNO(EFAULT, exs_qdequeue(queue_, nullptr, 1, nullptr));
  EXPECT_ERRNO(EINVAL, exs_qdequeue(queue_, out, -257, nullptr));
  EXPECT_ERRNO(EINVAL, exs_qdequeue(queue_, out, INT32_MIN, nullptr));
  EXPECT_ERRNO(EINVAL, exs_qdequeue(queue_, out, 1, &negative));
  EXPECT_ERRNO(EINVAL, exs_qdequeue(queue_, out, 1, &too_many));
  EXPECT_ERRNO(EINVAL, exs_qcreate(0));
  EXPECT_ERRNO(EINVAL, exs_qcreate(-1));
  EXPECT_ERRNO(EINVAL, exs_qcreate((1 << 19) + 1));
  EXPECT_ERRNO(EBADF, exs_qdelete(-1));
}

TEST_F(QueueTest, ErrnoIsLeftAloneBySuccess) {
  errno = 77;
  EXPECT_EQ(0, exs_qdequeue(queue_, events_.data(), 0, nullptr));
  const exs_qhandle_t other = exs_qcreate(1);
  EXPECT_EQ(0, exs_qdelete(other));
  EXPECT_EQ(77, errno);
}

TEST_F(QueueTest, ADeletedQueueIsNone) {
  const exs_qhandle_t other = exs_qcreate(1);
  ASSERT_EQ(0, exs_qdelete(other));
  EXPECT_ERRNO(EBADF, exs_qdequeue(other, events_.data(), 1, nullptr));
  EXPECT_ERRNO(EBADF, exs_qdelete(other));
}

TEST_F(QueueTest, AQueueThatOperationsNameIsNotDeleted) {
  uint8_t byte = 0;
  ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_ERRNO(EBUSY, exs_qdelete(queue_));
  EXPECT_EQ(1, exs_cancel(client_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
}

TEST_F(QueueTest, ItsHandleIsReadableWhileEventsWait) {
  EXPECT_FALSE(Readable(queue_, 0));
  PostSends(2);
  EXPECT_TRUE(Readable(queue_, 5000));
  ASSERT_EQ(1, exs_qdequeue(queue_, events_.data(), 1, nullptr));
  ASSERT_EQ(1, exs_qdequeue(queue_, events_.data(), -1, nullptr));
  EXPECT_FALSE(Readable(queue_, 0));
}

TEST_F(QueueTest, WhatAnInterruptedWaitFoundStaysAndIsShown) {
  PostSends(2);
  timeval soon{0, 10 * 1000};
  EXPECT_ERRNO(ETIMEDOUT, exs_qdequeue(queue_, events_.data(), -3, &soon));
  EXPECT_TRUE(Readable(queue_, 0));
  EXPECT_EQ(2, exs_qdequeue(queue_, events_.data(), -2, nullptr));
  EXPECT_FALSE(Readable(queue_, 0));
}

TEST_F(QueueTest, EpollInEdgeModeTellsOfEachArrivalInAnEmptyQueue) {
  const int set = epoll_create1(0);
  epoll_event wanted{};
  wanted.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(0, epoll_ctl(set, EPOLL_CTL_ADD, queue_, &wanted));
  for (int i = 0; i < 3; ++i) {
    PostSends(1);
    EXPECT_EQ(1, epoll_wait(set, &wanted, 1, 5000));
    ASSERT_EQ(1, exs_qdequeue(queue_, events_.data(), 1, nullptr));
  }
  close(set);
}

TEST_F(QueueTest, ASignalEndsAWaitAndTakesNothing) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  PostSends(1);
  const itimerval every{{0, 20 * 1000}, {0, 20 * 1000}};
  const itimerval never{};
  setitimer(ITIMER_REAL, &every, nullptr);
  EXPECT_ERRNO(EINTR, exs_qdequeue(queue_, events_.data(), -2, nullptr));
  setitimer(ITIMER_REAL, &never, nullptr);
  EXPECT_EQ(1, exs_qdequeue(queue_, events_.data(), -1, nullptr));
}

TEST_F(QueueTest, ManySignalsLoseNoEvent) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every{{0, 500}, {0, 500}};
  const itimerval never{};
  setitimer(ITIMER_REAL, &every, nullptr);
  std::vector<uint8_t> to(1);
  uintptr_t next = 0;
  for (int round = 0; round < 300; ++round) {
    PostSends(4);
    for (int left = 4; left > 0;) {
      const int taken = exs_qdequeue(queue_, events_.data(), -2, nullptr);
      if (taken < 0) {
        ASSERT_EQ(EINTR, errno);
        continue;
      }
      ASSERT_EQ(2, taken);
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(Handle(next % 4), events_[static_cast<size_t>(i)].exs_evt_ahandle);
        ++next;
      }
      left -= taken;
    }
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(0, exs_recv(server_, to.data(), 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
      while (exs_qdequeue(queue_, events_.data(), 1, nullptr) < 0) ASSERT_EQ(EINTR, errno);
    }
  }
  setitimer(ITIMER_REAL, &never, nullptr);
}

TEST_F(QueueTest, TwoThreadsThatWaitGetEachEventOnce) {
  std::array<std::atomic<int>, 200> seen{};
  const auto consume = [&](int share, int by) {
    std::array<exs_event_t, 2> out;
    for (int left = share; left > 0; left -= by) {
      ASSERT_EQ(by, exs_qdequeue(queue_, out.data(), -by, nullptr));
      for (int i = 0; i < by; ++i) {
        const auto handle = out[static_cast<size_t>(i)].exs_evt_ahandle;
        ++seen[reinterpret_cast<uintptr_t>(handle)];
      }
    }
  };
  std::thread one(consume, 100, 1);
  std::thread two(consume, 100, 2);
  PostSends(200);
  one.join();
  two.join();
  for (const std::atomic<int>& count : seen) EXPECT_EQ(1, count.load());
}

TEST_F(QueueTest, DepthCanBeReadAndChangedButNotBelowWhatIsOutstanding) {
  int depth = 0;
  size_t len = sizeof(depth);
  ASSERT_EQ(0, exs_qstatus(queue_, EXS_QATTR_DEPTH, &depth, &len));
  EXPECT_EQ(256, depth);
  PostSends(3);
  depth = 2;
  EXPECT_ERRNO(EBUSY, exs_qmodify(queue_, EXS_QATTR_DEPTH, &depth, sizeof(depth)));
  depth = 3;
  EXPECT_EQ(0, exs_qmodify(queue_, EXS_QATTR_DEPTH, &depth, sizeof(depth)));
  uint8_t byte = 1;
  EXPECT_ERRNO(EAGAIN, exs_send(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(3, exs_qdequeue(queue_, events_.data(), -3, nullptr));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Handle(i), events_[i].exs_evt_ahandle);
  depth = 300;
  EXPECT_EQ(0, exs_qmodify(queue_, EXS_QATTR_DEPTH, &depth, sizeof(depth)));
  PostSends(300);
  EXPECT_EQ(300, exs_qdequeue(queue_, events_.data(), -300, nullptr));
}

TEST_F(QueueTest, TheWayOfWaitingCanBeChangedWhileNothingIsOutstanding) {
  for (int wait : {EXS_WAIT_BUSY_POLL, EXS_WAIT_NOTIFY, EXS_WAIT_ADAPTIVE}) {
    ASSERT_EQ(0, exs_qmodify(queue_, EXS_QATTR_WAIT, &wait, sizeof(wait)));
    int now = -1;
    size_t len = sizeof(now);
    ASSERT_EQ(0, exs_qstatus(queue_, EXS_QATTR_WAIT, &now, &len));
    EXPECT_EQ(wait, now);
    PostSends(1);
    EXPECT_EQ(0, Next().exs_evt_errno);
    PostSends(1);
    EXPECT_TRUE(Readable(queue_, 5000));
    EXPECT_EQ(0, Next().exs_evt_errno);
  }
  uint8_t byte = 0;
  ASSERT_EQ(0, exs_recv(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  int wait = EXS_WAIT_NOTIFY;
  EXPECT_ERRNO(EBUSY, exs_qmodify(queue_, EXS_QATTR_WAIT, &wait, sizeof(wait)));
}

TEST_F(QueueTest, EventsThatWaitAreCounted) {
  PostSends(4);
  timeval soon{5, 0};
  ASSERT_EQ(4, exs_qdequeue(queue_, events_.data(), -4, &soon));
  PostSends(2);
  ASSERT_TRUE(Readable(queue_, 5000));
  int waiting = 0;
  size_t len = 100;
  while (waiting < 2) ASSERT_EQ(0, exs_qstatus(queue_, EXS_QATTR_EVENTS, &waiting, &len));
  EXPECT_EQ(sizeof(int), len);
  EXPECT_TRUE(Readable(queue_, 0));
  EXPECT_ERRNO(EOPNOTSUPP, exs_qmodify(queue_, EXS_QATTR_EVENTS, &waiting, sizeof(waiting)));
}

TEST_F(QueueTest, WrongAttributesAreRefused) {
  int value = 1;
  size_t len = sizeof(value);
  size_t short_len = 3;
  EXPECT_ERRNO(EBADF, exs_qmodify(-1, EXS_QATTR_DEPTH, &value, len));
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, 0, &value, len));
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, 5, &value, len));
  EXPECT_ERRNO(EFAULT, exs_qmodify(queue_, EXS_QATTR_DEPTH, nullptr, len));
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, EXS_QATTR_DEPTH, &value, 3));
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, EXS_QATTR_SIGNAL, &value, len));
  value = 0;
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, EXS_QATTR_DEPTH, &value, len));
  value = 3;
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, EXS_QATTR_WAIT, &value, len));
  EXPECT_ERRNO(EFAULT, exs_qstatus(queue_, EXS_QATTR_DEPTH, nullptr, &len));
  EXPECT_ERRNO(EFAULT, exs_qstatus(queue_, EXS_QATTR_DEPTH, &value, nullptr));
  EXPECT_ERRNO(EINVAL, exs_qstatus(queue_, EXS_QATTR_DEPTH, &value, &short_len));
  EXPECT_ERRNO(EINVAL, exs_qstatus(queue_, 9, &value, &len));
  exs_signal_t signal{};
  signal.exs_sig_state = EXS_SIG_ENABLE;
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, EXS_QATTR_SIGNAL, &signal, sizeof(signal)));
  signal.exs_sig_number = 65;
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, EXS_QATTR_SIGNAL, &signal, sizeof(signal)));
  signal = {SIGUSR1, 7, {}};
  EXPECT_ERRNO(EINVAL, exs_qmodify(queue_, EXS_QATTR_SIGNAL, &signal, sizeof(signal)));
}

// --- signals -------------------------------------------------------------------------------------

class SignalTest : public QueueTest {
 protected:
  void SetUp() override {
    QueueTest::SetUp();
    sigemptyset(&set_);
    sigaddset(&set_, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void Arm() {
    const exs_signal_t signal = {SIGUSR1, EXS_SIG_ENABLE, {}};
    ASSERT_EQ(0, exs_qmodify(queue_, EXS_QATTR_SIGNAL, &signal, sizeof(signal)));
  }
  bool Comes(int wait_ms) {
    const timespec bound{wait_ms / 1000, wait_ms % 1000 * 1000000L};
    return sigtimedwait(&set_, &info_, &bound) == SIGUSR1;
  }

  sigset_t set_{};
  siginfo_t info_{};
};

TEST_F(SignalTest, OneComesForEachArmingWhateverNumberOfEvents) {
  Arm();
  PostSends(100);
  ASSERT_TRUE(Comes(5000));
  EXPECT_EQ(SI_QUEUE, info_.si_code);
  EXPECT_EQ(queue_, info_.si_value.sival_int);
  EXPECT_FALSE(Comes(100));
  exs_signal_t signal{};
  size_t len = sizeof(signal);
  ASSERT_EQ(0, exs_qstatus(queue_, EXS_QATTR_SIGNAL, &signal, &len));
  EXPECT_EQ(EXS_SIG_DISABLE, signal.exs_sig_state);
  EXPECT_EQ(SIGUSR1, signal.exs_sig_number);
  Arm();  // events wait already
  EXPECT_TRUE(Comes(5000));
  ASSERT_EQ(100, exs_qdequeue(queue_, events_.data(), -100, nullptr));
}

TEST_F(SignalTest, NoneComesWhereItIsDisabledOrNothingHappens) {
  Arm();
  EXPECT_FALSE(Comes(50));
  const exs_signal_t signal = {SIGUSR1, EXS_SIG_DISABLE, {}};
  ASSERT_EQ(0, exs_qmodify(queue_, EXS_QATTR_SIGNAL, &signal, sizeof(signal)));
  PostSends(1);
  EXPECT_FALSE(Comes(100));
  EXPECT_EQ(0, Next().exs_evt_errno);
}

}  // namespace
}  // namespace esdp::exs
