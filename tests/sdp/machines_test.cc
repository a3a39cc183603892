#include "impl/sdp/machines.h"

#include <gtest/gtest.h>

#include <string>

namespace esdp::sdp {
namespace {

// Every phase under every cue. A dot is an illegal move.
constexpr const char* kListing = R"(
Idle: AskConnect>HelloSent HelloAccepted>HelloAckSent HelloRejected>Closed Established. ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. Failed>Closed Lost.
HelloSent: AskConnect. HelloAccepted. HelloRejected. Established>Established ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. Failed>Aborting Lost>Closed
HelloAckSent: AskConnect. HelloAccepted. HelloRejected. Established>Established ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. Failed>Aborting Lost>Closed
Established: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent>FinWait1 DisConnArrived>CloseWait WaitEnded. Failed>Aborting Lost>Closed
FinWait1: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived>TimeWait WaitEnded. Failed>Aborting Lost>Closed
CloseWait: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent>LastAck DisConnArrived. WaitEnded. Failed>Aborting Lost>Closed
LastAck: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived. WaitEnded>TimeWait Failed>Aborting Lost>Closed
TimeWait: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived. WaitEnded. Failed>Aborting Lost>Closed
Aborting: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. Failed. Lost>Closed
Closed: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived. WaitEnded. Failed. Lost.
)";

TEST(PhaseTableTest, AllowsTheseMovesAndNoOther) {
  std::string listing = "\n";
  for (size_t i = 0; i < kPhaseCount; ++i) {
    const Phase from = static_cast<Phase>(i);
    listing += std::string(ToString(from)) + ":";
    for (size_t j = 0; j < kPhaseCueCount; ++j) {
      const PhaseCue cue = static_cast<PhaseCue>(j);
      const std::optional<Phase> to = Next(from, cue);
      listing += std::string(" ") + ToString(cue) + (to ? std::string(">") + ToString(*to) : ".");
    }
    listing += "\n";
  }

  EXPECT_EQ(listing, kListing);
}

TEST(PhaseTableTest, NoMoveIsListedTwice) {
  for (size_t i = 0; i < kPhaseMoves.size(); ++i) {
    for (size_t j = i + 1; j < kPhaseMoves.size(); ++j) {
      EXPECT_FALSE(kPhaseMoves[i].from == kPhaseMoves[j].from &&
                   kPhaseMoves[i].cue == kPhaseMoves[j].cue);
    }
  }
}

TEST(PhaseTableTest, EveryPhaseLeadsToClosedBySomeFailureAndLoss) {
  for (size_t i = 0; i < kPhaseCount; ++i) {
    Phase phase = static_cast<Phase>(i);
    if (const auto failed = Next(phase, PhaseCue::kFailed)) phase = *failed;
    if (const auto lost = Next(phase, PhaseCue::kLost)) phase = *lost;
    EXPECT_EQ(phase, Phase::kClosed) << kPhaseNames[i];
  }
}

}  // namespace
}  // namespace esdp::sdp
