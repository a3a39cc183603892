#include "impl/provider/wire_tap.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/wire_trace.h"
#include "impl/sdp/wire/codec.h"
#include "tests/provider/shard_pair.h"

namespace esdp::provider {
namespace {

using sdp::wire::Message;

class Listener final : public WireTap {
 public:
  struct Heard {
    bool sent = false;
    ConnectionId connection{};
    Time at{};
    std::vector<std::byte> header;
    Message message;
    uint64_t payload_bytes = 0;
  };

  void OnMessage(const WireMessage& message) override {
    heard.push_back({message.direction == WireMessage::Direction::kSent,
                     message.connection,
                     message.at,
                     {message.header.begin(), message.header.end()},
                     message.message,
                     message.payload_bytes});
  }

  // "sent Hello, received HelloAck, "
  std::string Names() const {
    std::string names;
    for (const Heard& each : heard) {
      names += each.sent ? "sent " : "received ";
      names += std::string(sdp::wire::NameOf(sdp::wire::IdOf(each.message))) + ", ";
    }
    return names;
  }

  std::vector<Heard> heard;
};

class WireTapTest : public testing::Test {
 protected:
  WireTapTest() : pair_(World::kSim, &tap_) {
    EXPECT_TRUE(pair_.Connect());
    from_.emplace(pair_.client(), 100'000);
    to_.emplace(pair_.server(), 100'000);
    from_->Fill(1);
  }

  void Carry(uint64_t bytes, Path path) {
    Job& send = jobs_.emplace_back(*from_, true, 0, bytes);
    Job& receive = jobs_.emplace_back(*to_, false, 0, bytes);
    send.transfer.path = receive.transfer.path = path;
    receive.transfer.wait_all = true;
    Submit(pair_.server(), pair_.server_connection(), receive);
    Submit(pair_.client(), pair_.client_connection(), send);
    ASSERT_TRUE(pair_.RunUntil([&] {
      return pair_.client().recorder.Find(send.transfer) &&
             pair_.server().recorder.Find(receive.transfer);
    }));
  }

  Listener tap_;
  // They outlive the shards, which may use them to their last moment.
  std::optional<Memory> from_, to_;
  std::deque<Job> jobs_;
  ShardPair pair_;
};

TEST_F(WireTapTest, SeesTheMessagesOfTheSetUpWithTheirConnection) {
  EXPECT_EQ(tap_.Names().find("sent Hello, received HelloAck, "), 0u) << tap_.Names();
  for (const Listener::Heard& each : tap_.heard) {
    EXPECT_EQ(each.connection, pair_.client_connection());
  }
}

TEST_F(WireTapTest, SeesDataWithItsPayloadAndTheTimeInOrder) {
  const size_t before = tap_.heard.size();
  Carry(64, Path::kCopy);
  ASSERT_GT(tap_.heard.size(), before);
  EXPECT_TRUE(tap_.heard[before].sent);
  EXPECT_TRUE(std::holds_alternative<sdp::wire::Data>(tap_.heard[before].message.body));
  EXPECT_EQ(tap_.heard[before].payload_bytes, 64u);
  EXPECT_TRUE(std::ranges::is_sorted(tap_.heard, {}, &Listener::Heard::at));
}

TEST_F(WireTapTest, TheBytesOfEachHeaderAreThoseOfTheMessage) {
  Carry(100'000, Path::kZeroCopy);
  Carry(5'000, Path::kCopy);
  EXPECT_NE(tap_.Names().find("sent SrcAvail, "), std::string::npos) << tap_.Names();
  EXPECT_NE(tap_.Names().find("received RdmaRdCompl, "), std::string::npos) << tap_.Names();
  for (Listener::Heard& each : tap_.heard) {
    std::vector<std::byte> whole = each.header;
    whole.resize(whole.size() + each.payload_bytes);
    Message decoded;
    ASSERT_FALSE(sdp::wire::Decode(whole, decoded).has_value());
    each.message.base.length = decoded.base.length;  // which Encode computes
    EXPECT_EQ(decoded, each.message);
  }
}

TEST_F(WireTapTest, ATraceKeepsTheLastMessagesAsText) {
  WireTrace trace(2);
  const Message message = tap_.heard[0].message;
  using enum WireMessage::Direction;
  const auto at = [](int seconds) { return Time(std::chrono::seconds(seconds)); };
  Message data;
  data.base.sequence = 5;
  data.base.buffers = 3;
  trace.OnMessage({kSent, ConnectionId{7}, at(1), {}, message});
  trace.OnMessage({kReceived, ConnectionId{7}, at(2), {}, message});
  trace.OnMessage({kSent, ConnectionId{8}, at(3), {}, data, 64});
  const std::string lines = trace.Text();
  EXPECT_EQ(lines.find("2.000000000 received Hello connection=7 "), 0u) << lines;
  EXPECT_NE(lines.find("\n3.000000000 sent Data connection=8 mseq=5 bufs=3 payload=64\n"),
            std::string::npos)
      << lines;
}

}  // namespace
}  // namespace esdp::provider
