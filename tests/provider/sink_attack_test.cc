#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "impl/sdp/wire/messages.h"
#include "tests/provider/attack_fixture.h"

// The same for receives that are shown to the peer, which may write there and nowhere else.

namespace esdp::provider {
namespace {

class SinkAttackTest : public AttackTest {
 protected:
  static constexpr uint32_t kRoom = 64 * 1024;

  // The victim receives into its middle, and shows that to the peer.
  struct Room {
    wire::SinkAvail advert;
    ConnectionId connection{};
    Job* receive = nullptr;
    RemoteRange At(int64_t offset) const {
      return {advert.remote_key, advert.virtual_address + static_cast<uint64_t>(offset)};
    }
  };
  Room Invite(PortPeer& peer, Memory& memory) {
    peer.Say(wire::ModeChange{false, wire::Mode::kPipelined});
    Job& receive = jobs_.emplace_back(memory, false, kShownFrom, kRoom);
    receive.transfer.path = Path::kZeroCopy;
    Submit(victim(), attacked_, receive);
    Room room;
    room.connection = attacked_;
    room.receive = &receive;
    const auto arrived = peer.Next();
    EXPECT_TRUE(arrived.has_value());
    if (!arrived) return room;
    const auto* advert = std::get_if<wire::SinkAvail>(&arrived->message.body);
    EXPECT_NE(advert, nullptr);
    if (advert != nullptr) room.advert = *advert;
    EXPECT_EQ(room.advert.length, kRoom);
    return room;
  }
  void ExpectWriteRefused(PortPeer& peer, const Room& room) {
    EXPECT_EQ(peer.WaitForEnd(), Cause::kRemoteTerminate);
    ExpectEnded(room.connection, EndReason::kRemoteAccess,
                "asked for memory that it was not shown");
  }
};

INSTANTIATE_TEST_SUITE_P(Worlds, SinkAttackTest,
                         testing::Values(World::kSim, World::kQpipManual, World::kQpipThread),
                         [](const auto& it) { return NameOf(it.param); });

TEST_P(SinkAttackTest, NoByteBesideAnAdvertCanBeWritten) {
  for (const int64_t offset : {int64_t{-1}, int64_t{kRoom}, int64_t{kRoom} - 1, int64_t{1} << 30}) {
    SCOPED_TRACE(offset);
    Memory& memory = Secret(Exposure::kPerOperation);
    const auto peer = Attacker(4);
    const Room room = Invite(*peer, memory);
    peer->Write(room.At(offset), 2);
    ExpectWriteRefused(*peer, room);
    ExpectReturned(*room.receive, memory, EndReason::kRemoteAccess);
  }
  ExpectTheOthersGoOn();
}

TEST_P(SinkAttackTest, WhatIsShownForWritingCannotBeRead) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto peer = Attacker(4);
  const Room room = Invite(*peer, memory);
  EXPECT_EQ(peer->Read(room.At(0), 16), WorkStatus::kRemoteAccess);
  ExpectWriteRefused(*peer, room);
  ExpectNothingCame(*peer);
  ExpectReturned(*room.receive, memory, EndReason::kRemoteAccess);
}

TEST_P(SinkAttackTest, AKeyIsStaleFromTheCompletionOn) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto peer = Attacker(4);
  const Room room = Invite(*peer, memory);
  ASSERT_EQ(peer->Write(room.At(0), 16), WorkStatus::kSuccess);
  peer->Say(wire::RdmaWrCompl{16});
  ASSERT_TRUE(
      pair_.RunUntil([&] { return victim().recorder.Find(room.receive->transfer).has_value(); }));
  EXPECT_EQ(victim().recorder.Find(room.receive->transfer)->result.bytes, 16u);
  const std::byte before = memory.bytes()[kShownFrom];
  EXPECT_EQ(before, std::byte{0xee}) << "an honest write is served";
  memory.Fill(7);
  peer->Write(room.At(0), 16);
  ExpectWriteRefused(*peer, room);
  ExpectReturned(*room.receive, memory, EndReason::kOk);
}

