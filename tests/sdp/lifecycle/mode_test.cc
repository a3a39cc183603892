#include "impl/sdp/lifecycle/mode.h"

#include <gtest/gtest.h>

#include "impl/sdp/lifecycle/mode_policy.h"

namespace esdp::sdp {
namespace {

using wire::ModeChange;

constexpr Mode kModes[] = {Mode::kBuffered, Mode::kCombined, Mode::kPipelined};

// A Modes in these two modes, by the shortest legal way.
Modes In(Mode send, Mode receive) {
  Modes modes;
  if (send != Mode::kCombined) modes.OnPosted(ModeChange{false, send}, 1);
  if (receive != Mode::kCombined) modes.OnModeChange(ModeChange{false, receive});
  return modes;
}

// R5.1
TEST(ModesTest, BothHalvesStartCombined) {
  EXPECT_EQ(Modes().send(), Mode::kCombined);
  EXPECT_EQ(Modes().receive(), Mode::kCombined);
}

// R5.2, R5.3
TEST(ModesTest, WeMayOrderExactlyTheFourChangesOfTheMastersWeAre) {
  for (const Mode from : kModes) {
    for (const Mode to : kModes) {
      const bool as_source = (from == Mode::kCombined && to != Mode::kCombined) ||
                             (from == Mode::kPipelined && to == Mode::kCombined);
      const bool as_sink = from == Mode::kBuffered && to == Mode::kCombined;
      EXPECT_EQ(In(from, Mode::kCombined).ChangeOfSend(to).has_value(), as_source);
      EXPECT_EQ(In(Mode::kCombined, from).ChangeOfReceive(to).has_value(), as_sink);
    }
  }
}

// R5.6
TEST(ModesTest, TheOrderNamesTheHalfAsItsReceiverSeesIt) {
  EXPECT_EQ(Modes().ChangeOfSend(Mode::kPipelined), (ModeChange{false, Mode::kPipelined}));
  EXPECT_EQ(In(Mode::kCombined, Mode::kBuffered).ChangeOfReceive(Mode::kCombined),
            (ModeChange{true, Mode::kCombined}));
}

// R5.3, R5.5, R5.6
TEST(ModesTest, ThePeerMayOrderItsOwnFourAndEveryOtherChangeIsIllegal) {
  for (const Mode from : kModes) {
    for (const Mode to : kModes) {
      if (from == to) continue;
      Modes receive = In(Mode::kCombined, from);
      const bool legal = (from == Mode::kCombined) ||
                         (from == Mode::kPipelined && to < from && to == Mode::kCombined);
      const Modes::Change change = receive.OnModeChange(ModeChange{false, to});
      EXPECT_EQ(change != Modes::Change::kIllegal, legal) << ToString(from) << ToString(to);
      EXPECT_EQ(receive.receive(), legal ? to : from);
      if (legal) {
        EXPECT_EQ(change,
                  to > from ? Modes::Change::kReceiveRaised : Modes::Change::kReceiveLowered);
      }

      Modes send = In(from, Mode::kCombined);
      const bool by_sink = from == Mode::kBuffered && to == Mode::kCombined;
      EXPECT_EQ(send.OnModeChange(ModeChange{true, to}),
                by_sink ? Modes::Change::kSendRaised : Modes::Change::kIllegal);
      EXPECT_EQ(send.send(), by_sink ? to : from);
    }
  }
}

// R5.4
TEST(ModesTest, NamingTheCurrentModeChangesNothing) {
  for (const Mode mode : kModes) {
    Modes modes = In(Mode::kCombined, mode);
    EXPECT_EQ(modes.OnModeChange(ModeChange{false, mode}), Modes::Change::kNone);
    EXPECT_EQ(modes.receive(), mode);
  }
}

// R5.20, R5.21
TEST(ModesTest, LeavingPipelinedFreezesUntilThePeerHasAcknowledgedIt) {
  Modes modes;
  modes.OnPosted(*modes.ChangeOfSend(Mode::kPipelined), 0xfffffffe);
  EXPECT_FALSE(modes.frozen());
  modes.OnPosted(*modes.ChangeOfSend(Mode::kCombined), 0xffffffff);
  EXPECT_TRUE(modes.frozen());
  EXPECT_FALSE(modes.ChangeOfSend(Mode::kPipelined).has_value());
  modes.OnAcknowledged(0xfffffffe);
  EXPECT_TRUE(modes.frozen());

  modes.OnAcknowledged(1);

  EXPECT_FALSE(modes.frozen());
  EXPECT_TRUE(modes.ChangeOfSend(Mode::kPipelined).has_value());
}

TEST(ModePolicyTest, TwoLargeSendsOrAHintAskForPipelined) {
  ModePolicy policy;
  EXPECT_FALSE(policy.NextSend(Mode::kCombined, 1).has_value());
  EXPECT_EQ(policy.NextSend(Mode::kCombined, 2), Mode::kPipelined);
  policy.OnHint();
  EXPECT_EQ(policy.NextSend(Mode::kCombined, 0), Mode::kPipelined);
}

TEST(ModePolicyTest, RefusalsInARowLeadDownAndOneReadForgivesThem) {
  ModePolicy policy;
  policy.OnRefused();
  EXPECT_FALSE(policy.NextSend(Mode::kPipelined, 5).has_value());
  policy.OnRefused();
  EXPECT_EQ(policy.NextSend(Mode::kPipelined, 5), Mode::kCombined);
  EXPECT_FALSE(policy.NextSend(Mode::kCombined, 5).has_value());
  for (int i = 0; i < 6; ++i) policy.OnRefused();
  EXPECT_EQ(policy.NextSend(Mode::kCombined, 5), Mode::kBuffered);
  policy.OnRead();
  EXPECT_EQ(policy.NextSend(Mode::kCombined, 5), Mode::kPipelined);
}

TEST(ModePolicyTest, AWishIsReachedOneLegalStepAtATime) {
  ModePolicy policy;
  policy.Want(ModeWish::kBuffered, ModeWish::kAutomatic);
  EXPECT_EQ(policy.NextSend(Mode::kPipelined, 9), Mode::kCombined);
  EXPECT_EQ(policy.NextSend(Mode::kCombined, 9), Mode::kBuffered);
  EXPECT_FALSE(policy.NextSend(Mode::kBuffered, 9).has_value());
  policy.Want(ModeWish::kPipelined, ModeWish::kAutomatic);
  EXPECT_FALSE(policy.NextSend(Mode::kBuffered, 9).has_value()) << "only the sink may";
  EXPECT_EQ(policy.NextSend(Mode::kCombined, 0), Mode::kPipelined);
}

TEST(ModePolicyTest, ASinkThatEndsBufferedIsNotAskedAgainUntilTheWishIsToldAnew) {
  ModePolicy policy;
  policy.Want(ModeWish::kBuffered, ModeWish::kAutomatic);
  policy.OnRaised();
  EXPECT_FALSE(policy.NextSend(Mode::kCombined, 0).has_value());
  EXPECT_FALSE(policy.wants_adverts());
  policy.Want(ModeWish::kBuffered, ModeWish::kAutomatic);
  EXPECT_EQ(policy.NextSend(Mode::kCombined, 0), Mode::kBuffered);
}

TEST(ModePolicyTest, TheSinkEndsBufferedForALargeReceiveUnlessItWantsBuffered) {
  ModePolicy policy;
  EXPECT_FALSE(policy.NextReceive(Mode::kBuffered, 0).has_value());
  EXPECT_EQ(policy.NextReceive(Mode::kBuffered, 1), Mode::kCombined);
  EXPECT_FALSE(policy.NextReceive(Mode::kCombined, 1).has_value());
  policy.Want(ModeWish::kAutomatic, ModeWish::kBuffered);
  EXPECT_FALSE(policy.NextReceive(Mode::kBuffered, 1).has_value());
}

// R5.24
TEST(ModePolicyTest, ReqPipeIsSetForSeveralLargeReceivesInCombinedOnly) {
  ModePolicy policy;
  EXPECT_EQ(policy.HintsFrom(Mode::kCombined), 2u);
  EXPECT_EQ(policy.HintsFrom(Mode::kPipelined), ModePolicy::kNever);
  EXPECT_EQ(policy.HintsFrom(Mode::kBuffered), ModePolicy::kNever);
  policy.Want(ModeWish::kAutomatic, ModeWish::kCombined);
  EXPECT_EQ(policy.HintsFrom(Mode::kCombined), ModePolicy::kNever);
}

}  // namespace
}  // namespace esdp::sdp
