#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "esdp/stream.h"
#include "gtest/gtest.h"
#include "tests/base/content.h"
#include "tests/base/tcp_pair.h"
#include "tests/sockets/harness.h"

// Connections over TCP sockets that are connected already.

namespace esdp::contract {
namespace {

constexpr auto kSoon = absl::Seconds(20);

std::vector<World> OnQpip(std::vector<World> worlds) {
  std::erase_if(worlds, [](World world) { return TransportOf(world) != Transport::kQpip; });
  return worlds;
}

class OverTest : public PairTest {
 protected:
  absl::Time After(absl::Duration wait) const { return client_.context.Now() + wait; }
  bool takes_tcp() const { return TransportOf(world()) == Transport::kQpip; }
};

class OverQpipTest : public OverTest {};

class OverThreadTest : public OverTest {
 protected:
  // The accepting end, while this thread is the connecting one.
  void Accept(int descriptor) {
    acceptor_ = std::thread([this, descriptor] {
      accepted_ = Stream::Over(server_.context, descriptor, StreamSide::kAccepts, {}, After(kSoon));
    });
  }
  void TearDown() override {
    if (acceptor_.joinable()) acceptor_.join();
    accepted_ = absl::UnknownError("over");
    PairTest::TearDown();
  }
  // Why no stream was accepted.
  absl::Status Refusal(int descriptor) {
    return Stream::Over(server_.context, descriptor, StreamSide::kAccepts, {}, After(kSoon))
        .status();
  }

