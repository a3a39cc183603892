#include <variant>

#include "gtest/gtest.h"
#include "impl/base/random.h"
#include "impl/sdp/wire/messages.h"
#include "tests/provider/attack_fixture.h"

// Exposure under attack: a peer that was shown memory asks for more than that. It is refused, its
// connection ends with the reason, memory stays as it was, and nobody else notices.

namespace esdp::provider {
namespace {

INSTANTIATE_TEST_SUITE_P(Worlds, AttackTest,
                         testing::Values(World::kSim, World::kQpipManual, World::kQpipThread),
                         [](const auto& it) { return NameOf(it.param); });

// --- a window over what is sent, for reading ---

TEST_P(AttackTest, WhatWasShownCanBeReadAndNoByteBesideIt) {
  struct Range {
    int64_t offset;
    uint32_t length;
  };
  for (const Range range : {Range{kShownBytes, 1}, Range{0, kShownBytes + 1}, Range{-1, 2},
                            Range{-1, 1}, Range{1, kShownBytes}, Range{1 << 30, 16}}) {
    SCOPED_TRACE(testing::Message() << range.length << " bytes at " << range.offset);
    Memory& memory = Secret(Exposure::kPerOperation);
    const auto peer = Attacker();
    const Shown shown = Tempt(*peer, memory);
    EXPECT_EQ(peer->Read(shown.At(range.offset), range.length), WorkStatus::kRemoteAccess);
    ExpectAccessRefused(*peer, shown, memory);
  }
}

TEST_P(AttackTest, AKeyIsStaleFromTheReportThatEndsItsAdvert) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto peer = Attacker();
  const Shown shown = Tempt(*peer, memory);
  ASSERT_EQ(peer->Read(shown.At(0), 16), WorkStatus::kSuccess);
  EXPECT_EQ(peer->read_bytes()[3], memory.bytes()[kShownFrom + 3]) << "an honest read is served";
  peer->Say(wire::RdmaRdCompl{kShownBytes - 1});
  ASSERT_TRUE(
      pair_.RunUntil([&] { return victim().recorder.Find(shown.send->transfer).has_value(); }));
  EXPECT_EQ(peer->Read(shown.At(16), 16), WorkStatus::kRemoteAccess);
  EXPECT_EQ(peer->read_bytes()[15], memory.bytes()[kShownFrom + 15]) << "what it read before";
  EXPECT_EQ(peer->WaitForEnd(), Cause::kRemoteTerminate);
  ExpectEnded(shown.connection, EndReason::kRemoteAccess, "asked for memory that it was not shown");
  ExpectReturned(*shown.send, memory, EndReason::kOk);
  ExpectTheOthersGoOn();
}

TEST_P(AttackTest, AKeyIsStaleFromSendSmOn) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto peer = Attacker();
  const Shown shown = Tempt(*peer, memory);
  peer->Say(wire::SendSm{});
  ASSERT_TRUE(peer->Next().has_value()) << "the bytes come as Data";
  ASSERT_TRUE(
      pair_.RunUntil([&] { return victim().recorder.Find(shown.send->transfer).has_value(); }));
  EXPECT_EQ(peer->Read(shown.At(0), 16), WorkStatus::kRemoteAccess);
  EXPECT_EQ(peer->WaitForEnd(), Cause::kRemoteTerminate);
  ExpectNothingCame(*peer);
  ExpectEnded(shown.connection, EndReason::kRemoteAccess, "asked for memory that it was not shown");
  ExpectReturned(*shown.send, memory, EndReason::kOk);
}

TEST_P(AttackTest, TheKeyOfAnotherConnectionOpensNothing) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto owner = Attacker();
  const Shown shown = Tempt(*owner, memory);
  const auto thief = Attacker();
  const ConnectionId robbed = attacked_;
  EXPECT_EQ(thief->Read(shown.At(0), 16), WorkStatus::kRemoteAccess);
  EXPECT_EQ(thief->WaitForEnd(), Cause::kRemoteTerminate);
  ExpectNothingCame(*thief);
  ExpectEnded(robbed, EndReason::kRemoteAccess, "asked for memory that it was not shown");

  EXPECT_FALSE(owner->ended().has_value()) << "the connection that was shown it goes on";
  EXPECT_EQ(owner->Read(shown.At(0), 16), WorkStatus::kSuccess);
  owner->Say(wire::RdmaRdCompl{kShownBytes - 1});
  ExpectReturned(*shown.send, memory, EndReason::kOk);
}

