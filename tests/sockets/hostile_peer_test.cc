#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/raw_stream.h"

// Peers of qpip that speak garbage, lie, or die: the connection ends with a reason where there was
// one, and the listener goes on to serve good peers.

namespace esdp::contract {
namespace {

using absl::StatusCode;

constexpr uint8_t kData = 0xff;

class HostilePeerTest : public PairTest {
 protected:
  std::unique_ptr<RawStream> Raw() {
    return std::make_unique<RawStream>(
        [this](const std::function<bool()>& done) { return Pump(done); });
  }
  void Listens() {
    address_ = Listen();
    accept_ = server_.Accepted(listener_.Accept(0, server_.Args()));
  }
  bool SomebodyWasAccepted() const {
    for (const Event& event : server_.events) {
      if (event.type == EventType::kAccept) return true;
    }
    return false;
  }
  // The next accepted connection is the server's socket.
  void TakeAccepted() {
    ASSERT_TRUE(Pump([&] { return SomebodyWasAccepted(); }));
    const Event event = Next(server_);
    ASSERT_TRUE(event.ok()) << event.status();
    auto taken = server_.context.TakeAccepted(event.accepted);
    ASSERT_TRUE(taken.ok()) << taken.status();
    server_.socket = *std::move(taken);
  }
  void ExpectGoodPeersAreServed() {
    server_.events.clear();
    client_.socket = *client_.context.CreateSocket(Family::kIpv4);
    const OpId connect = client_.Accepted(client_.socket.Connect(address_, client_.Args()));
    const Event connected = End(client_, connect);
    ASSERT_TRUE(connected.ok()) << connected.status();
    // Peers before it may be told of only now.
    ASSERT_TRUE(Pump([&] {
      std::erase_if(server_.events, [&](const Event& event) {
        return event.type == EventType::kAccept && !event.terminal() &&
               event.accepted_peer != client_.socket.local();
      });
      return SomebodyWasAccepted();
    }));
    ASSERT_NO_FATAL_FAILURE(TakeAccepted());
    Carry(client_, Make(client_, 100'000), server_, Make(server_, 100'000), 100'000);
    EXPECT_EQ(server_.Find(accept_), nullptr) << "the accept has ended";
  }
  // A hand-made peer that has shaken hands; the server's socket is the other end.
  std::unique_ptr<RawStream> Shake() {
    auto raw = Raw();
    EXPECT_TRUE(raw->Connect(address_.port()));
    raw->Write(MpaRequest(HonestHello()));
    EXPECT_GE(raw->Read(20 + 4 + 196).size(), 20u + 4u + 196u);
    TakeAccepted();
    return raw;
  }
  // How a receive of the server's ends after the peer has said this.
  Event EndAfter(const Octets& bytes) {
    auto raw = Shake();
    const OpId receive = server_.Recv(Make(server_, 100).All(), RecvFlags::kWaitAll);
    raw->Write(bytes);
    const Event event = End(server_, receive);
    EXPECT_TRUE(raw->WaitForEnd()) << "the stream goes on";
    return event;
  }

  Address address_;
  OpId accept_ = OpId::kNone;
};
ESDP_ON_TCP_WORLDS(HostilePeerTest);

TEST_P(HostilePeerTest, AHandMadeHonestPeerIsServed) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  auto raw = Shake();
  Memory& to = Make(server_, 5);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  raw->Write(SendFrame(SdpMessage(kData, 1, {'h', 'e', 'l', 'l', 'o'}), 1));
  EndWell(server_, receive, 5);
  EXPECT_EQ(to.bytes[4], std::byte{'o'});
  const OpId next = server_.Recv(to.All());
  raw->Reset();
  EXPECT_EQ(End(server_, next).kind, ErrorKind::kPeerReset);
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, ATerminateIsToldAsWhatThePeerSaysInTheWordsOfTheRfc) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  const struct {
    uint8_t type;
    uint8_t code;
    const char* words;
  } cases[] = {
      {0x01, 0x02, "RDMAP, Remote Protection Error: Access rights violation (0x0102)"},
      {0x12, 0x05, "DDP, Untagged Buffer Error: DDP Message too long for available buffer"},
      {0x20, 0x03, "MPA Error: ULPDU Length does not fit the FPDU (0x2003)"},
      {0x37, 0x7b, "unknown layer or type: unknown error (0x377b)"},
  };
  for (const auto& one : cases) {
    Octets terminate = SendFrame({one.type, one.code, 0, 0}, 1);
    terminate[3] = 0x47;  // RDMAP Terminate, on its queue
    Put(terminate, 8, 2, 4);
    const Event event = EndAfter(terminate);
    EXPECT_EQ(event.kind, ErrorKind::kPeerReset);
    const absl::Status status = event.status();
    const std::string text(status.message().data(), status.message().size());
    EXPECT_NE(text.find(one.words), std::string::npos) << text;
    EXPECT_NE(text.find("it says that this side broke that rule"), std::string::npos) << text;
  }
}

TEST_P(HostilePeerTest, GarbageToTheListenerIsDropped) {
  const uint64_t seed = NewSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  ASSERT_NO_FATAL_FAILURE(Listens());
  for (uint64_t i = 0; i < 20; ++i) {
    auto raw = Raw();
    ASSERT_TRUE(raw->Connect(address_.port()));
    Octets bytes = Garbage(seed + i, 1 + (seed + i * 997) % 4000);
    if (i % 2 == 0) {  // the right key, then garbage
      bytes.resize(std::max<size_t>(bytes.size(), 600));
      const std::string key = "MPA ID Req Frame";
      std::copy(key.begin(), key.end(), bytes.begin());
    }
    raw->Write(bytes);
    raw->EndWrites();
    EXPECT_TRUE(raw->WaitForEnd()) << "after " << bytes.size() << " bytes of garbage";
  }
  EXPECT_FALSE(SomebodyWasAccepted());
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, ARequestCutAtAnyByteIsDropped) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  const Octets whole = MpaRequest(HonestHello());
  for (size_t size = 0; size < whole.size(); ++size) {
    auto raw = Raw();
    ASSERT_TRUE(raw->Connect(address_.port()));
    raw->Write(Octets(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)));
    if (size % 2 == 0) {
      raw->EndWrites();
      EXPECT_TRUE(raw->WaitForEnd()) << "cut after " << size << " bytes";
    } else {
      raw->Reset();
    }
  }
  Settle();
  EXPECT_FALSE(SomebodyWasAccepted());
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, SilentPeersDoNotHoldUpTheOthers) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  std::vector<std::unique_ptr<RawStream>> silent;
  for (int i = 0; i < 10; ++i) {
    silent.push_back(Raw());
    ASSERT_TRUE(silent.back()->Connect(address_.port()));
    if (i % 2 == 0) silent.back()->Write(FromHex("4d5041"));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, ABadStartupFrameIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  struct Change {
    size_t at;
    uint64_t value;
    size_t size;
  };
  const std::vector<Change> changes = {{0, 'm', 1},         // the key
                                       {8, 0x52657020, 4},  // the key of a reply
                                       {16, 0x90, 1},       // markers
                                       {17, 0, 1},          // revision
                                       {17, 3, 1},         {17, 255, 1},
                                       {18, 513, 2},  // longer than any private data
                                       {18, 65535, 2}};
  for (const Change& change : changes) {
    auto raw = Raw();
    ASSERT_TRUE(raw->Connect(address_.port()));
    Octets frame = MpaRequest(HonestHello());
    frame.resize(1000);
    Put(frame, change.at, change.value, change.size);
    raw->Write(frame);
    raw->EndWrites();
    EXPECT_TRUE(raw->WaitForEnd()) << "byte " << change.at << " = " << change.value;
  }
  EXPECT_FALSE(SomebodyWasAccepted());
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, ATruncatedHelloIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  for (size_t size = 0; size < 32; ++size) {
    auto raw = Raw();
    ASSERT_TRUE(raw->Connect(address_.port()));
    Octets hello = HonestHello();
    hello.resize(size);
    raw->Write(MpaRequest(hello));
    const Octets& answer = raw->Read(20);
    EXPECT_TRUE(raw->ended() || (answer.at(16) & 0x20) != 0) << "accepted " << size << " bytes";
    EXPECT_TRUE(raw->WaitForEnd());
  }
  EXPECT_FALSE(SomebodyWasAccepted());
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, AHelloThatLiesIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  struct Lie {
    size_t at;
    uint64_t value;
    size_t size;
  };
  const std::vector<Lie> lies = {
      {0, 1, 1},          {0, kData, 1},       {4, 0, 4},     {4, 91, 4},          {4, 93, 4},
      {4, 0xffffffff, 4}, {16, 0x32, 1},       {16, 0x00, 1}, {17, 0x50, 1},       {17, 0x00, 1},
      {20, 0, 4},         {24, 0, 4},          {24, 15, 4},   {24, 0x7fffffff, 4}, {19, 0, 1},
      {8, 0x10000, 4},    {12, 0xffff0000, 4}, {2, 0, 2}};
  size_t rejected = 0;
  for (const Lie& lie : lies) {
    auto raw = Raw();
    ASSERT_TRUE(raw->Connect(address_.port()));
    Octets hello = HonestHello();
    Put(hello, lie.at, lie.value, lie.size);
    raw->Write(MpaRequest(hello));
    const Octets& answer = raw->Read(20);
    const bool refused = raw->ended() || (answer.at(16) & 0x20) != 0;
    rejected += refused;
    if (lie.at <= 4 || lie.at == 16 || lie.at == 17) {
      if (lie.at == 2) continue;  // no buffers is a slow peer, not a liar
      EXPECT_TRUE(refused) << "byte " << lie.at << " = " << lie.value;
    }
  }
  EXPECT_GE(rejected, 10u);
  Settle();
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, AnOversizedHelloIsTakenForItsFirst92BytesOrRejected) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  for (const size_t size : {93u, 200u, 508u}) {
    auto raw = Raw();
    ASSERT_TRUE(raw->Connect(address_.port()));
    Octets hello = HonestHello();
    hello.resize(size, 0xee);
    raw->Write(MpaRequest(hello));
    EXPECT_TRUE(raw->Read(20).size() >= 20 || raw->ended()) << size;
    raw->Reset();
  }
  Settle();
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, GarbageAfterTheHandshakeEndsTheConnectionWithAReason) {
  const uint64_t seed = NewSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  ASSERT_NO_FATAL_FAILURE(Listens());
  for (uint64_t i = 0; i < 10; ++i) {
    Octets garbage = Garbage(seed + i, 70'000);
    garbage[0] = 0;  // a short frame, so that what is wrong is seen at once
    garbage[1] = 40;
    garbage[2] = static_cast<uint8_t>(garbage[2] & 0xfc);  // no such version of DDP
    const Event event = EndAfter(garbage);
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kPeerProtocol, StatusCode::kDataLoss));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

// R3.10.4
TEST_P(HostilePeerTest, AnSdpMessageWithAWrongFieldEndsTheConnectionAndIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  const auto changed = [](size_t at, uint64_t value, size_t size) {
    Octets message = SdpMessage(kData, 1, {1, 2, 3});
    Put(message, at, value, size);
    return message;
  };
  const std::vector<Octets> wrong = {
      changed(0, 0x7e, 1),         // no such message
      changed(0, 0x00, 1),         // a second Hello
      changed(0, 0x01, 1),         // a HelloAck to the accepting side
      changed(4, 15, 4),           // a length below the header's
      changed(4, 18, 4),           // shorter than what came
      changed(4, 0xffffffff, 4),   // longer
      changed(8, 2, 4),            // a sequence number left out
      changed(8, 0, 4),            // one said twice
      changed(12, 77, 4),          // acknowledges what was not sent
      Octets(15, 0xff),            // no whole header
      SdpMessage(0x02, 1, {1, 2})  // DisConn with more behind it
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    const Event event = EndAfter(SendFrame(wrong[i], 1));
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kPeerProtocol, StatusCode::kDataLoss)) << i;
  }
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, AFloodOfFramesThatCarryNothingEndsTheConnectionWithAReason) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  const Octets without_a_segment(8);
  const Octets empty_write = FromHex("000ec1400000000000000000000000000000000000000000");
  for (const Octets& frame : {without_a_segment, empty_write}) {
    Octets flood;
    for (int i = 0; i < 1025; ++i) flood.insert(flood.end(), frame.begin(), frame.end());
    const Event event = EndAfter(flood);
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kPeerProtocol, StatusCode::kDataLoss));
    EXPECT_NE(event.status().message().find("carried nothing"), std::string::npos)
        << event.status();
  }
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

TEST_P(HostilePeerTest, APeerThatDiesAtAnyByteEndsItsConnectionAlone) {
  ASSERT_NO_FATAL_FAILURE(Listens());
  const Octets whole = SendFrame(SdpMessage(kData, 1, Octets(50, 7)), 1);
  for (size_t size = 0; size <= whole.size(); size += 5) {
    auto raw = Shake();
    const OpId receive = server_.Recv(Make(server_, 100).All(), RecvFlags::kWaitAll);
    raw->Write(Octets(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)));
    size % 2 == 0 ? raw->Reset() : raw->Close();
    const Event event = End(server_, receive);
    EXPECT_FALSE(event.ok());
    EXPECT_TRUE(event.kind == ErrorKind::kPeerReset || event.kind == ErrorKind::kPeerProtocol)
        << event.status();
    EXPECT_LE(event.bytes, 50u);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectGoodPeersAreServed());
}

}  // namespace
}  // namespace esdp::contract