  std::thread acceptor_;
  absl::StatusOr<Stream> accepted_ = absl::UnknownError("not yet");
};

TEST_P(OverThreadTest, StreamsGoOverAConnectedTcpSocket) {
  for (const bool mapped : {false, true}) {
    TcpPair pair(mapped);
    Accept(pair.accepted);
    absl::StatusOr<Stream> near =
        Stream::Over(client_.context, pair.connected, StreamSide::kConnects);
    acceptor_.join();
    ASSERT_TRUE(near.ok() && accepted_.ok()) << near.status() << accepted_.status();
    pair.CloseConnected();
    pair.CloseAccepted();
    EXPECT_EQ(near->socket().peer(), accepted_->socket().local());
    EXPECT_EQ(near->socket().local(), accepted_->socket().peer());
    EXPECT_EQ(near->socket().peer().port(), pair.port);
    for (const size_t size : {size_t{1}, size_t{1} << 20}) {
      std::vector<std::byte> from(size);
      std::vector<std::byte> to(size);
      FillByChance(size, from);
      std::thread writer([&] { EXPECT_TRUE(accepted_->Write(from).ok()); });
      EXPECT_EQ(near->Read(absl::MakeSpan(to), {.min = size}).value_or(0), size);
      writer.join();
      EXPECT_TRUE(SameBytes(from, to));
    }
    std::thread closer([&] { EXPECT_TRUE(accepted_->Close(After(kSoon)).ok()); });
    EXPECT_TRUE(near->Close(After(kSoon)).ok());
    closer.join();
  }
}

TEST_P(OverThreadTest, AnAbortEndsTheTcpConnectionThoughItsDescriptorIsOpen) {
  TcpPair pair;
  Accept(pair.accepted);
  absl::StatusOr<Stream> near =
      Stream::Over(client_.context, pair.connected, StreamSide::kConnects);
  acceptor_.join();
  ASSERT_TRUE(near.ok() && accepted_.ok());
  near->Abort();
  std::byte byte{};
  EXPECT_FALSE(accepted_->Read(absl::MakeSpan(&byte, 1), {.deadline = After(kSoon)}).ok());
}

TEST_P(OverThreadTest, APeerThatSpeaksOtherwiseIsToldOf) {
  {
    TcpPair pair;
    const std::string request = "GET /index.html HTTP/1.1\r\nHost: here\r\n\r\n";
    ASSERT_GT(send(pair.connected, request.data(), request.size(), 0), 0);
    EXPECT_TRUE(
        Refuses(Refusal(pair.accepted), ErrorKind::kPeerProtocol, absl::StatusCode::kDataLoss));
  }
  {
    TcpPair pair;
    pair.CloseConnected();
    EXPECT_TRUE(Refuses(Refusal(pair.accepted), ErrorKind::kPeerReset, absl::StatusCode::kAborted));
  }
  {  // MPA, and then no Hello
    TcpPair pair;
    std::string frame = "MPA ID Req Frame";
    frame += std::string("\x00\x01\x00\x03", 4) + "abc";
    ASSERT_GT(send(pair.connected, frame.data(), frame.size(), 0), 0);
    EXPECT_TRUE(
        Refuses(Refusal(pair.accepted), ErrorKind::kHandshakeRefused, absl::StatusCode::kDataLoss));
  }
  TcpPair pair;
  const std::string answer = "220 mail.example ESMTP ready, and no MPA reply\r\n";
  ASSERT_GT(send(pair.accepted, answer.data(), answer.size(), 0), 0);
  EXPECT_TRUE(Refuses(Stream::Over(client_.context, pair.connected, StreamSide::kConnects),
                      ErrorKind::kPeerProtocol, absl::StatusCode::kDataLoss));
}

TEST_P(OverThreadTest, AcceptingEndsAtItsDeadlineAndGivesTheSocketUp) {
  TcpPair pair;
  EXPECT_TRUE(Refuses(Stream::Over(server_.context, pair.accepted, StreamSide::kAccepts, {},
                                   After(absl::Milliseconds(20))),
                      ErrorKind::kDeadlineExceeded, absl::StatusCode::kDeadlineExceeded));
  char byte = 0;
  EXPECT_EQ(recv(pair.connected, &byte, 1, 0), 0);  // nobody is there
}

TEST_P(OverTest, AcceptsAndConnectsAreOperationsLikeOthers) {
  TcpPair pair;
  Socket listener = server_.context.CreateSocket(Family::kIpv4).value();
  client_.socket = client_.context.CreateSocket(Family::kIpv4).value();
  if (!takes_tcp()) {
    EXPECT_TRUE(Refuses(listener.ListenOver(pair.accepted), ErrorKind::kUnsupported,
                        absl::StatusCode::kUnimplemented));
    EXPECT_TRUE(Refuses(client_.socket.ConnectOver(pair.connected, client_.Args()),
                        ErrorKind::kUnsupported, absl::StatusCode::kUnimplemented));
    return;
  }
  EXPECT_TRUE(Refuses(listener.ListenOver(-1), ErrorKind::kInvalidArgument,
                      absl::StatusCode::kInvalidArgument));
  ASSERT_TRUE(listener.ListenOver(pair.accepted).ok());
  EXPECT_EQ(listener.local().port(), pair.port);
  EXPECT_TRUE(Refuses(listener.ListenOver(pair.accepted), ErrorKind::kWrongState,
                      absl::StatusCode::kFailedPrecondition));
  const OpId accept = server_.Accepted(listener.Accept(1, server_.Args()));
  const OpId connect = client_.Accepted(client_.socket.ConnectOver(pair.connected, client_.Args()));
  EXPECT_TRUE(End(client_, connect).ok());
  const Event accepted = End(server_, accept);
  ASSERT_TRUE(accepted.ok());
  server_.socket = server_.context.TakeAccepted(accepted.accepted).value();
  Memory& from = Make(client_, 3000);
  Memory& to = Make(server_, 3000);
  from.Fill(1);
  Carry(client_, from, server_, to, 3000);
  // There is no second one, and an Accept of it can be taken back.
  const OpId second = server_.Accepted(listener.Accept(1, server_.Args()));
  ASSERT_TRUE(listener.Cancel(second).ok());
  EXPECT_EQ(End(server_, second).kind, ErrorKind::kCancelled);
}

TEST_P(OverQpipTest, AcceptsFailOnceNothingCanCome) {
  TcpPair pair;
  Socket listener = server_.context.CreateSocket(Family::kIpv4).value();
  ASSERT_TRUE(listener.ListenOver(pair.accepted).ok());
  const OpId first = server_.Accepted(listener.Accept(1, server_.Args()));
  const OpId many = server_.Accepted(listener.Accept(0, server_.Args()));
  pair.CloseConnected();
  EXPECT_EQ(End(server_, first).kind, ErrorKind::kPeerReset);
  EXPECT_EQ(End(server_, many).kind, ErrorKind::kPeerReset);
  EXPECT_TRUE(Refuses(listener.Accept(1, server_.Args()), ErrorKind::kPeerReset,
                      absl::StatusCode::kAborted));
}

TEST_P(OverQpipTest, ARefusalSaysWhatIsWrongWithTheDescriptor) {
  Socket listener = server_.context.CreateSocket(Family::kIpv4).value();
  const int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
  const int idle = socket(AF_INET, SOCK_STREAM, 0);
  const auto why = [&](int descriptor) {
    errno = EBADF;  // of what the program has done before
    const absl::Status refused = listener.ListenOver(descriptor);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    const std::string text(refused.message());
    return text.substr(text.rfind(": ") + 2);
  };
  EXPECT_EQ(why(datagrams), "its protocol is another one");
  EXPECT_EQ(why(idle), strerror(ENOTCONN));
  EXPECT_EQ(why(-1), strerror(EBADF));
  const int file = memfd_create("no socket", MFD_CLOEXEC);
  EXPECT_EQ(why(file), strerror(ENOTSOCK));
  for (const int descriptor : {datagrams, idle, file}) close(descriptor);
}

// The Context's accepting side of a connection of which the set-up has ended well, unaccepted.
TEST_P(OverQpipTest, AConnectionThatEndsBeforeItsAcceptIsToldToThatAndToPolls) {
  TcpPair pair;
  Socket listener = server_.context.CreateSocket(Family::kIpv4).value();
  client_.socket = client_.context.CreateSocket(Family::kIpv4).value();
  ASSERT_TRUE(listener.ListenOver(pair.accepted).ok());
  const OpId connect = client_.Accepted(client_.socket.ConnectOver(pair.connected, client_.Args()));
  EXPECT_TRUE(End(client_, connect).ok());
  const OpId comes = server_.Accepted(listener.Poll(kPollReadable, server_.Args()));
  EXPECT_EQ(End(server_, comes).bytes, uint64_t{kPollReadable});
  (void)client_.Close(CloseMode::kAbort);
  EXPECT_TRUE(Pump([&] { return listener.Stats().ended_before_accept == 1; }));
  const OpId ended = server_.Accepted(listener.Poll(kPollUrgent, server_.Args()));
  EXPECT_EQ(End(server_, ended).bytes, uint64_t{kPollFailed});
  EXPECT_TRUE(Refuses(listener.Accept(1, server_.Args()), ErrorKind::kPeerReset,
                      absl::StatusCode::kAborted));
}

TEST_P(OverQpipTest, APollIsToldThatNothingCanCome) {
  TcpPair pair;
  Socket listener = server_.context.CreateSocket(Family::kIpv4).value();
  ASSERT_TRUE(listener.ListenOver(pair.accepted).ok());
  const OpId poll = server_.Accepted(listener.Poll(kPollReadable, server_.Args()));
  pair.CloseConnected();
  EXPECT_EQ(End(server_, poll).bytes, uint64_t{kPollReadable | kPollFailed});
  const OpId later = server_.Accepted(listener.Poll(kPollReadable, server_.Args()));
  EXPECT_EQ(End(server_, later).bytes, uint64_t{kPollReadable | kPollFailed}) << "it is a level";
}

ESDP_ON_EVERY_WORLD(OverTest);
// Not on devices.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OverQpipTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OverThreadTest);
INSTANTIATE_TEST_SUITE_P(On, OverQpipTest, ::testing::ValuesIn(OnQpip(Worlds())), ParamName);
INSTANTIATE_TEST_SUITE_P(On, OverThreadTest, ::testing::ValuesIn(OnQpip(WorldsWithThread())),
                         ParamName);

}  // namespace
}  // namespace esdp::contract
