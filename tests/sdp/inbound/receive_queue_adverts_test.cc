#include <gtest/gtest.h>

#include "impl/sdp/common/policy.h"
#include "impl/sdp/inbound/receive_queue.h"

namespace esdp::sdp {
namespace {

class ReceiveQueueAdvertsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLength = 10000;

  OperationId Ask(bool wait_all = false, bool more = false) {
    AskReceive ask;
    if (!more_) id_ = OperationId{next_++};
    ask.piece = {id_, kLength, more_ ? kLength : 0u};
    ask.wait_all = wait_all;
    ask.placeable = true;
    ask.more = more;
    half_.Ask(ask);
    more_ = more;
    return id_;
  }
  // Shows as many places as may be shown; how many.
  int ShowAll() {
    int shown = 0;
    while (half_.NextToAdvertise()) {
      half_.OnAdvertised();
      ++shown;
    }
    return shown;
  }
  void Written(uint32_t bytes) { half_.OnWritten(bytes, counters_); }
  // What finishes now.
  std::vector<FinishOperation> Finished(bool end_of_stream = false) {
    half_.FinishReady(false, end_of_stream, counters_, actions_);
    return Take();
  }
  std::vector<FinishOperation> Take() {
    std::vector<FinishOperation> found;
    for (const Action& action : actions_) {
      if (const auto* it = std::get_if<FinishOperation>(&action)) found.push_back(*it);
    }
    actions_.clear();
    return found;
  }
  void WithdrawnKey(uint64_t number) { half_.OnWithdrawn(number, actions_); }

  ReceiveQueue half_;
  Counters counters_;
  Actions actions_;
  OperationId id_{};
  uint32_t next_ = 1;
  bool more_ = false;
};

TEST_F(ReceiveQueueAdvertsTest, EveryWaitingReceiveMayBeShownInOrder) {
  Ask();
  Ask();
  Ask();
  EXPECT_EQ(half_.NextToAdvertise()->operation_number, 0u);
  EXPECT_EQ(ShowAll(), 3);
  EXPECT_EQ(half_.advertised(), 3u);
  EXPECT_TRUE(half_.InvariantsHold());
}

// R8.1.1
TEST_F(ReceiveQueueAdvertsTest, NothingIsShownBehindAReceiveThatMustNotEndShort) {
  Ask(/*wait_all=*/true);
  EXPECT_EQ(ShowAll(), 1);
  Ask();
  EXPECT_EQ(ShowAll(), 0);
}

TEST_F(ReceiveQueueAdvertsTest, AReceiveThatMustNotEndShortIsNotShownWhileOthersWaitBehindIt) {
  Ask(/*wait_all=*/true);
  Ask();
  EXPECT_EQ(ShowAll(), 0);
}

TEST_F(ReceiveQueueAdvertsTest, OnlyOnePieceOfAReceiveIsShownAndNothingBehindIt) {
  Ask(false, /*more=*/true);
  EXPECT_EQ(ShowAll(), 0) << "its pieces are still coming";
  Ask();
  Ask();
  EXPECT_EQ(ShowAll(), 1);
}

// R13.2.7: what a graceful close leaves unread is dropped.
TEST_F(ReceiveQueueAdvertsTest, AReceiveBehindWhichBytesWereDroppedDoesNotMeetTheEnd) {
  Ask();
  ShowAll();
  Written(10);
  half_.OnPayload(ReceiveBuffer{1}, 16, 100);
  EXPECT_EQ(half_.DropOldestUnread(), ReceiveBuffer{1});
  WithdrawnKey(0);

  const auto finished = Finished(/*end_of_stream=*/true);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].bytes, 10u);
  EXPECT_FALSE(finished[0].end_of_stream);
}

TEST_F(ReceiveQueueAdvertsTest, AReceiveEndsOnlyWhenItsKeyIsDead) {
  const OperationId receive = Ask();
  ShowAll();
  Written(kLength);
  EXPECT_TRUE(Finished().empty());
  WithdrawnKey(0);

  const auto finished = Finished();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].operation, receive);
  EXPECT_EQ(finished[0].bytes, kLength);
  EXPECT_EQ(finished[0].bytes_zero_copy, kLength);
  EXPECT_EQ(counters_.receives_zero_copy, 1u);
}

TEST_F(ReceiveQueueAdvertsTest, AShortFillEndsItsReceiveSoThatTheNextOneFollows) {
  Ask();
  Ask();
  ShowAll();
  Written(10);
  Written(kLength);
  WithdrawnKey(0);
  WithdrawnKey(1);

  const auto finished = Finished();
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].bytes, 10u);
  EXPECT_EQ(finished[1].bytes, kLength);
  EXPECT_EQ(finished[1].stream_offset, 10u);
}

TEST_F(ReceiveQueueAdvertsTest, AShortFillOfAReceiveThatWaitsForAllLetsTheRestBeShownAgain) {
  Ask(/*wait_all=*/true);
  ShowAll();
  Written(10);
  WithdrawnKey(0);
  EXPECT_TRUE(Finished().empty());

  ASSERT_TRUE(half_.NextToAdvertise());
  EXPECT_EQ(half_.NextToAdvertise()->room.range.offset, 10u);
  EXPECT_EQ(half_.NextToAdvertise()->room.range.length, kLength - 10);
  half_.OnAdvertised();
  Written(kLength - 10);
  WithdrawnKey(0);
  EXPECT_EQ(Finished()[0].bytes, kLength);
}

