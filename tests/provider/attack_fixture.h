#ifndef ESDP_TESTS_PROVIDER_ATTACK_FIXTURE_H_
#define ESDP_TESTS_PROVIDER_ATTACK_FIXTURE_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/regions.h"
#include "impl/provider/shard.h"
#include "impl/sdp/wire/messages.h"
#include "tests/provider/port_peer.h"
#include "tests/provider/shard_pair.h"

// A victim, a peer that attacks it, and honest connections of the same victim beside that one.

namespace esdp::provider {

namespace wire = sdp::wire;

using fabric::Cause;
using fabric::RemoteRange;
using fabric::WorkStatus;

inline constexpr uint64_t kMemoryBytes = 256 * 1024;
// What the victim sends lies in the middle of its memory.
inline constexpr uint64_t kShownFrom = 64 * 1024;
inline constexpr uint32_t kShownBytes = 8192;

class AttackTest : public testing::TestWithParam<World> {
 protected:
  AttackTest() : pair_(GetParam()) {}

  void SetUp() override { ASSERT_TRUE(pair_.Connect()); }

  std::unique_ptr<PortPeer> Attacker(uint8_t max_adverts = 1) {
    auto peer = std::make_unique<PortPeer>(
        pair_.MakeFabric(),
        [this](const std::function<bool()>& done) { return pair_.RunUntil(done); });
    const size_t before = victim().recorder.incoming().size();
    const fabric::Address there = *victim().shard->ListenerAddress(pair_.listener());
    EXPECT_TRUE(peer->Connect(there, max_adverts));
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
  void ExpectEnded(ConnectionId connection, EndReason reason, const std::string& text) {
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
  void ExpectReturned(const Job& send, Memory& memory, EndReason ending) {
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
    ExpectEnded(shown.connection, EndReason::kRemoteAccess,
                "asked for memory that it was not shown");
    ExpectReturned(*shown.send, memory, EndReason::kRemoteAccess);
    ExpectTheOthersGoOn();
  }

  Side& victim() { return pair_.server(); }

  std::deque<Memory> memories_;
  std::deque<Job> jobs_;
  ShardPair pair_;
  ConnectionId attacked_{};
};

}  // namespace esdp::provider

#endif  // ESDP_TESTS_PROVIDER_ATTACK_FIXTURE_H_
