#include "impl/provider/transport/queue_pair_phase.h"

#include <gtest/gtest.h>

#include <string>

#include "impl/base/check.h"

namespace esdp::provider {
namespace {

// Every state under every cue. A dot is an illegal move.
constexpr const char* kListing = R"(
Connecting: Failed>Failed Established>Ready EndAsked>Abandoned Lost>Lost PeerAwaited. Replaced. Closed>Closed
Failed: Failed>Failed Established>Ready EndAsked>Abandoned Lost>Lost PeerAwaited>Awaited Replaced>Connecting Closed>Closed
Abandoned: Failed>Abandoned Established>Ending EndAsked>Abandoned Lost>Lost PeerAwaited. Replaced. Closed>Closed
Ready: Failed. Established. EndAsked>Ending Lost>Lost PeerAwaited. Replaced. Closed>Closed
Ending: Failed. Established. EndAsked>Ending Lost>Lost PeerAwaited. Replaced. Closed>Closed
Lost: Failed. Established. EndAsked>Lost Lost. PeerAwaited>Awaited Replaced>Connecting Closed>Closed
Awaited: Failed. Established. EndAsked>Awaited Lost. PeerAwaited. Replaced>Connecting Closed>Closed
Closed: Failed. Established. EndAsked. Lost. PeerAwaited. Replaced. Closed.
)";

TEST(QueuePairPhaseTest, AllowsTheseMovesAndNoOther) {
  std::string listing = "\n";
  for (size_t i = 0; i < kQueuePairPhaseNames.size(); ++i) {
    listing += std::string(kQueuePairPhaseNames[i]) + ":";
    for (size_t j = 0; j < kQueuePairCueNames.size(); ++j) {
      const auto to = Next(static_cast<QueuePairPhase>(i), static_cast<QueuePairCue>(j));
      listing += std::string(" ") + kQueuePairCueNames[j];
      listing += to ? std::string(">") + kQueuePairPhaseNames[static_cast<size_t>(*to)] : ".";
    }
    listing += "\n";
  }

  EXPECT_EQ(listing, kListing);
}

TEST(QueuePairPhaseTest, NoMoveIsListedTwice) {
  for (size_t i = 0; i < kQueuePairMoves.size(); ++i) {
    for (size_t j = i + 1; j < kQueuePairMoves.size(); ++j) {
      EXPECT_FALSE(kQueuePairMoves[i].from == kQueuePairMoves[j].from &&
                   kQueuePairMoves[i].cue == kQueuePairMoves[j].cue);
    }
  }
}

TEST(QueuePairPhaseTest, AnIllegalMoveIsReportedAndChangesNothing) {
  static int reported = 0;
  const CheckHook before = SetCheckHook([](const CheckFailure&) { ++reported; });
  QueuePairPhase phase = QueuePairPhase::kReady;

  EXPECT_FALSE(Move(phase, QueuePairCue::kReplaced));
  EXPECT_EQ(phase, QueuePairPhase::kReady);
  EXPECT_EQ(reported, 1);
  EXPECT_TRUE(Move(phase, QueuePairCue::kLost));
  EXPECT_EQ(phase, QueuePairPhase::kLost);
  EXPECT_EQ(reported, 1);
  (void)SetCheckHook(before);
}

TEST(QueuePairPhaseTest, WorkIsTakenUntilItIsLostAndItIsSetUpUntilItIsReady) {
  std::string taking, setting_up;
  for (size_t i = 0; i < kQueuePairPhaseNames.size(); ++i) {
    const auto phase = static_cast<QueuePairPhase>(i);
    if (TakesWork(phase)) taking += std::string(kQueuePairPhaseNames[i]) + " ";
    if (IsSettingUp(phase)) setting_up += std::string(kQueuePairPhaseNames[i]) + " ";
  }

  EXPECT_EQ(taking, "Connecting Failed Abandoned Ready Ending ");
  EXPECT_EQ(setting_up, "Connecting Failed Abandoned ");
}

TEST(QueuePairPhaseTest, EveryPhaseButTheLastMayBeClosed) {
  for (size_t i = 0; i + 1 < kQueuePairPhaseNames.size(); ++i) {
    EXPECT_EQ(Next(static_cast<QueuePairPhase>(i), QueuePairCue::kClosed), QueuePairPhase::kClosed)
        << kQueuePairPhaseNames[i];
  }
}

}  // namespace
}  // namespace esdp::provider
