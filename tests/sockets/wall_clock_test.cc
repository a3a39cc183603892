#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// The wall clock may be set while somebody waits: what counts is how much time has passed.

namespace {
std::atomic<long> seconds_back{0};
}  // namespace

// The whole program's, in place of the system's.
extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec -= seconds_back.load();
  return static_cast<int>(result);
}

namespace esdp::contract {
namespace {

constexpr long kHour = 3600;
constexpr absl::Duration kShort = absl::Milliseconds(300);

class WallClockTest : public PairTest {
 protected:
  void TearDown() override {
    seconds_back = 0;
    PairTest::TearDown();
  }
  static timespec Monotonic() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
  }
};
ESDP_ON_REAL_WORLDS(WallClockTest);

TEST_P(WallClockTest, AContextThatClosesKeepsItsDeadlineWhenTheClockIsSetBack) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& memory = Make(client_, 1 << 20);
  (void)client_.Send(memory.All());  // nobody receives it: the close has to wait
  const absl::Time deadline = client_.context.Now() + kShort;
  const timespec begun = Monotonic();
  std::thread setter([] {
    usleep(50'000);
    seconds_back = kHour;
  });
  (void)client_.context.Close(deadline);
  setter.join();
  EXPECT_LT(Monotonic().tv_sec - begun.tv_sec, 30);
}

TEST_P(WallClockTest, ARegionThatClosesKeepsItsDeadlineWhenTheClockIsSetBack) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& memory = Make(server_, 1 << 20);
  const OpId receive = server_.Recv(memory.All());
  const timespec begun = Monotonic();
  std::thread setter([] {
    usleep(50'000);
    seconds_back = kHour;
  });
  const absl::Status closed = memory.region.Close(server_.context.Now() + kShort);
  setter.join();
  EXPECT_LT(Monotonic().tv_sec - begun.tv_sec, 30);
  EXPECT_FALSE(closed.ok());
  seconds_back = 0;
  (void)server_.socket.Cancel(receive);
  (void)End(server_, receive);
}

}  // namespace
}  // namespace esdp::contract
