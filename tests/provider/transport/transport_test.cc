#include "impl/provider/transport/transport.h"

#include <vector>

#include "gtest/gtest.h"
#include "impl/base/spare_mappings.h"
#include "impl/provider/transport/posting.h"
#include "impl/provider/transport/receive_growth.h"
#include "tests/provider/fake_fabric.h"

// A transport on its own, with no session and no protocol on it.

namespace esdp::provider {
namespace {

constexpr uint32_t kBufferBytes = 4096;
const absl::Status kWhy = absl::InternalError("why");

class TransportTest : public testing::Test {
 protected:
  TransportTest() { Open(transport_); }
  ~TransportTest() override { Close(transport_); }

  void Open(Transport& transport) {
    Transport::Shape shape;
    shape.pool = {4, 2, 3, kBufferBytes};
    ASSERT_TRUE(transport.Open(fabric_, 0, shape, spares_).ok());
  }
  static void Close(Transport& transport) {
    transport.DestroyQueuePair();
    ASSERT_TRUE(transport.Release().ok());
  }

  void Send(Transport& transport) {
    const auto [work, entries] = posting_.StageSend(transport);
    entries[0] = transport.pool().Entry(transport.NextHeader(16));
    posting_.AddSend(1);
  }

  FakeFabric fabric_;
  SpareMappings spares_{4, size_t{1} << 20};
  Transport transport_;
  Posting posting_;
  std::vector<ExposureId> withdrawn_;
};

TEST_F(TransportTest, OpeningThatFailsLeavesNothingBehind) {
  fabric_.Refuse("Register", absl::ResourceExhaustedError("full"));
  Transport other;
  EXPECT_FALSE(other.Open(fabric_, 0, {}, spares_).ok());
  EXPECT_EQ(fabric_.queue_pairs(), 1u) << "that of the first";
}

TEST_F(TransportTest, WhatIsRefusedBeforeItIsReadyKeepsItFromConnecting) {
  EXPECT_TRUE(transport_.may_connect());
  transport_.Break(kWhy);
  EXPECT_FALSE(transport_.may_connect());
  EXPECT_EQ(transport_.failure().refused_call, kWhy);
  EXPECT_EQ(fabric_.disconnects(), 0);
}

TEST_F(TransportTest, WhatIsRefusedWhenItIsReadyEndsIt) {
  transport_.Note(QueuePairCue::kEstablished);
  transport_.Break(kWhy);
  EXPECT_EQ(fabric_.disconnects(), 1);
  EXPECT_EQ(transport_.failure().refused_call, kWhy);
  EXPECT_TRUE(transport_.TakesWork()) << "until the fabric says that all is back";
}

TEST_F(TransportTest, WhatIsRefusedAfterItsEndWasAskedForIsNotTheCause) {
  transport_.Note(QueuePairCue::kEstablished);
  EXPECT_TRUE(transport_.End(true));
  transport_.Break(kWhy);
  EXPECT_EQ(fabric_.disconnects(), 1);
  EXPECT_TRUE(transport_.failure().refused_call.ok());
}

TEST_F(TransportTest, NothingIsHeardOfTheEndOfAQueuePairWithoutAPeer) {
  fabric_.Refuse("Disconnect", absl::FailedPreconditionError("not connected"));
  EXPECT_FALSE(transport_.End(false));
  EXPECT_TRUE(transport_.TakesWork());
  transport_.Drop();
  EXPECT_FALSE(transport_.TakesWork());
  EXPECT_EQ(fabric_.queue_pairs(), 0u);
  EXPECT_FALSE(transport_.End(false)) << "nor of that of one that is lost";
}

TEST_F(TransportTest, AnEndThatHasBegunAlreadyIsHeardOf) {
  transport_.Note(QueuePairCue::kEstablished);
  fabric_.Refuse("Disconnect", absl::FailedPreconditionError("it is ending"));
  EXPECT_TRUE(transport_.End(false));
}

TEST_F(TransportTest, AnotherQueuePairTakesThePlaceOfALostOneWithoutItsFailure) {
  const fabric::QueuePairId first = transport_.queue_pair();
  transport_.Note(QueuePairCue::kEstablished);
  transport_.failure().cause = fabric::Cause::kPeerReset;
  transport_.Lose(withdrawn_);
  transport_.Replace(fabric_, 0);
  EXPECT_NE(transport_.queue_pair(), first);
  EXPECT_EQ(fabric_.queue_pairs(), 1u);
  EXPECT_TRUE(transport_.may_connect());
  EXPECT_FALSE(IsReset(transport_.failure()));
}

TEST_F(TransportTest, WhereThereIsNoOtherQueuePairItDoesNotConnect) {
  transport_.Lose(withdrawn_);
  fabric_.Refuse("CreateQueuePair", kWhy);
  transport_.Replace(fabric_, 0);
  EXPECT_FALSE(transport_.may_connect());
  EXPECT_EQ(transport_.queue_pair(), fabric::QueuePairId::kNone);
  EXPECT_TRUE(IsFabricError(transport_.failure()));
}

TEST_F(TransportTest, TheOtherQueuePairMayBeOfAnotherFabricWithTheSameBuffers) {
  FakeFabric other;
  transport_.Lose(withdrawn_);
  transport_.Replace(other, 1);
  EXPECT_EQ(transport_.place(), 1);
  EXPECT_EQ(fabric_.queue_pairs(), 0u);
  EXPECT_EQ(other.queue_pairs(), 1u);
  EXPECT_EQ(other.regions().size(), 1u);
  EXPECT_EQ(fabric_.regions().size(), 1u) << "work that names the memory may still be out there";
  posting_.AddReceive(transport_, 0, kBufferBytes);
  posting_.Flush();
  EXPECT_EQ(other.receives_posted(), 1u);

  transport_.Lose(withdrawn_);
  transport_.Replace(fabric_, 0);  // where it is known still
  EXPECT_EQ(fabric_.regions().size(), 1u);
  Close(transport_);
  EXPECT_TRUE(fabric_.regions().empty());
  EXPECT_TRUE(other.regions().empty());
  Open(transport_);
}

TEST_F(TransportTest, WhereTheOtherFabricDoesNotTakeTheBuffersItDoesNotConnect) {
  FakeFabric other;
  other.Refuse("Register", absl::ResourceExhaustedError("no more memory may be locked"));
  transport_.Lose(withdrawn_);
  transport_.Replace(other, 1);
  EXPECT_FALSE(transport_.may_connect());
  EXPECT_EQ(transport_.place(), 0);
  EXPECT_EQ(other.queue_pairs(), 0u);
  transport_.Replace(fabric_, 0);
  EXPECT_TRUE(transport_.may_connect());
}

TEST_F(TransportTest, WorkOfAnotherTransportPostsWhatIsCollected) {
  Transport other;
  Open(other);
  Send(transport_);
  Send(transport_);
  EXPECT_EQ(fabric_.sends().size(), 0u);
  Send(other);
  EXPECT_EQ(fabric_.sends().size(), 2u);
  posting_.Forget(transport_);  // whose work is not collected any more
  posting_.Flush();
  ASSERT_EQ(fabric_.sends().size(), 3u);
  EXPECT_EQ(fabric_.sends().back().queue_pair, other.queue_pair());
  Close(other);
}

TEST_F(TransportTest, WhatIsForgottenIsNotPosted) {
  Send(transport_);
  posting_.AddReceive(transport_, 0, kBufferBytes);
  posting_.Forget(transport_);
  posting_.Flush();
  EXPECT_EQ(fabric_.sends().size(), 0u);
  EXPECT_EQ(fabric_.receives_posted(), 0u);
}

TEST_F(TransportTest, APostThatIsRefusedBreaksItsTransport) {
  transport_.Note(QueuePairCue::kEstablished);
  fabric_.Refuse("PostSend", kWhy);
  Send(transport_);
  posting_.Flush();
  EXPECT_EQ(fabric_.disconnects(), 1);
  EXPECT_EQ(transport_.failure().refused_call, kWhy);
}

TEST_F(TransportTest, AKeyThatIsDeadAlreadyIsNotInvalidated) {
  transport_.Note(QueuePairCue::kEstablished);
  EXPECT_TRUE(posting_.PostInvalidate(transport_, 1, 7));
  fabric_.Refuse("PostSend", absl::NotFoundError("no such key"));
  EXPECT_FALSE(posting_.PostInvalidate(transport_, 1, 7));
  EXPECT_EQ(fabric_.disconnects(), 0);
}

TEST_F(TransportTest, ReceiveBuffersOfAllTransportsGrowWithinOneBound) {
  Transport other;
  Open(other);
  ReceiveGrowth growth;
  growth.Bound(5 * kBufferBytes);
  EXPECT_TRUE(growth.Change(transport_, 4, kBufferBytes).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(growth.Change(other, 4, kBufferBytes)));
  growth.Forget(transport_);
  EXPECT_TRUE(growth.Change(other, 4, kBufferBytes).ok());
  EXPECT_TRUE(growth.Change(other, 3, kBufferBytes).ok()) << "as at the start";
  EXPECT_TRUE(growth.Change(transport_, 4, kBufferBytes).ok());
  Close(other);
}

}  // namespace
}  // namespace esdp::provider