TEST_P(SinkAttackTest, AKeyIsStaleFromTheAnswerToACancelOn) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto peer = Attacker(4);
  const Room room = Invite(*peer, memory);
  Request cancel;
  cancel.kind = Request::Kind::kCancel;
  cancel.connection = room.connection;
  cancel.transfer = &room.receive->transfer;
  victim().shard->Submit(cancel);
  const auto asked = peer->Next();
  ASSERT_TRUE(asked && std::holds_alternative<wire::SinkAvailCancel>(asked->message.body));
  EXPECT_FALSE(victim().recorder.Find(room.receive->transfer)) << "the peer may still write";
  peer->Say(wire::SinkCancelAck{});
  ASSERT_TRUE(
      pair_.RunUntil([&] { return victim().recorder.Find(room.receive->transfer).has_value(); }));
  peer->Write(room.At(0), 16);
  ExpectWriteRefused(*peer, room);
  ExpectReturned(*room.receive, memory, EndReason::kCancelled);
  ExpectTheOthersGoOn();
}

// Its memory may hold another client's bytes.
TEST_P(SinkAttackTest, ACompletionOfMoreThanWasWrittenBreaksTheProtocol) {
  struct Case {
    const char* name;
    std::vector<std::pair<int64_t, uint32_t>> writes;
    uint32_t claimed;
  };
  for (const Case& one : {Case{"nothing", {}, kRoom}, Case{"a byte less", {{0, 16}}, 17},
                          Case{"behind a gap", {{0, 16}, {17, 16}}, 33},
                          Case{"the end alone", {{kRoom - 16, 16}}, 16},
                          Case{"the same twice", {{0, 16}, {0, 16}}, 32}}) {
    SCOPED_TRACE(one.name);
    Memory& memory = Secret(Exposure::kPerOperation);
    const auto peer = Attacker(4);
    const Room room = Invite(*peer, memory);
    for (const auto& [offset, length] : one.writes) {
      ASSERT_EQ(peer->Write(room.At(offset), length), WorkStatus::kSuccess);
    }
    peer->Say(wire::RdmaWrCompl{one.claimed});
    EXPECT_TRUE(peer->WaitForEnd().has_value());
    ExpectEnded(room.connection, EndReason::kPeerProtocol, "more than was written");
    ASSERT_TRUE(
        pair_.RunUntil([&] { return victim().recorder.Find(room.receive->transfer).has_value(); }));
    EXPECT_EQ(victim().recorder.Find(room.receive->transfer)->result.bytes, 0u);
  }
  ExpectTheOthersGoOn();
}

TEST_P(SinkAttackTest, ACompletionOfWhatWasWrittenInPartsIsTaken) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto peer = Attacker(4);
  const Room room = Invite(*peer, memory);
  ASSERT_EQ(peer->Write(room.At(0), 16), WorkStatus::kSuccess);
  ASSERT_EQ(peer->Write(room.At(16), 20), WorkStatus::kSuccess);
  peer->Say(wire::RdmaWrCompl{36});
  ASSERT_TRUE(
      pair_.RunUntil([&] { return victim().recorder.Find(room.receive->transfer).has_value(); }));
  const TransferResult result = victim().recorder.Find(room.receive->transfer)->result;
  EXPECT_EQ(result.bytes, 36u);
  EXPECT_TRUE(result.written);
}

TEST_P(SinkAttackTest, ACompletionOfMoreThanWasShownBreaksTheProtocol) {
  Memory& memory = Secret(Exposure::kPerOperation);
  const auto peer = Attacker(4);
  const Room room = Invite(*peer, memory);
  peer->Say(wire::RdmaWrCompl{kRoom + 1});
  EXPECT_TRUE(peer->WaitForEnd().has_value());
  ExpectEnded(room.connection, EndReason::kPeerProtocol, "RdmaWrCompl");
  ExpectReturned(*room.receive, memory, EndReason::kPeerProtocol);
}

}  // namespace
}  // namespace esdp::provider
