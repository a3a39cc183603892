#include "impl/sdp/inbound/sink_adverts.h"

#include <gtest/gtest.h>

#include <string>

namespace esdp::sdp {
namespace {

class SinkAdvertsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLength = 10000;

  // Advertises the next receive: operation 0 first, key 100 first.
  void Advertise() {
    adverts_.Offer({OperationId{next_}, kLength, 0}, next_, actions_);
    const AdvertId id = std::get<Expose>(actions_.back()).advert;
    EXPECT_TRUE(adverts_.OnExposed({id, {100 + next_, 0x1000}}));
    told_.push_back(adverts_.Message().non_discards);
    adverts_.OnPosted();
    ids_.push_back(id);
    ++next_;
    actions_.clear();
  }
  SinkAdverts::Taken Complete(uint32_t bytes, std::optional<uint32_t> key = {},
                              uint64_t written = kLength) {
    actions_.clear();
    return adverts_.OnRdmaWrCompl(bytes, key, written, actions_);
  }
  SinkAdverts::Taken Payload(uint32_t bytes) {
    actions_.clear();
    return adverts_.OnPayload(bytes, actions_);
  }
  std::vector<AdvertId> WithdrawnNow() const {
    std::vector<AdvertId> ids;
    for (const Action& action : actions_) ids.push_back(std::get<Withdraw>(action).advert);
    return ids;
  }

