#include "esdp/coroutine.h"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// api/esdp/coroutine.h. Under AddressSanitizer these tests also hold it to free every frame, and
// none before its operation has ended.

namespace esdp::contract {
namespace {

class CoroutineTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  Task<Outcome> Receive(Dispatcher& dispatcher) {
    std::array<std::byte, 64> bytes;
    co_return co_await dispatcher.Do(client_.socket, [&](OpArgs args) {
      return client_.socket.RecvCopy(absl::MakeSpan(bytes), RecvFlags::kNone, args);
    });
  }
  Task<uint64_t> Nested(Dispatcher& dispatcher) {
    const Outcome got = co_await Receive(dispatcher);
    if (!got.ok()) throw std::runtime_error(std::string(got.status.message()));
    co_return got.event.bytes;
  }
  Task<void> Keep(Dispatcher& dispatcher, uint64_t& bytes) { bytes = co_await Nested(dispatcher); }
  static Task<int> One() { co_return 1; }
  static Task<int&> Refer(int& number) { co_return number; }
  static Task<const int&> ReferThrough(int& number) {
    int& same = co_await Refer(number);
    ++same;
    co_return same;
  }
  static Task<int> Loop(int rounds) {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) sum += co_await One();
    co_return sum;
  }
  static Task<int> Descend(int depth) {
    if (depth == 0) co_return 0;
    co_return 1 + co_await Descend(depth - 1);
  }
  Task<void> AwaitCancelled(Dispatcher& dispatcher, bool& closed) {
    const Outcome got = co_await Receive(dispatcher);
    EXPECT_TRUE(absl::IsCancelled(got.status)) << got.status;
    const Outcome again = co_await Receive(dispatcher);
    EXPECT_TRUE(absl::IsCancelled(again.status)) << again.status;
    EXPECT_EQ(again.event.type, EventType::kNone) << "it was posted";
    const Outcome end = co_await dispatcher.Finish(
        client_.socket, [&](OpArgs args) { return client_.socket.Close(CloseMode::kAbort, args); });
    closed = end.ok();
  }
  void SendFive() {
    const std::array<std::byte, 5> bytes{};
    server_.Accepted(server_.socket.SendCopy(bytes, SendFlags::kNone, server_.Args()));
  }
};
INSTANTIATE_TEST_SUITE_P(On, CoroutineTest, ::testing::Values(World::kQpipThread), ParamName);

TEST_P(CoroutineTest, AValueComesThroughTheTasksThatAwaitIt) {
  Dispatcher dispatcher(client_.queue);
  uint64_t bytes = 0;
  dispatcher.Spawn(Keep(dispatcher, bytes));
  SendFive();
  EXPECT_TRUE(dispatcher.Run().ok());
  EXPECT_EQ(bytes, 5u);
}

TEST_P(CoroutineTest, AReferenceThatIsReturnedNamesTheSameObject) {
  int number = 1;
  Task<const int&> task = ReferThrough(number);
  task.Start();
  ASSERT_TRUE(task.done());
  EXPECT_EQ(&task.Get(), &number);
  EXPECT_EQ(number, 2);
}

// Without optimisation a compiler makes a call of each hand-over.
TEST_P(CoroutineTest, TheStackStaysAsDeepHoweverManyTasksEndAtOnce) {
  constexpr int kMany = 100'000;
  Task<int> loop = Loop(kMany);
  loop.Start();
  ASSERT_TRUE(loop.done());
  EXPECT_EQ(loop.Get(), kMany);
  Task<int> descent = Descend(kMany);
  descent.Start();
  ASSERT_TRUE(descent.done());
  EXPECT_EQ(descent.Get(), kMany);
}

TEST_P(CoroutineTest, CancelEndsTheInnermostOperationAndLetsTheTaskEndByItself) {
  Dispatcher dispatcher(client_.queue);
  bool closed = false;
  Task<void> task = AwaitCancelled(dispatcher, closed);
  task.Start();
  EXPECT_EQ(dispatcher.waiting(), 1);
  task.Cancel();
  EXPECT_TRUE(dispatcher.Run().ok());
  ASSERT_TRUE(task.done());
  task.Get();
  EXPECT_TRUE(closed);
}

TEST_P(CoroutineTest, ARefusalKeepsItsTextAndAnExceptionReachesWhoAwaits) {
  Dispatcher dispatcher(client_.queue);
  const Socket empty = std::exchange(client_.socket, Socket());
  Task<uint64_t> task = Nested(dispatcher);
  task.Start();
  ASSERT_TRUE(task.done()) << "a refused post has no event to wait for";
  std::array<std::byte, 1> bytes{};
  const auto refused =
      client_.socket.RecvCopy(absl::MakeSpan(bytes), RecvFlags::kNone, client_.Args());
  ASSERT_FALSE(refused.ok());
  try {
    task.Get();
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), std::string(refused.status().message()));
  }
}

TEST_P(CoroutineTest, AnExceptionOfASpawnedTaskLeavesRun) {
  Dispatcher dispatcher(client_.queue);
  uint64_t bytes = 0;
  dispatcher.Spawn(Keep(dispatcher, bytes));
  server_.socket = Socket();
  EXPECT_THROW((void)dispatcher.Run(), std::runtime_error);
}

TEST_P(CoroutineTest, ATaskDestroyedMidwayKeepsItsBufferUntilTheTerminalEvent) {
  Dispatcher dispatcher(client_.queue);
  {
    Task<uint64_t> task = Nested(dispatcher);
    task.Start();
  }
  EXPECT_EQ(dispatcher.waiting(), 1);
  SendFive();
  EXPECT_TRUE(dispatcher.Run().ok());
  EXPECT_EQ(dispatcher.waiting(), 0);
}

TEST_P(CoroutineTest, ADispatcherEndsWhatItWasGiven) {
  uint64_t bytes = 0;
  {
    Dispatcher dispatcher(client_.queue);
    dispatcher.Spawn(Keep(dispatcher, bytes));
  }
  EXPECT_TRUE(client_.queue.Close().ok()) << "an operation still names the queue";
}

}  // namespace
}  // namespace esdp::contract
