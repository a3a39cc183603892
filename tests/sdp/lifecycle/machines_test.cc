#include "impl/sdp/lifecycle/machines.h"

#include <gtest/gtest.h>

#include <string>

namespace esdp::sdp {
namespace {

// Every phase under every cue. A dot is an illegal move.
constexpr const char* kListing = R"(
Idle: AskConnect>HelloSent HelloAccepted>HelloAckSent HelloRejected>Closed Established. ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Closed Lost.
HelloSent: AskConnect. HelloAccepted. HelloRejected. Established>Established ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Closed
HelloAckSent: AskConnect. HelloAccepted. HelloRejected. Established>Established ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Closed
Established: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent>FinWait1 DisConnArrived>CloseWait WaitEnded. SuspCommSent>Suspending SuspCommArrived>Suspending SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Closed
FinWait1: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived>TimeWait WaitEnded. SuspCommSent>Suspending SuspCommArrived>Suspending SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Closed
CloseWait: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent>LastAck DisConnArrived. WaitEnded. SuspCommSent>Suspending SuspCommArrived>Suspending SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Closed
LastAck: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived. WaitEnded>TimeWait SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Closed
Suspending: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent>Suspended SuspCommAckArrived>Suspended BothShut>TimeWait Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Closed
Suspended: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Resuming
Resuming: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed>Established ResumedShut>FinWait1 ResumedPeerShut>CloseWait Failed>Aborting Lost>Closed
TimeWait: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed>Aborting Lost>Closed
Aborting: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed>Closed DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed. Lost>Closed
Closed: AskConnect. HelloAccepted. HelloRejected. Established. ConnectFailed. DisConnSent. DisConnArrived. WaitEnded. SuspCommSent. SuspCommArrived. SuspCommAckSent. SuspCommAckArrived. BothShut. Resumed. ResumedShut. ResumedPeerShut. Failed. Lost.
)";

// R13.2.1
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

// Every mode with its master, then every change with the peer that may order it.
constexpr const char* kModeListing = R"(
Buffered, ordered by the sink: Combined
Combined, ordered by the source: Buffered Pipelined
Pipelined, ordered by the source: Combined
)";

TEST(ModeTableTest, AllowsTheseChangesByTheirMasterAndNoOther) {
  std::string listing = "\n";
  for (size_t i = 0; i < kModeCount; ++i) {
    const Mode from = static_cast<Mode>(i);
    const Role master = MasterOf(from);
    listing += std::string(ToString(from)) + ", ordered by the " +
               (master == Role::kSink ? "sink:" : "source:");
    for (size_t j = 0; j < kModeCount; ++j) {
      const Mode to = static_cast<Mode>(j);
      if (MayChange(from, to, master)) listing += std::string(" ") + ToString(to);
      const Role other = master == Role::kSink ? Role::kSource : Role::kSink;
      EXPECT_FALSE(MayChange(from, to, other));
    }
    listing += "\n";
  }

  EXPECT_EQ(listing, kModeListing);
}

TEST(ModeTableTest, APermissionComesFromOneHalfAlone) {
  ASSERT_EQ(kModePermits.size(), kModeCount * kModeCount);
  for (const ModePermits& permits : kModePermits) {
    EXPECT_EQ(&Permits(permits.send, permits.receive), &permits);
    using Allowance = AdvertAllowance;
    const auto sources = [](Mode mode) {
      return mode == Mode::kBuffered   ? Allowance::kNone
             : mode == Mode::kCombined ? Allowance::kOne
                                       : Allowance::kMany;
    };
    const auto sinks = [](Mode mode) {
      return mode == Mode::kPipelined ? Allowance::kMany : Allowance::kNone;
    };
    EXPECT_EQ(permits.read, permits.receive != Mode::kBuffered);
    EXPECT_EQ(permits.write, permits.send == Mode::kPipelined);
    EXPECT_EQ(permits.source_adverts, sources(permits.send));
    EXPECT_EQ(permits.source_adverts_accepted, sources(permits.receive));
    EXPECT_EQ(permits.sink_adverts, sinks(permits.receive));
    EXPECT_EQ(permits.sink_adverts_accepted, sinks(permits.send));
  }
}

}  // namespace
}  // namespace esdp::sdp