  SinkAdverts adverts_;
  Actions actions_;
  uint32_t next_ = 0;
  std::vector<AdvertId> ids_;
  std::vector<uint32_t> told_;
};

// R8.1.2
TEST_F(SinkAdvertsTest, ExposesExactlyTheReceiveForRemoteWrite) {
  adverts_.Offer({OperationId{7}, kLength, 500}, 3, actions_);

  ASSERT_EQ(actions_.size(), 1u);
  const auto& expose = std::get<Expose>(actions_[0]);
  EXPECT_EQ(expose.right, Right::kRemoteWrite);
  EXPECT_EQ(expose.range, (OperationRange{OperationId{7}, kLength, 500}));
  EXPECT_TRUE(SinkAdverts::Owns(expose.advert));
  EXPECT_FALSE(adverts_.may_offer()) << "the answer comes first";
  EXPECT_EQ(adverts_.outstanding(), 0u) << "the peer knows nothing of it yet";
}

TEST_F(SinkAdvertsTest, TellsTheKeyOfItsExposure) {
  adverts_.Offer({OperationId{7}, kLength, 500}, 3, actions_);
  ASSERT_TRUE(adverts_.OnExposed({std::get<Expose>(actions_[0]).advert, {0x77, 0x4000}}));

  EXPECT_EQ(adverts_.Message(), (wire::SinkAvail{kLength, 0x77, 0x4000, 0}));
}

TEST_F(SinkAdvertsTest, AnAnswerToWhatWasNotAskedIsRefused) {
  EXPECT_FALSE(adverts_.OnExposed({AdvertId{SinkAdverts::kFirstId}, {}}));
  EXPECT_FALSE(adverts_.OnExposeFailed(AdvertId{SinkAdverts::kFirstId}));
}

TEST_F(SinkAdvertsTest, WhatCannotBeExposedIsNotOffered) {
  adverts_.Offer({OperationId{7}, kLength, 0}, 0, actions_);
  EXPECT_TRUE(adverts_.OnExposeFailed(std::get<Expose>(actions_[0]).advert));
  EXPECT_TRUE(adverts_.may_offer());
  EXPECT_EQ(adverts_.outstanding(), 0u);
}

// R8.1.5
TEST_F(SinkAdvertsTest, ACompletionIsAlwaysOfTheOldest) {
  Advertise();
  Advertise();
  EXPECT_EQ(Complete(kLength).operation_number, 0u);
  EXPECT_EQ(WithdrawnNow(), std::vector<AdvertId>{ids_[0]});
  EXPECT_EQ(Complete(kLength).operation_number, 1u);
  EXPECT_EQ(WithdrawnNow(), std::vector<AdvertId>{ids_[1]});
}

// R8.1.3
TEST_F(SinkAdvertsTest, APartialFillCompletesItsAdvert) {
  Advertise();
  const SinkAdverts::Taken taken = Complete(1);
  EXPECT_TRUE(taken.is_taken);
  EXPECT_EQ(taken.bytes, 1u);
  EXPECT_EQ(adverts_.outstanding(), 0u);
  EXPECT_EQ(WithdrawnNow().size(), 1u);
}

// R8.1.6
TEST_F(SinkAdvertsTest, MoreThanWasAdvertisedIsAViolation) {
  Advertise();
  EXPECT_STREQ(Complete(kLength + 1).violation, "RdmaWrCompl.Len: more than was advertised");
}

TEST_F(SinkAdvertsTest, ACompletionOfNothingIsAViolation) {
  Advertise();
  EXPECT_STREQ(Complete(0).violation, "RdmaWrCompl.Len: is 0");
}

// R17.7
TEST_F(SinkAdvertsTest, ACompletionWithoutAnAdvertIsAViolation) {
  EXPECT_NE(Complete(1).violation, nullptr);
}

// R17.7
TEST_F(SinkAdvertsTest, ACompletionBehindACancelIsLateNotWrong) {
  Advertise();
  adverts_.AskCancel();
  adverts_.OnCancelPosted(9);
  ASSERT_TRUE(adverts_.OnSinkCancelAck(9, actions_));

  const SinkAdverts::Taken late = Complete(1);
  EXPECT_EQ(late.violation, nullptr);
  EXPECT_FALSE(late.is_taken);
}

// R16.3
TEST_F(SinkAdvertsTest, AnInvalidatedKeyMustBeThatOfTheAdvertBeingCompleted) {
  Advertise();
  Advertise();
  EXPECT_STREQ(Complete(kLength, 101).violation,
               "RKey: invalidated, but not of the advert being completed");
  EXPECT_EQ(Complete(kLength, 100).violation, nullptr);
  EXPECT_TRUE(std::get<Withdraw>(actions_[0]).already_invalidated);
}

// R8.2.1, R8.2.2
TEST_F(SinkAdvertsTest, PayloadWithoutAnAdvertCountsAsNonDiscard) {
  EXPECT_FALSE(Payload(10).is_taken);
  EXPECT_FALSE(Payload(10).is_taken);
  Advertise();
  EXPECT_EQ(told_[0], 2u);
}

// R8.2.6
TEST_F(SinkAdvertsTest, PayloadThatCrossesTakesTheOldestAdvertAndDoesNotCount) {
  Advertise();
  Advertise();
  const SinkAdverts::Taken taken = Payload(10);

  EXPECT_TRUE(taken.is_taken);
  EXPECT_EQ(taken.operation_number, 0u);
  EXPECT_EQ(taken.bytes, 10u);
  EXPECT_EQ(WithdrawnNow(), std::vector<AdvertId>{ids_[0]});
  Advertise();
  EXPECT_EQ(told_[2], 0u);
}

TEST_F(SinkAdvertsTest, PayloadThatDoesNotFitItsAdvertIsAViolation) {
  Advertise();
  EXPECT_NE(Payload(kLength + 1).violation, nullptr);
}

// R25.6
TEST_F(SinkAdvertsTest, AReceiveIsGivenBackOnlyWhenItsKeyIsDead) {
  Advertise();
  EXPECT_FALSE(adverts_.OnWithdrawn(ids_[0])) << "it is still outstanding";
  Complete(kLength);
  EXPECT_EQ(adverts_.OnWithdrawn(ids_[0]), std::optional<uint64_t>(0));
  EXPECT_FALSE(adverts_.OnWithdrawn(ids_[0])) << "once";
}

// R8.4.1
TEST_F(SinkAdvertsTest, NoAdvertAndNoSecondCancelUntilTheCancelIsAnswered) {
  Advertise();
  adverts_.AskCancel();
  EXPECT_TRUE(adverts_.cancel_owed());
  EXPECT_FALSE(adverts_.may_offer());
  adverts_.OnCancelPosted(5);
  adverts_.AskCancel();
  EXPECT_FALSE(adverts_.cancel_owed());
  EXPECT_FALSE(adverts_.may_offer());

  EXPECT_TRUE(adverts_.OnSinkCancelAck(5, actions_));
  EXPECT_TRUE(adverts_.may_offer());
}

TEST_F(SinkAdvertsTest, WithNothingOutstandingThereIsNothingToCancel) {
  adverts_.AskCancel();
  EXPECT_FALSE(adverts_.cancel_owed());
}

// R8.4.7
TEST_F(SinkAdvertsTest, AnAcknowledgementFromBeforeTheCancelIsNotItsAnswer) {
  Advertise();
  adverts_.AskCancel();
  EXPECT_FALSE(adverts_.OnSinkCancelAck(5, actions_)) << "not even sent";
  adverts_.OnCancelPosted(5);
  EXPECT_FALSE(adverts_.OnSinkCancelAck(4, actions_));
  EXPECT_EQ(adverts_.outstanding(), 1u);
  EXPECT_TRUE(adverts_.OnSinkCancelAck(6, actions_));
}

TEST_F(SinkAdvertsTest, ACancelNumberedAcrossTheWrapIsAnsweredByALaterNumber) {
  Advertise();
  adverts_.AskCancel();
  adverts_.OnCancelPosted(0xffffffff);
  EXPECT_FALSE(adverts_.OnSinkCancelAck(0xfffffffe, actions_));
  EXPECT_TRUE(adverts_.OnSinkCancelAck(0, actions_));
}

// R8.4.5
TEST_F(SinkAdvertsTest, TheAnswerTakesEveryAdvertBackAtOnce) {
  Advertise();
  Advertise();
  Advertise();
  adverts_.AskCancel();
  adverts_.OnCancelPosted(5);
  Complete(kLength);  // was in process
  actions_.clear();

  EXPECT_TRUE(adverts_.OnSinkCancelAck(5, actions_));
  EXPECT_EQ(WithdrawnNow(), (std::vector<AdvertId>{ids_[1], ids_[2]}));
}

// R8.4.5
TEST_F(SinkAdvertsTest, ACancelEndsWithoutAnAnswerWhenAllWereCompletedOrTaken) {
  Advertise();
  Advertise();
  adverts_.AskCancel();
  adverts_.OnCancelPosted(5);
  Complete(kLength);
  EXPECT_FALSE(adverts_.may_offer());
  Payload(1);

  EXPECT_TRUE(adverts_.may_offer());
  EXPECT_FALSE(adverts_.OnSinkCancelAck(5, actions_)) << "answers nothing that is outstanding";
}

// R8.5.1
TEST_F(SinkAdvertsTest, VanishingEndsACancelToo) {
  Advertise();
  adverts_.AskCancel();
  adverts_.OnCancelPosted(5);
  actions_.clear();
  adverts_.DropAll(actions_);

  EXPECT_EQ(WithdrawnNow(), std::vector<AdvertId>{ids_[0]});
  EXPECT_TRUE(adverts_.may_offer());
}

TEST_F(SinkAdvertsTest, EqualStatesHaveEqualDigestsAndOthersDiffer) {
  const auto digest = [](const SinkAdverts& adverts) {
    Digest sum;
    adverts.AddTo(sum);
    return sum.value();
  };
  const SinkAdverts before = adverts_;
  EXPECT_EQ(digest(before), digest(adverts_));
  Payload(1);
  EXPECT_NE(digest(before), digest(adverts_));
}

}  // namespace
}  // namespace esdp::sdp
