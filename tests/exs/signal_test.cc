#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/exs/pair.h"

// What signals do to a wait: as they do to recv(2).

namespace esdp::exs {
namespace {

// A thread that waits for an event, and gets signals.
class InterruptedTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
    signals_ = 0;
  }
  void TearDown() override {
    for (const int each : {SIGUSR2, SIGHUP}) signal(each, SIG_DFL);
    ExsTest::TearDown();
  }
  void PostSends(int count) {
    static const uint8_t byte = 1;
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(0, exs_send(client_, &byte, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
    }
  }
  static void Install(int flags, int signal = SIGUSR2) {
    struct sigaction action {};
    action.sa_handler = [](int) { ++signals_; };
    action.sa_flags = flags;
    ASSERT_EQ(0, sigaction(signal, &action, nullptr));
  }
  void BeginWait(std::unique_ptr<timeval> timeout = nullptr) {
    over_ = false;
    waiter_ = std::thread([this, timeout = std::move(timeout)] {
      exs_event_t event;
      errno = 0;
      answer_ = exs_qdequeue(queue_, &event, -1, timeout.get());
      error_ = errno;
      over_ = true;
    });
  }
  void Signal() {
    const int before = signals_;
    pthread_kill(waiter_.native_handle(), SIGUSR2);
    while (signals_ == before && !over_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  // Signals have not ended the wait, and the event does.
  void ExpectRestarted() {
    for (int i = 0; i < 15 && !over_; ++i) Signal();
    EXPECT_FALSE(over_);
    PostSends(1);
    waiter_.join();
    EXPECT_EQ(1, answer_);
  }
  void ExpectInterrupted() {
    for (int i = 0; i < 2000 && !over_; ++i) {
      pthread_kill(waiter_.native_handle(), SIGUSR2);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    waiter_.join();
    EXPECT_EQ(-1, answer_);
    EXPECT_EQ(EINTR, error_);
  }

  static std::atomic<int> signals_;
  std::thread waiter_;
  std::atomic<bool> over_{false};
  int answer_ = 0;
  int error_ = 0;
};

std::atomic<int> InterruptedTest::signals_{0};

TEST_F(InterruptedTest, WithoutATimeoutItGoesOnAfterAHandlerWithSaRestart) {
  Install(SA_RESTART);
  for (int wait : {EXS_WAIT_ADAPTIVE, EXS_WAIT_NOTIFY}) {
    ASSERT_EQ(0, exs_qmodify(queue_, EXS_QATTR_WAIT, &wait, sizeof(wait)));
    BeginWait();
    ExpectRestarted();
  }
}

TEST_F(InterruptedTest, WithoutATimeoutItEndsAfterAnyOtherHandler) {
  Install(0);
  for (int wait : {EXS_WAIT_ADAPTIVE, EXS_WAIT_NOTIFY}) {
    ASSERT_EQ(0, exs_qmodify(queue_, EXS_QATTR_WAIT, &wait, sizeof(wait)));
    BeginWait();
    ExpectInterrupted();
  }
}

TEST_F(InterruptedTest, TheHandlerThatRanDecidesWhereTheProcessHasBothKinds) {
  Install(0, SIGHUP);
  Install(SA_RESTART);
  for (int i = 0; i < 3; ++i) {
    BeginWait();
    ExpectRestarted();
  }
  Install(SA_RESTART, SIGHUP);
  Install(0);
  BeginWait();
  ExpectInterrupted();
}

TEST_F(InterruptedTest, AHandlerThatIsInstalledWhileItSleepsDecidesToo) {
  Install(SA_RESTART);
  BeginWait();
  for (int i = 0; i < 3 && !over_; ++i) Signal();
  Install(0);
  ExpectInterrupted();
}

TEST_F(InterruptedTest, WithATimeoutItEndsAfterBothKindsOfHandler) {
  for (const int flags : {0, SA_RESTART}) {
    Install(flags);
    BeginWait(std::make_unique<timeval>(timeval{60, 0}));
    ExpectInterrupted();
  }
}

TEST_F(InterruptedTest, TheSecondThreadThatWaitsKeepsTheSameRules) {
  std::thread first([this] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    exs_event_t event;
    EXPECT_EQ(1, exs_qdequeue(queue_, &event, -1, nullptr));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Install(0);
  BeginWait();
  ExpectInterrupted();
  Install(SA_RESTART);
  BeginWait(std::make_unique<timeval>(timeval{60, 0}));
  ExpectInterrupted();
  BeginWait();
  for (int i = 0; i < 15 && !over_; ++i) Signal();
  EXPECT_FALSE(over_);
  PostSends(2);
  waiter_.join();
  first.join();
  EXPECT_EQ(1, answer_);
}

TEST_F(InterruptedTest, OneThatGoesOnStillHearsOfEventsOfTheLibrarysOwn) {
  Install(SA_RESTART);
  BeginWait();
  for (int i = 0; i < 3 && !over_; ++i) Signal();
  exs_pollfd_t asked = {listener_, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(&asked, 1, 0, queue_, nullptr));
  EXPECT_EQ(1, exs_cancel(listener_, nullptr, EXS_CAF_FILDES));
  waiter_.join();
  EXPECT_EQ(1, answer_);
}

}  // namespace
}  // namespace esdp::exs
