#include "impl/provider/setup/admission.h"

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "impl/fabric/half_open.h"
#include "impl/provider/rejection.h"
#include "tests/provider/incoming.h"

// How many connections there may be, in all and by address, and how fast they may come.

namespace esdp::provider {
namespace {

using fabric::HalfOpen;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr PeerBounds kBounds{
    .connections = 6, .connections_of_address = 4, .accept_rate = 10, .accept_burst = 5};

class AdmissionTest : public IncomingTest {
 protected:
  AdmissionTest() : IncomingTest(kBounds) {}

  Rejection Told() const { return DecodeRejection(fabric_->rejection()); }
  uint64_t Counted(Rejection reason) { return side_.recorder.rejected(reason); }
  // `count` connections from there come about.
  void Open(uint8_t host, int count) {
    for (int i = 0; i < count; ++i) Establish(Request(host));
  }
  absl::Status Connect() {
    return side_.shard->Connect(Loopback(0), Loopback(5001), {}, kTimeInfinite).status();
  }
};

TEST_F(AdmissionTest, OneAddressHasItsShareAndOthersStillComeIn) {
  Listen(100);
  Open(9, 4);
  ASSERT_EQ(fabric_->rejects(), 0);
  (void)Request(9);
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(Told(), Rejection::kAddress);
  EXPECT_EQ(Counted(Rejection::kAddress), 1u);
  EXPECT_NE(log_.find("connections_per_address_max"), std::string::npos) << log_;
  Open(8, 2);
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(side_.recorder.incoming().size(), 6u);
}

TEST_F(AdmissionTest, OneThatEndsMakesRoomForAnotherOfItsAddress) {
  Listen(100);
  const fabric::QueuePairId first = Request(9);
  Open(9, 3);
  Fail(first);
  Open(9, 1);
  EXPECT_EQ(fabric_->rejects(), 0);
}

TEST_F(AdmissionTest, ThereAreSoManyInAll) {
  Listen(100);
  for (uint8_t host = 1; host <= 6; ++host) Open(host, 1);
  ASSERT_EQ(fabric_->rejects(), 0);
  (void)Request(7);
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(Told(), Rejection::kConnections);
  EXPECT_EQ(Counted(Rejection::kConnections), 1u);
  const absl::Status refused = Connect();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(refused.message().find("connections_max"), absl::string_view::npos) << refused;
}

TEST_F(AdmissionTest, ThoseThatConnectCountToo) {
  Listen(100);
  for (int i = 0; i < 6; ++i) (void)StartConnect();
  (void)Request(7);
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(Told(), Rejection::kConnections);
}

TEST_F(AdmissionTest, WhoDoesNotCompleteItsSetUpMakesRoomWhereThereIsNone) {
  Listen(100);
  for (uint8_t host = 1; host <= 6; ++host) (void)Request(host);
  (void)Request(7);
  EXPECT_EQ(fabric_->rejects(), 1) << "all are young";
  EXPECT_FALSE(Connect().ok());
  fabric_->MoveTime(HalfOpen::kTimeToSpeak);
  Open(7, 1);
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(side_.recorder.incoming().size(), 1u);
  EXPECT_TRUE(Connect().ok());
}

TEST_F(AdmissionTest, WhoComesFasterIsRejectedAndMayComeAgain) {
  Listen(1);
  for (int i = 0; i < 5; ++i) Fail(Request(9));
  ASSERT_EQ(fabric_->rejects(), 0) << "a burst";
  (void)Request(9);
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(Told(), Rejection::kRate);
  EXPECT_EQ(Counted(Rejection::kRate), 1u);
  Fail(Request(8));
  EXPECT_EQ(fabric_->rejects(), 1) << "another address";
  fabric_->MoveTime(milliseconds(100));
  Fail(Request(9));
  EXPECT_EQ(fabric_->rejects(), 1) << "one more in a tenth of a second";
  (void)Request(9);
  EXPECT_EQ(fabric_->rejects(), 2);
  fabric_->MoveTime(seconds(1));
  for (int i = 0; i < 5; ++i) Fail(Request(9));
  EXPECT_EQ(fabric_->rejects(), 2) << "the burst is whole again";
  (void)Request(9);
  EXPECT_EQ(fabric_->rejects(), 3) << "and no longer than it was";
}

TEST_F(AdmissionTest, ABurstMayBeAsLongAsTheBacklog) {
  Listen(50);
  for (int i = 0; i < 50; ++i) Fail(Request(9));
  EXPECT_EQ(fabric_->rejects(), 0);
  (void)Request(9);
  EXPECT_EQ(fabric_->rejects(), 1);
}

TEST_F(AdmissionTest, ANetworkOfIpv6IsOneAddress) {
  Listen(100);
  Address host{.family = fabric::Family::kIpv6, .port = 1000};
  host.bytes[0] = 0x20;
  for (uint8_t last = 0; last < 5; ++last) {
    host.bytes[15] = last;
    (void)Request(host);
  }
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(Told(), Rejection::kAddress);
  host.bytes[7] = 1;
  (void)Request(host);
  EXPECT_EQ(fabric_->rejects(), 1) << "another network";
}

TEST_F(AdmissionTest, TheBacklogIsToldToo) {
  Listen(1);
  Open(9, 1);
  (void)Request(8);
  EXPECT_EQ(Told(), Rejection::kBacklog);
  EXPECT_EQ(Counted(Rejection::kBacklog), 1u);
}

TEST_F(AdmissionTest, ThePeersReasonIsInTheErrorOfConnect) {
  (void)StartConnect();
  RendezvousEvent event = EventOf(RendezvousType::kConnectFailed, Cause::kRejected);
  const auto reason = EncodeRejection(Rejection::kAddress);
  event.private_data_bytes = static_cast<uint16_t>(reason.size());
  CopyBytes(event.private_data, reason);
  fabric_->Raise(event);
  Poll();
  const Failure failure = Closed();
  EXPECT_EQ(failure.ending, EndReason::kRejected);
  EXPECT_NE(failure.text.find("too many connections are open from that address"), std::string::npos)
      << failure.text;
}

TEST(AddressesTest, ThoseThatLeftAreForgotten) {
  Admission admission({.accept_rate = 1000});
  Time now{};
  fabric::AddressKey address{};
  for (uint32_t i = 0; i < 100'000; ++i) {
    address[0] = static_cast<uint8_t>(i);
    address[1] = static_cast<uint8_t>(i >> 8);
    address[2] = static_cast<uint8_t>(i >> 16);
    ASSERT_EQ(admission.Enter(address, 1, now), Rejection::kNone);
    admission.Leave(address);
    now += std::chrono::microseconds(100);
    ASSERT_LE(admission.addresses(), 200u);
  }
}

TEST(RejectionTest, SaysWhatWasMeantAndNothingElse) {
  for (size_t reason = 1; reason < kRejections; ++reason) {
    auto bytes = EncodeRejection(static_cast<Rejection>(reason));
    EXPECT_EQ(DecodeRejection(bytes), static_cast<Rejection>(reason));
    EXPECT_EQ(DecodeRejection(ConstBytes(bytes).first(7)), Rejection::kNone);
    bytes[0] = std::byte{0};
    EXPECT_EQ(DecodeRejection(bytes), Rejection::kNone);
  }
  EXPECT_EQ(DecodeRejection({}), Rejection::kNone);
  auto bytes = EncodeRejection(Rejection::kRate);
  bytes[7] = static_cast<std::byte>(kRejections);
  EXPECT_EQ(DecodeRejection(bytes), Rejection::kNone) << "of a later version";
}

}  // namespace
}  // namespace esdp::provider