TEST_F(ReceiveQueueAdvertsTest, PayloadThatTookTheAdvertsPlaceIsCopiedThereAndEndsIt) {
  const OperationId receive = Ask();
  Ask();
  ShowAll();
  half_.CopyInstead(ReceiveBuffer{3}, 16, 100, actions_, counters_);

  const CopyIn copy = std::get<CopyIn>(actions_[0]);
  EXPECT_EQ(copy.target, (OperationRange{receive, 100, 0}));
  EXPECT_EQ(copy.buffer_offset, 16u);
  actions_.clear();
  WithdrawnKey(0);
  const auto finished = Finished();
  ASSERT_EQ(finished.size(), 1u) << "the other one is still shown";
  EXPECT_EQ(finished[0].bytes, 100u);
  EXPECT_EQ(finished[0].bytes_zero_copy, 0u);
}

TEST_F(ReceiveQueueAdvertsTest, OnlyTheLastWithBytesTellsOfTheEndOfTheStream) {
  Ask();
  Ask();
  ShowAll();
  half_.CopyInstead(ReceiveBuffer{3}, 16, 100, actions_, counters_);
  half_.CopyInstead(ReceiveBuffer{4}, 16, 35, actions_, counters_);
  Take();
  // The peer's DisConn has come before the keys were dead.
  EXPECT_TRUE(Finished(/*end_of_stream=*/true).empty());
  WithdrawnKey(0);
  WithdrawnKey(1);

  const auto finished = Finished(/*end_of_stream=*/true);
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].bytes, 100u);
  EXPECT_FALSE(finished[0].end_of_stream);
  EXPECT_EQ(finished[1].bytes, 35u);
  EXPECT_TRUE(finished[1].end_of_stream);
}

TEST_F(ReceiveQueueAdvertsTest, AShownReceiveThatIsCancelledEndsOnlyWhenTheAdvertsAreGone) {
  Ask();
  const OperationId second = Ask();
  ShowAll();
  EXPECT_EQ(half_.Cancel(second, Outcome::kCancelled, actions_),
            ReceiveQueue::CancelAnswer::kAdvertised);
  EXPECT_TRUE(Take().empty());
  half_.OnAdvertsDropped(actions_);
  EXPECT_TRUE(Take().empty()) << "its key still lives";
  WithdrawnKey(0);
  WithdrawnKey(1);

  const auto finished = Take();
  ASSERT_EQ(finished.size(), 1u) << "and the first one waits on";
  EXPECT_EQ(finished[0].operation, second);
  EXPECT_EQ(finished[0].outcome, Outcome::kCancelled);
  EXPECT_EQ(finished[0].bytes, 0u);
  EXPECT_EQ(ShowAll(), 1) << "only the first one may be shown again";
}

TEST_F(ReceiveQueueAdvertsTest, ACancelThatTheFillHasCrossedChangesNothing) {
  const OperationId receive = Ask();
  ShowAll();
  half_.Cancel(receive, Outcome::kCancelled, actions_);
  Written(5);
  WithdrawnKey(0);

  const auto finished = Finished();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].outcome, Outcome::kDone);
  EXPECT_EQ(finished[0].bytes, 5u);
}

TEST_F(ReceiveQueueAdvertsTest, ACancelledReceiveThatWaitsForAllEndsWithWhatItHas) {
  const OperationId receive = Ask(/*wait_all=*/true);
  ShowAll();
  half_.Cancel(receive, Outcome::kDeadlineExceeded, actions_);
  Written(5);
  WithdrawnKey(0);

  const auto finished = Finished();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].outcome, Outcome::kDeadlineExceeded);
  EXPECT_EQ(finished[0].bytes, 5u);
}

TEST_F(ReceiveQueueAdvertsTest, CancellingAllSparesTheShownUntilTheyAreOutOfReach) {
  Ask(/*wait_all=*/true);
  ShowAll();
  Ask();
  half_.CancelAll(Outcome::kShutDown, actions_);
  EXPECT_TRUE(Finished().empty()) << "each in its turn, and the first can still be reached";

  half_.OnAdvertsDropped(actions_);
  EXPECT_TRUE(Finished().empty());
  WithdrawnKey(0);
  const auto finished = Finished();
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[1].outcome, Outcome::kShutDown);
  EXPECT_TRUE(half_.empty());
}

TEST_F(ReceiveQueueAdvertsTest, WhatCannotBeExposedIsNotTriedAgain) {
  Ask();
  half_.OnExposeRefused();
  EXPECT_FALSE(half_.NextToAdvertise()->room.placeable);
}

TEST_F(ReceiveQueueAdvertsTest, AReceiveCancelledAgainWhileItsKeyDiesEndsOnce) {
  const OperationId receive = Ask();
  ShowAll();
  half_.OnAdvertsDropped(actions_);
  EXPECT_EQ(half_.Cancel(receive, Outcome::kCancelled, actions_),
            ReceiveQueue::CancelAnswer::kCancelled);
  EXPECT_TRUE(Take().empty()) << "the peer may still reach it";
  WithdrawnKey(0);
  EXPECT_EQ(Take().size(), 1u);
  EXPECT_TRUE(Finished().empty());
}

// R8.1.1
TEST(AdvertPolicy, ShowsOnlyReceivesThatCanTakeAMessageThatCrosses) {
  ReceiveRoom room;
  room.range.length = 16400;
  room.placeable = true;
  EXPECT_FALSE(AdvertisesRoom(room, 16400));
  room.range.length = 16401;
  EXPECT_TRUE(AdvertisesRoom(room, 16400));
  room.zcopy_min = 20000;
  EXPECT_FALSE(AdvertisesRoom(room, 16400));
  room.path = Path::kZeroCopy;
  EXPECT_TRUE(AdvertisesRoom(room, 16400));
  room.path = Path::kCopy;
  EXPECT_FALSE(AdvertisesRoom(room, 16400));
  room.path = Path::kZeroCopy;
  room.placeable = false;
  EXPECT_FALSE(AdvertisesRoom(room, 16400));
}

}  // namespace
}  // namespace esdp::sdp
