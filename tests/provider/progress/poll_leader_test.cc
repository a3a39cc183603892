#include "impl/provider/progress/poll_leader.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace esdp::provider {
namespace {

using Steady = std::chrono::steady_clock;

// A thread of the shard's that stands by.
class Stander {
 public:
  explicit Stander(PollLeader& lead)
      : thread_([this, &lead] {
          lead.StandBy();
          back_ = true;
        }) {
    while (!lead.standing_by() && !back_) std::this_thread::yield();
  }
  ~Stander() { Join(); }
  Stander(const Stander&) = delete;
  Stander& operator=(const Stander&) = delete;

  bool back() const { return back_; }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> back_{false};
  std::thread thread_;
};

void SpinFor(Steady::duration time) {
  const auto end = Steady::now() + time;
  while (Steady::now() < end) std::this_thread::yield();
}

TEST(GraceTest, WhoLeadsAgainAndAgainIsLookedAtLessOften) {
  PollBackoff grace;
  EXPECT_EQ(grace.length(), PollBackoff::kShort);
  auto before = grace.length();
  while (before < PollBackoff::kLong) {
    ASSERT_TRUE(grace.Renew(true, true));
    ASSERT_GT(grace.length(), before);
    before = grace.length();
  }
  EXPECT_TRUE(grace.Renew(true, true));
  EXPECT_EQ(grace.length(), PollBackoff::kLong);
}

TEST(GraceTest, OneThatHasLeftIsLookedAtSoonOnceMore) {
  PollBackoff grace;
  while (grace.length() < PollBackoff::kLong) ASSERT_TRUE(grace.Renew(true, true));
  EXPECT_TRUE(grace.Renew(true, false));
  EXPECT_EQ(grace.length(), PollBackoff::kShort);
  EXPECT_FALSE(grace.Renew(false, false));
}

TEST(GraceTest, OneThatIsBackIsLeftAloneAsBefore) {
  PollBackoff grace;
  while (grace.length() < PollBackoff::kLong) ASSERT_TRUE(grace.Renew(true, true));
  ASSERT_TRUE(grace.Renew(true, false));
  EXPECT_TRUE(grace.Renew(true, true));
  EXPECT_EQ(grace.length(), PollBackoff::kLong);
}

TEST(GraceTest, ALeadThatNeverChangesHandsIsLookedAtAsOften) {
  PollBackoff grace;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(grace.Renew(false, true));
    EXPECT_EQ(grace.length(), PollBackoff::kShort);
  }
}

TEST(PollLeaderTest, OneThreadHasIt) {
  PollLeader lead;
  EXPECT_TRUE(lead.TryTake());
  EXPECT_FALSE(lead.TryTake());
  lead.GiveBack();
  EXPECT_TRUE(lead.TryTake());
}

TEST(PollLeaderTest, TheThreadStandsByUntilItIsGivenBack) {
  PollLeader lead;
  ASSERT_TRUE(lead.TryTake());
  Stander stander(lead);
  SpinFor(4 * PollBackoff::kShort);
  EXPECT_TRUE(lead.standing_by());
  EXPECT_FALSE(stander.back());
  lead.GiveBack();
  stander.Join();
  EXPECT_FALSE(lead.standing_by());
}

TEST(PollLeaderTest, TheThreadComesBackAfterALongQuietLead) {
  PollLeader lead;
  ASSERT_TRUE(lead.TryTake());
  Stander stander(lead);
  SpinFor(64 * PollBackoff::kShort);
  EXPECT_FALSE(stander.back());
  lead.GiveBack();
  stander.Join();
}

TEST(PollLeaderTest, WhoIsCalledBackDoesNotWaitWhetherTheLeaderComesBack) {
  constexpr auto kAges = std::chrono::hours(1);
  PollLeader lead{PollBackoff(kAges, kAges)};
  ASSERT_TRUE(lead.TryTake());
  Stander stander(lead);
  lead.GiveBack();  // and is looked for once more, behind the backoff
  SpinFor(PollBackoff::kShort);
  EXPECT_FALSE(stander.back());
  lead.Recall();
  for (int i = 0; i < 1000 && !stander.back(); ++i) SpinFor(std::chrono::milliseconds(10));
  EXPECT_TRUE(stander.back());
  lead.Stop();
}

TEST(PollLeaderTest, NobodyIsCalledBackWhileAnotherLeads) {
  PollLeader lead;
  ASSERT_TRUE(lead.TryTake());
  Stander stander(lead);
  lead.Recall();
  SpinFor(4 * PollBackoff::kShort);
  EXPECT_TRUE(lead.standing_by());
  EXPECT_FALSE(stander.back());
  lead.GiveBack();
  stander.Join();
}

TEST(PollLeaderTest, StopEndsStandingByAtOnce) {
  PollLeader lead;
  ASSERT_TRUE(lead.TryTake());
  Stander early(lead);
  lead.Stop();
  early.Join();
  lead.StandBy();  // returns, although the lead is taken
}

}  // namespace
}  // namespace esdp::provider
