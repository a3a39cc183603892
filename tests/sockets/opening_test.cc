#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Opening a context: which fabrics there are, what is refused, what is told; and how connecting and
// listening fail.

namespace esdp::contract {
namespace {

using absl::StatusCode;

std::string TextOf(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

TEST(OpeningTest, AnUnknownFabricIsRefusedAndTheKnownOnesAreListed) {
  for (const std::string name :
       {"", "nonsense", "QPIP", "sim:", "sim:x", "qpip:1", "sim:99999999999999999999999"}) {
    const auto opened = Context::Open({.fabric = name});
    EXPECT_TRUE(Refuses(opened, ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument))
        << '"' << name << '"';
    const std::string listed = name.starts_with("sim") ? "sim:42" : "qpip";
    EXPECT_NE(TextOf(opened.status()).find(listed), std::string::npos) << opened.status();
  }
}

TEST(OpeningTest, ANamedFabricIsNeverReplacedByAnother) {
  for (const std::string name : {"verbs:none0", "verbs:none0:ib"}) {
    const auto opened = Context::Open({.fabric = name});
    ASSERT_FALSE(opened.ok());
    EXPECT_TRUE(opened.status().code() == StatusCode::kUnimplemented ||
                opened.status().code() == StatusCode::kUnavailable)
        << opened.status();
    EXPECT_NE(TextOf(opened.status()).find(name.substr(0, 5)), std::string::npos)
        << opened.status();
  }
}

TEST(OpeningTest, BadOptionsAreRefused) {
  const std::vector<ContextOptions> wrong = {
      {.fabric = "qpip", .progress_cpu = 100'000},
      {.fabric = "qpip", .progress_cpu = -1},
      {.fabric = "qpip", .progress_spin = -absl::Seconds(1)},
      {.fabric = "qpip", .operations_max = 0},
      {.fabric = "qpip", .congestion_control = "no-such-algorithm"}};
  for (size_t i = 0; i < wrong.size(); ++i) {
    const auto opened = Context::Open(wrong[i]);
    EXPECT_TRUE(Refuses(opened, ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument))
        << "options " << i;
  }
}

TEST(OpeningTest, ANameThatIsNoTextIsToldEscaped) {
  const std::string name = "a\x1b[2J\xff";
  for (const std::string& fabric : {name, "sim:" + name}) {
    const auto opened = Context::Open({.fabric = fabric});
    EXPECT_NE(TextOf(opened.status()).find(R"(a\x1b[2J\xff")"), std::string::npos)
        << opened.status();
  }
  const auto opened = Context::Open({.fabric = "qpip", .congestion_control = name});
  EXPECT_NE(TextOf(opened.status()).find(R"("a\x1b[2J\xff")"), std::string::npos)
      << opened.status();
}

TEST(OpeningTest, ADmaBufNeedsADevice) {
  for (const char* fabric : {"qpip", "local", "sim"}) {
    Context context = *Context::Open({.fabric = fabric});
    const auto refused = context.RegisterDmaBuf(0, 0, 4096);
    EXPECT_TRUE(Refuses(refused, ErrorKind::kUnsupported, StatusCode::kUnimplemented)) << fabric;
    EXPECT_NE(refused.status().message().find(fabric), absl::string_view::npos);
    EXPECT_EQ(context.Stats().regions, 0u);
    for (const auto& wrong : {context.RegisterDmaBuf(-1, 0, 4096), context.RegisterDmaBuf(0, 0, 0),
                              context.RegisterDmaBuf(0, ~uint64_t{0}, 2),
                              context.RegisterDmaBuf(0, 0, 4096, {.exposure = Exposure::kNone})}) {
      EXPECT_TRUE(Refuses(wrong, ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
    }
  }
}

TEST(OpeningTest, DiagnoseTellsWhatOpenWillDo) {
  const DiagnosticsReport report = Context::Diagnose({});
  EXPECT_FALSE(report.chosen.empty()) << report.ToString();
  EXPECT_FALSE(report.reason.empty());
  const auto qpip = std::find_if(report.fabrics.begin(), report.fabrics.end(),
                                 [](const FabricReport& one) { return one.name == "qpip"; });
  ASSERT_NE(qpip, report.fabrics.end());
  EXPECT_TRUE(qpip->available);
  for (const FabricReport& fabric : report.fabrics) EXPECT_FALSE(fabric.text.empty());
  EXPECT_NE(report.ToString().find("qpip"), std::string::npos);
  EXPECT_GT(report.memlock_hard, 0u);
  const DiagnosticsReport failing = Context::Diagnose({.fabric = "nonsense"});
  EXPECT_TRUE(failing.chosen.empty());
  EXPECT_FALSE(failing.reason.empty());
}

TEST(OpeningTest, AutoOpensWhatIsThere) {
  auto opened = Context::Open({});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->Stats().sockets, 0u);
  EXPECT_TRUE(opened->Close(opened->Now() + absl::Seconds(30)).ok());
}

TEST(OpeningTest, AddressesReadWhatTheyWrite) {
  for (const std::string text :
       {"127.0.0.1:5001", "0.0.0.0:0", "[::1]:65535", "[2001:db8::1]:1", "[fe80::1%2]:5001"}) {
    const auto address = Address::Parse(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
    EXPECT_EQ(*Address::Parse(address->ToString()), *address);
  }
  for (const std::string text : {"", "localhost:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                                 "127.0.0.1:-1", "::1:80", "[::1]", "[::1]80", "127.0.0.1:5x",
                                 "1.2.3:4", "[fe80::1%eth0]:1", " 127.0.0.1:1", "127.0.0.1:1 "}) {
    EXPECT_TRUE(
        Refuses(Address::Parse(text), ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument))
        << '"' << text << '"';
  }
}

TEST(OpeningTest, EveryKindOfErrorHasAName) {
  for (uint16_t i = 0; i <= static_cast<uint16_t>(ErrorKind::kInternal); ++i) {
    EXPECT_STRNE(ToString(static_cast<ErrorKind>(i)), "");
  }
  EXPECT_STREQ(ToString(ErrorKind::kQueueFull), "queue full");
  EXPECT_EQ(KindOf(absl::OkStatus()), ErrorKind::kNone);
  EXPECT_EQ(KindOf(absl::InternalError("not ours")), ErrorKind::kNone);
}

// A port of TCP that is taken, so that no other program is given it, and at which nobody listens.
class HeldPort {
 public:
  ~HeldPort() {
    if (socket_ >= 0) close(socket_);
  }
  bool Take(uint16_t port) {
    if (socket_ < 0) socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }

 private:
  int socket_ = -1;
};

class RendezvousTest : public PairTest {
 protected:
  Event ConnectAndFail(const Address& address, absl::Duration patience = absl::Seconds(10)) {
    client_.socket = *client_.context.CreateSocket(address.family());
    OpArgs args = client_.Args();
    args.deadline = client_.context.Now() + patience;
    const Event event = End(client_, client_.Accepted(client_.socket.Connect(address, args)));
    EXPECT_EQ(event.type, EventType::kConnect);
    return event;
  }
};
ESDP_ON_EVERY_WORLD(RendezvousTest);

TEST_P(RendezvousTest, ATakenPortIsAddressInUse) {
  const Address address = Listen();
  Socket second = *server_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(second.Bind(address).ok());
  const absl::Status taken = second.Listen(1);
  EXPECT_TRUE(Refuses(taken, ErrorKind::kAddressInUse, StatusCode::kAlreadyExists));
  EXPECT_NE(TextOf(taken).find(std::to_string(address.port())), std::string::npos) << taken;
  Socket everywhere = *server_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(everywhere.Bind(Address::Any(Family::kIpv4, address.port())).ok());
  const absl::Status shared = everywhere.Listen(1);  // some fabrics keep the two apart
  EXPECT_TRUE(shared.ok() || Refuses(shared, ErrorKind::kAddressInUse, StatusCode::kAlreadyExists));
  everywhere = {};
  listener_ = {};
  EXPECT_TRUE(Pump([&] { return second.Listen(1).ok(); })) << "the port is free again";
}

TEST_P(RendezvousTest, NobodyListeningIsRefusedAndNamed) {
  const Address address = Listen();
  listener_ = {};
  Settle();
  HeldPort held;
  if (TransportOf(world()) == Transport::kQpip) {
    ASSERT_TRUE(Pump([&] { return held.Take(address.port()); })) << "the port is free";
  }
  const Event event = ConnectAndFail(address);
  EXPECT_TRUE(Refuses(event.status(), ErrorKind::kRefused, StatusCode::kUnavailable));
  EXPECT_NE(TextOf(event.status()).find(address.ToString()), std::string::npos) << event.status();
  const auto later = client_.socket.Send(Make(client_, 5).All(), SendFlags::kNone, client_.Args());
  EXPECT_FALSE(later.ok());
}

TEST_P(RendezvousTest, AConnectMayBeCancelled) {
  const Address address = Listen({}, 1);
  client_.socket = *client_.context.CreateSocket(Family::kIpv4);
  const OpId connect = client_.Accepted(client_.socket.Connect(address, client_.Args()));
  const absl::Status asked = client_.socket.Cancel(connect);
  const Event event = End(client_, connect);
  if (asked.ok()) {
    EXPECT_TRUE(event.ok() || event.kind == ErrorKind::kCancelled) << event.status();
  } else {
    EXPECT_EQ(KindOf(asked), ErrorKind::kBadHandle) << asked;
  }
}

TEST_P(RendezvousTest, AListenerOnEveryAddressIsReachedByLoopback) {
  listener_ = *server_.context.CreateSocket(Family::kIpv4);
  ASSERT_TRUE(listener_.Bind(Address::Any(Family::kIpv4, 0)).ok());
  ASSERT_TRUE(listener_.Listen(4).ok());
  ASSERT_NE(listener_.local().port(), 0u);
  ASSERT_NO_FATAL_FAILURE(ConnectTo(HostOf(world(), listener_.local().port())));
  Carry(client_, Make(client_, 1'000), server_, Make(server_, 1'000), 1'000);
}

TEST_P(RendezvousTest, ManyConnectionsAreServedByOneListener) {
  const Address address = Listen({}, 64);
  constexpr size_t kCount = 20;
  std::vector<Socket> sockets;
  std::vector<Socket> accepted;
  const OpId accept = server_.Accepted(listener_.Accept(kCount, server_.Args()));
  for (size_t i = 0; i < kCount; ++i) {
    sockets.push_back(*client_.context.CreateSocket(Family::kIpv4));
    (void)client_.Accepted(sockets.back().Connect(address, client_.Args()));
  }
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() + server_.Outstanding() == 0; }));
  for (const Event& event : server_.events) {
    ASSERT_EQ(event.op, accept);
    auto taken = server_.context.TakeAccepted(event.accepted);
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_TRUE(Refuses(server_.context.TakeAccepted(event.accepted), ErrorKind::kBadHandle,
                        StatusCode::kNotFound))
        << "once";
    accepted.push_back(*std::move(taken));
  }
  ASSERT_EQ(accepted.size(), kCount);
  // Each is told apart: a byte of its own through each.
  for (Socket& mine : sockets) {
    const auto theirs = std::find_if(accepted.begin(), accepted.end(),
                                     [&](const Socket& one) { return one.peer() == mine.local(); });
    ASSERT_NE(theirs, accepted.end());
    Memory& from = Make(client_, 1);
    Memory& to = Make(server_, 1);
    from.bytes[0] = static_cast<std::byte>(mine.local().port() & 0xff);
    const OpId receive = server_.Accepted(theirs->Recv(to.All(), RecvFlags::kNone, server_.Args()));
    (void)client_.Accepted(mine.Send(from.All(), SendFlags::kNone, client_.Args()));
    EndWell(server_, receive, 1);
    EXPECT_EQ(to.bytes[0], from.bytes[0]);
  }
}

TEST_P(RendezvousTest, AConnectionIsTakenInItsOwnContextAlone) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Address address = Listen();
  const OpId accept = server_.Accepted(listener_.Accept(1, server_.Args()));
  Socket socket = *client_.context.CreateSocket(Family::kIpv4);
  (void)client_.Accepted(socket.Connect(address, client_.Args()));
  const Event accepted = End(server_, accept);
  EXPECT_TRUE(Refuses(client_.context.TakeAccepted(accepted.accepted), ErrorKind::kBadHandle,
                      absl::StatusCode::kNotFound));
  EXPECT_TRUE(server_.context.TakeAccepted(accepted.accepted).ok());
  EXPECT_NE(client_.socket.id(), server_.socket.id());
}

}  // namespace
}  // namespace esdp::contract
