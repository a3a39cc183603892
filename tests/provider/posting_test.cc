#include <poll.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "gtest/gtest.h"
#include "tests/provider/scripted.h"

// Who looks for what comes of a post. It is not the poster, unless it tends to it: its sends would
// be over one by one, and none would gather with the next.

namespace esdp::provider {
namespace {

using std::chrono::milliseconds;

constexpr int kPosts = 10;  // fewer than the peer has buffers for
constexpr uint64_t kBytes = 64;

// What a post completes is over at once, and the fabric's descriptor does not tell.
class PostingTest : public ScriptedTest {
 protected:
  explicit PostingTest(Progress progress = Progress::kThread, bool at_once = true)
      : ScriptedTest(progress) {
    if (at_once) fabric_->CompleteAtOnce();
  }
  static bool Await(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      if (done()) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }
  ConnectionId Join() {
    const ConnectionId connection = StartConnect();
    RendezvousEvent event = EventOf(RendezvousType::kEstablished);
    Put(event, HelloAck());
    fabric_->Raise(event);
    EXPECT_TRUE(Await([&] {
      Poll();
      return side_.recorder.connected().size() == 1;
    }));
    memory_ = &NewMemory(kBytes);
    return connection;
  }
  void Post(ConnectionId connection) {
    Submit(side_, connection, NewJob(*memory_, true, 0, kBytes));
  }
  // The poster does not look what came of it.
  void PostAndNotLook(ConnectionId connection) {
    const int before = PollsOfMine();
    Post(connection);
    EXPECT_EQ(PollsOfMine(), before);
  }
  void AwaitLook() {
    EXPECT_TRUE(Await([&] { return fabric_->completions_waiting() == 0; }));
  }
  // The thread has gone to sleep: it does not look any more.
  void AwaitRest() {
    EXPECT_TRUE(Await([&] {
      const int before = fabric_->polls();
      std::this_thread::sleep_for(milliseconds(5));
      return fabric_->polls() == before;
    }));
  }
  int PollsOfMine() const { return fabric_->polls_of(std::this_thread::get_id()); }

  Memory* memory_ = nullptr;
};

class LatePostingTest : public PostingTest {
 protected:
  LatePostingTest() : PostingTest(Progress::kThread, /*at_once=*/false) {}
};

class PostingByHandTest : public PostingTest {
 protected:
  PostingByHandTest() : PostingTest(Progress::kManual) {}
};

TEST_F(PostingTest, TheThreadThatSleepsIsWoken) {
  const ConnectionId connection = Join();
  for (int i = 0; i < kPosts; ++i) {
    AwaitRest();
    PostAndNotLook(connection);
    AwaitLook();
  }
}

// What a device completes later its descriptor tells.
TEST_F(LatePostingTest, NobodyIsWokenForAPostThatLeavesNothingToBePolled) {
  const ConnectionId connection = Join();
  for (int i = 0; i < kPosts; ++i) {
    AwaitRest();
    const int before = fabric_->polls();
    Post(connection);
    std::this_thread::sleep_for(milliseconds(5));
    EXPECT_EQ(fabric_->polls(), before);
    fabric_->CompleteSend();
    AwaitLook();
  }
}

TEST_F(PostingTest, WhoTendsToWhatItPostsLooksItselfAndWakesNobody) {
  const ConnectionId connection = Join();
  for (int i = 0; i < kPosts; ++i) {
    AwaitRest();
    const int mine = PollsOfMine();
    const int all = fabric_->polls();
    Job& job = NewJob(*memory_, true, 0, kBytes);
    job.transfer.tended = true;
    Submit(side_, connection, job);
    EXPECT_GT(PollsOfMine(), mine);
    EXPECT_EQ(fabric_->completions_waiting(), 0u);
    std::this_thread::sleep_for(milliseconds(5));
    EXPECT_EQ(fabric_->polls() - all, PollsOfMine() - mine);
  }
}

TEST_F(PostingTest, TheThreadIsWokenAgainAfterALeaderHasTakenItsWakeUp) {
  const ConnectionId connection = Join();
  for (int i = 0; i < kPosts; ++i) {
    AwaitRest();
    Post(connection);
    // The thread is on its way; the leader takes what it was woken for.
    if (side_.shard->TryLead()) {
      side_.shard->Poll();
      side_.shard->EndLead();
    }
    AwaitRest();
    Post(connection);
    AwaitLook();
  }
}

TEST_F(PostingTest, ALeaderThatSleepsIsWoken) {
  const ConnectionId connection = Join();
  for (int i = 0; i < kPosts; ++i) {
    AwaitRest();
    std::atomic<bool> looked{false};
    std::thread leader([&] {
      if (!side_.shard->TryLead()) return;
      const Time end = side_.shard->Now() + std::chrono::hours(1);  // the fake's clock stands still
      while (!looked) {
        if (!side_.shard->Poll()) side_.shard->WaitForWork(end);
      }
      side_.shard->EndLead();
    });
    std::this_thread::sleep_for(milliseconds(2));
    Post(connection);
    AwaitLook();
    looked = true;
    side_.shard->Wake();
    leader.join();
  }
}

TEST_F(PostingByHandTest, TheDescriptorTellsThatAPostIsToBeLookedAfter) {
  const ConnectionId connection = Join();
  const int fd = side_.shard->fd();
  for (int i = 0; i < kPosts; ++i) {
    Poll();
    pollfd waited{fd, POLLIN, 0};
    ASSERT_EQ(poll(&waited, 1, 0), 0);
    PostAndNotLook(connection);
    EXPECT_GT(fabric_->completions_waiting(), 0u);
    EXPECT_EQ(poll(&waited, 1, 20'000), 1);
    Poll();
    EXPECT_EQ(fabric_->completions_waiting(), 0u);
  }
}

}  // namespace
}  // namespace esdp::provider
