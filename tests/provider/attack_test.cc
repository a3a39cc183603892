#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/random.h"
#include "impl/provider/regions.h"
#include "impl/provider/shard.h"
#include "impl/sdp/wire/messages.h"
#include "tests/provider/port_peer.h"
#include "tests/provider/shard_pair.h"

// Exposure under attack: a peer that was shown memory asks for more than that. It is refused, its
// connection ends with the reason, memory stays as it was, and nobody else notices.

namespace esdp::provider {
namespace {

namespace wire = sdp::wire;

using fabric::Cause;
using fabric::RemoteRange;
using fabric::WorkStatus;

constexpr uint64_t kMemoryBytes = 256 * 1024;
// What the victim sends lies in the middle of its memory.
constexpr uint64_t kShownFrom = 64 * 1024;
constexpr uint32_t kShownBytes = 8192;

class AttackTest : public testing::TestWithParam<World> {
 protected:
  AttackTest() : pair_(GetParam()) {}

  void SetUp() override { ASSERT_TRUE(pair_.Connect()); }

  std::unique_ptr<PortPeer> Attacker() {
    auto peer = std::make_unique<PortPeer>(
        pair_.MakeFabric(),
        [this](const std::function<bool()>& done) { return pair_.RunUntil(done); });
    const size_t before = victim().recorder.incoming().size();
    const fabric::Address there = *victim().shard->ListenerAddress(pair_.listener());
    EXPECT_TRUE(peer->Connect(there, 1));
    EXPECT_TRUE(pair_.RunUntil([&] { return victim().recorder.incoming().size() > before; }));
    attacked_ = victim().recorder.incoming().back();
    return peer;
  }

  // The victim sends its middle to the peer of this connection, which is shown it.
  struct Shown {
    wire::SrcAvail advert;
    ConnectionId connection{};
    Job* send = nullptr;
    RemoteRange At(int64_t offset) const {
      return {advert.remote_key, advert.virtual_address + static_cast<uint64_t>(offset)};
    }
  };
  Shown Tempt(PortPeer& peer, Memory& memory) {
    Job& send = jobs_.emplace_back(memory, true, kShownFrom, kShownBytes);
    send.transfer.path = Path::kZeroCopy;
    Submit(victim(), attacked_, send);
    const auto arrived = peer.Next();
    EXPECT_TRUE(arrived.has_value());
    Shown shown;
    shown.connection = attacked_;
    shown.send = &send;
    if (!arrived) return shown;
    const auto* advert = std::get_if<wire::SrcAvail>(&arrived->message.body);
    EXPECT_NE(advert, nullptr);
    if (advert != nullptr) shown.advert = *advert;
    EXPECT_EQ(shown.advert.length, kShownBytes);
    return shown;
  }
  Memory& Secret(Exposure exposure) {
    Memory& memory = memories_.emplace_back(victim(), kMemoryBytes, exposure);
    memory.Fill(7);
    return memory;
  }

  void ExpectNothingCame(const PortPeer& peer) {
    for (const std::byte byte : peer.read_bytes()) ASSERT_EQ(byte, std::byte{0});
  }
  // The victim's side of it: the end has this reason, its send ended with it, and the memory is its
  // own again, unchanged.
  void ExpectEnded(ConnectionId connection, Ending reason, const std::string& text) {
    const Recorder::Ended* ended = nullptr;
    std::vector<Recorder::Ended> closed;
    EXPECT_TRUE(pair_.RunUntil([&] {
      closed = victim().recorder.closed();
      for (const Recorder::Ended& one : closed) {
        if (one.connection == connection) ended = &one;
      }
      return ended != nullptr;
    })) << "the connection goes on";
    if (ended == nullptr) return;
    EXPECT_EQ(ended->failure.ending, reason) << ended->failure.text;
    EXPECT_NE(ended->failure.text.find(text), std::string::npos) << ended->failure.text;
  }
  void ExpectReturned(const Job& send, Memory& memory, Ending ending) {
    EXPECT_TRUE(pair_.RunUntil([&] { return victim().recorder.Find(send.transfer).has_value(); }));
    const auto finished = victim().recorder.Find(send.transfer);
    ASSERT_TRUE(finished.has_value());
    EXPECT_EQ(finished->result.ending, ending);
    Memory& untouched = memories_.emplace_back(victim(), kMemoryBytes);
    untouched.Fill(7);
    EXPECT_TRUE(memory.bytes() == untouched.bytes()) << "the memory has changed";
    EXPECT_EQ(memory.region().operations(), 0u);
    const absl::Status let_go = victim().shard->Deregister(memory.region());
    EXPECT_TRUE(let_go.ok()) << "a key is left: " << let_go;
  }
  // Both directions, shown and read as always.
  void ExpectTheOthersGoOn() {
    for (const bool to_victim : {true, false}) {
      Side& from = to_victim ? pair_.client() : victim();
      Side& to = to_victim ? victim() : pair_.client();
      Memory& source = memories_.emplace_back(from, kMemoryBytes);
      Memory& sink = memories_.emplace_back(to, kMemoryBytes);
      source.Fill(8);
      Job& send = jobs_.emplace_back(source, true, 0, kMemoryBytes);
      Job& receive = jobs_.emplace_back(sink, false, 0, kMemoryBytes);
      receive.transfer.wait_all = true;
      Submit(to, to_victim ? pair_.server_connection() : pair_.client_connection(), receive);
      Submit(from, to_victim ? pair_.client_connection() : pair_.server_connection(), send);
      EXPECT_TRUE(pair_.RunUntil(
          [&] { return from.recorder.Find(send.transfer) && to.recorder.Find(receive.transfer); }));
      EXPECT_TRUE(source.bytes() == sink.bytes());
    }
  }
  void ExpectAccessRefused(PortPeer& peer, const Shown& shown, Memory& memory) {
    EXPECT_EQ(peer.WaitForEnd(), Cause::kRemoteTerminate);
    ExpectNothingCame(peer);
    ExpectEnded(shown.connection, Ending::kRemoteAccess, "asked for memory that it was not shown");
    ExpectReturned(*shown.send, memory, Ending::kRemoteAccess);
    ExpectTheOthersGoOn();
  }