TEST_P(AttackTest, AGuessedKeyOpensNothing) {
  Random guess(3);
  for (int i = 0; i < 12; ++i) {
    Memory& memory = Secret(Exposure::kPerOperation);
    const auto peer = Attacker();
    const Shown shown = Tempt(*peer, memory);
    RemoteRange place = shown.At(0);
    const uint32_t near[] = {place.key + 1, place.key - 1, place.key ^ 0x100, 0, 1, ~0u};
    place.key = i < 6 ? near[i] : static_cast<uint32_t>(guess.Next());
    if (place.key == shown.advert.remote_key) continue;
    SCOPED_TRACE(testing::Message() << "key " << place.key << " for " << shown.advert.remote_key);
    EXPECT_EQ(peer->Read(place, 16), WorkStatus::kRemoteAccess);
    ExpectAccessRefused(*peer, shown, memory);
  }
}

TEST_P(AttackTest, MemoryThatIsShownForReadingCannotBeWritten) {
  for (const int64_t offset : {int64_t{0}, int64_t{kShownBytes} - 1, int64_t{-1}}) {
    Memory& memory = Secret(Exposure::kPerOperation);
    const auto peer = Attacker();
    const Shown shown = Tempt(*peer, memory);
    EXPECT_NE(peer->Write(shown.At(offset), 1), WorkStatus::kReceiverNotReady);
    ExpectAccessRefused(*peer, shown, memory);
  }
}

TEST_P(AttackTest, AReportOfMoreThanWasShownBreaksTheProtocol) {
  for (const uint32_t length : {kShownBytes, kShownBytes + 1, 1u << 31}) {
    Memory& memory = Secret(Exposure::kPerOperation);
    const auto peer = Attacker();
    const Shown shown = Tempt(*peer, memory);
    peer->Say(wire::RdmaRdCompl{length});
    EXPECT_TRUE(peer->WaitForEnd().has_value());
    ExpectEnded(shown.connection, EndReason::kPeerProtocol, "RdmaRdCompl.Len: more than");
    ExpectReturned(*shown.send, memory, EndReason::kPeerProtocol);
  }
  ExpectTheOthersGoOn();
}

// --- a region's own key, and none ---

// Such a key opens the whole region by its nature, and lives as long as the region.
TEST_P(AttackTest, ARegionsKeyOpensNoByteBesideTheRegion) {
  constexpr auto kBegin = -static_cast<int64_t>(kShownFrom);
  constexpr auto kEnd = kBegin + static_cast<int64_t>(kMemoryBytes);
  struct Range {
    int64_t offset;
    uint32_t length;
  };
  for (const Range range : {Range{kBegin - 1, 1}, Range{kBegin - 1, 2}, Range{kEnd, 1},
                            Range{kEnd - 1, 2}, Range{kEnd + (1 << 20), 16}}) {
    SCOPED_TRACE(testing::Message() << range.length << " bytes at " << range.offset);
    Memory& memory = Secret(Exposure::kRegionKey);
    const auto peer = Attacker();
    const Shown shown = Tempt(*peer, memory);
    EXPECT_EQ(peer->Read(shown.At(range.offset), range.length), WorkStatus::kRemoteAccess);
    ExpectAccessRefused(*peer, shown, memory);
  }
}

TEST_P(AttackTest, ARegionsKeyIsDeadWithTheRegion) {
  Memory& memory = Secret(Exposure::kRegionKey);
  const auto peer = Attacker();
  const Shown shown = Tempt(*peer, memory);
  peer->Say(wire::RdmaRdCompl{kShownBytes - 1});
  ExpectReturned(*shown.send, memory, EndReason::kOk);
  EXPECT_EQ(peer->Read(shown.At(0), 16), WorkStatus::kRemoteAccess);
  EXPECT_EQ(peer->WaitForEnd(), Cause::kRemoteTerminate);
  ExpectNothingCame(*peer);
  ExpectEnded(shown.connection, EndReason::kRemoteAccess, "asked for memory that it was not shown");
}

TEST_P(AttackTest, ARegionsKeyCannotBeInvalidatedByThePeer) {
  Memory& memory = Secret(Exposure::kRegionKey);
  const auto peer = Attacker();
  const Shown shown = Tempt(*peer, memory);
  peer->Say(wire::RdmaRdCompl{kShownBytes - 1}, 0, shown.advert.remote_key);
  ExpectAccessRefused(*peer, shown, memory);
}

TEST_P(AttackTest, MemoryThatIsNeverExposedHasNoKeyToGuess) {
  Memory& memory = Secret(Exposure::kNone);
  const auto peer = Attacker();
  Job& send = jobs_.emplace_back(memory, true, kShownFrom, kShownBytes);
  send.transfer.path = Path::kZeroCopy;
  Submit(victim(), attacked_, send);
  const auto arrived = peer->Next();
  ASSERT_TRUE(arrived.has_value());
  EXPECT_TRUE(std::holds_alternative<wire::Data>(arrived->message.body));
  const auto address = reinterpret_cast<uintptr_t>(memory.bytes().data());
  EXPECT_EQ(peer->Read({1, address}, 16), WorkStatus::kRemoteAccess);
  EXPECT_EQ(peer->WaitForEnd(), Cause::kRemoteTerminate);
  ExpectNothingCame(*peer);
  ExpectEnded(attacked_, EndReason::kRemoteAccess, "asked for memory that it was not shown");
  ExpectTheOthersGoOn();
}

// --- keys that a Send invalidates ---

TEST_P(AttackTest, AKeyThatIsNobodysCannotBeInvalidated) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto peer = Attacker();
  const Shown shown = Tempt(*peer, memory);
  peer->Say(wire::RdmaRdCompl{kShownBytes - 1}, 0, shown.advert.remote_key + 1);
  ExpectAccessRefused(*peer, shown, memory);
}

TEST_P(AttackTest, TheKeyOfAnotherConnectionCannotBeInvalidated) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto owner = Attacker();
  const Shown shown = Tempt(*owner, memory);
  const auto thief = Attacker();
  const ConnectionId robbed = attacked_;
  thief->Say(wire::Data{}, 0, shown.advert.remote_key);
  EXPECT_EQ(thief->WaitForEnd(), Cause::kRemoteTerminate);
  ExpectEnded(robbed, EndReason::kRemoteAccess, "asked for memory that it was not shown");
  EXPECT_EQ(owner->Read(shown.At(0), 16), WorkStatus::kSuccess) << "the key is as good as before";
  owner->Say(wire::RdmaRdCompl{kShownBytes - 1}, 0, shown.advert.remote_key);
  ExpectReturned(*shown.send, memory, EndReason::kOk);
}

TEST_P(AttackTest, OnlyTheReportThatEndsAnAdvertMayInvalidateItsKey) {
  const wire::Body early = wire::RdmaRdCompl{kShownBytes - 2};
  for (const wire::Body& body : {wire::Body(wire::Data{}), wire::Body(wire::SendSm{}), early}) {
    Memory& memory = Secret(Exposure::kPerOperation);
    const auto peer = Attacker();
    const Shown shown = Tempt(*peer, memory);
    peer->Say(body, 0, shown.advert.remote_key);
    EXPECT_TRUE(peer->WaitForEnd().has_value());
    ExpectEnded(shown.connection, EndReason::kPeerProtocol, "RKey: invalidated");
    ExpectReturned(*shown.send, memory, EndReason::kPeerProtocol);
  }
  ExpectTheOthersGoOn();
}

}  // namespace
}  // namespace esdp::provider