  Side& victim() { return pair_.server(); }

  std::deque<Memory> memories_;
  std::deque<Job> jobs_;
  ShardPair pair_;
  ConnectionId attacked_{};
};

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
  ExpectEnded(shown.connection, Ending::kRemoteAccess, "asked for memory that it was not shown");
  ExpectReturned(*shown.send, memory, Ending::kOk);
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
  ExpectEnded(shown.connection, Ending::kRemoteAccess, "asked for memory that it was not shown");
  ExpectReturned(*shown.send, memory, Ending::kOk);
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
  ExpectEnded(robbed, Ending::kRemoteAccess, "asked for memory that it was not shown");

  EXPECT_FALSE(owner->ended().has_value()) << "the connection that was shown it goes on";
  EXPECT_EQ(owner->Read(shown.At(0), 16), WorkStatus::kSuccess);
  owner->Say(wire::RdmaRdCompl{kShownBytes - 1});
  ExpectReturned(*shown.send, memory, Ending::kOk);
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
    ExpectEnded(shown.connection, Ending::kPeerProtocol, "RdmaRdCompl.Len: more than");
    ExpectReturned(*shown.send, memory, Ending::kPeerProtocol);
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
  ExpectReturned(*shown.send, memory, Ending::kOk);
  EXPECT_EQ(peer->Read(shown.At(0), 16), WorkStatus::kRemoteAccess);
  EXPECT_EQ(peer->WaitForEnd(), Cause::kRemoteTerminate);
  ExpectNothingCame(*peer);
  ExpectEnded(shown.connection, Ending::kRemoteAccess, "asked for memory that it was not shown");
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
  ExpectEnded(attacked_, Ending::kRemoteAccess, "asked for memory that it was not shown");
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
  ExpectEnded(robbed, Ending::kRemoteAccess, "asked for memory that it was not shown");
  EXPECT_EQ(owner->Read(shown.At(0), 16), WorkStatus::kSuccess) << "the key is as good as before";
  owner->Say(wire::RdmaRdCompl{kShownBytes - 1}, 0, shown.advert.remote_key);
  ExpectReturned(*shown.send, memory, Ending::kOk);
}

TEST_P(AttackTest, OnlyTheReportThatEndsAnAdvertMayInvalidateItsKey) {
  const wire::Body early = wire::RdmaRdCompl{kShownBytes - 2};
  for (const wire::Body& body : {wire::Body(wire::Data{}), wire::Body(wire::SendSm{}), early}) {
    Memory& memory = Secret(Exposure::kPerOperation);
    const auto peer = Attacker();
    const Shown shown = Tempt(*peer, memory);
    peer->Say(body, 0, shown.advert.remote_key);
    EXPECT_TRUE(peer->WaitForEnd().has_value());
    ExpectEnded(shown.connection, Ending::kPeerProtocol, "RKey: invalidated");
    ExpectReturned(*shown.send, memory, Ending::kPeerProtocol);
  }
  ExpectTheOthersGoOn();
}

}  // namespace
}  // namespace esdp::provider
