#include <memory>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/raw_stream.h"

// Peers that are not heard of any more, and peers that are there and do not answer.

namespace esdp::contract {
namespace {

using absl::StatusCode;

constexpr size_t kHandshake = 20 + 4 + 196;  // MPA reply, depths, HelloAck
constexpr absl::Duration kIdle = absl::Seconds(1);
constexpr absl::Duration kSlack = absl::Seconds(6);  // of a busy machine

class KeepAliveTest : public PairTest {
 protected:
  struct Link {
    std::unique_ptr<RawStream> raw;
    Socket socket;  // the library's end of it
  };
  Link Shake() {
    Link link;
    link.raw = std::make_unique<RawStream>(
        [this](const std::function<bool()>& done) { return Pump(done); });
    const OpId accept = server_.Accepted(listener_.Accept(1, server_.Args()));
    EXPECT_TRUE(link.raw->Connect(listener_.local().port()));
    link.raw->Write(MpaRequest(HonestHello()));
    EXPECT_GE(link.raw->Read(kHandshake).size(), kHandshake);
    link.socket = *server_.context.TakeAccepted(End(server_, accept).accepted);
    link.raw->Write(SendFrame(SdpMessage(0xff, 1), 1));  // Data without payload: it speaks first
    return link;
  }
  void Listens(absl::Duration idle) {
    SocketOptions options;
    options.keep_alive_idle = idle;
    (void)Listen(options);
  }
};
ESDP_ON_TCP_WORLDS(KeepAliveTest);

TEST_P(KeepAliveTest, AnIdleAndABusyConnectionFindASilentPeerWithinFourTimesTheIdleTime) {
  Listens(kIdle);
  Link idle = Shake();
  Link busy = Shake();
  Memory& memory = Make(server_, 1000);
  const OpId receive =
      server_.Accepted(idle.socket.Recv(memory.All(), RecvFlags::kNone, server_.Args()));
  Settle();
  idle.raw->FallSilent();
  busy.raw->FallSilent();
  const absl::Time begun = server_.context.Now();
  OpArgs args = server_.Args();
  args.complete_at = CompleteAt::kDelivered;
  const OpId send = server_.Accepted(busy.socket.Send(memory.All(), SendFlags::kNone, args));
  for (const OpId op : {receive, send}) {
    const Event event = End(server_, op);
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kPeerSilent, StatusCode::kUnavailable));
    EXPECT_GE(server_.context.Now() - begun, kIdle);
    EXPECT_LE(server_.context.Now() - begun, 4 * kIdle + kSlack);
  }
}

TEST_P(KeepAliveTest, APeerThatOnlyHasNothingToSayIsKept) {
  Listens(kIdle);
  Link link = Shake();
  Memory& memory = Make(server_, 5);
  const OpId receive =
      server_.Accepted(link.socket.Recv(memory.All(), RecvFlags::kWaitAll, server_.Args()));
  const absl::Time until = server_.context.Now() + 5 * kIdle;
  EXPECT_TRUE(Pump([&] { return server_.context.Now() >= until; }));
  EXPECT_EQ(server_.Find(receive), nullptr);
  link.raw->Write(SendFrame(SdpMessage(0xff, 2, {'h', 'e', 'l', 'l', 'o'}), 2));
  EndWell(server_, receive, 5);
}

// The bound that the application sets is kept, whatever the peer owes: decision 9.
TEST_P(KeepAliveTest, APeerThatNeverAnswersACancelHoldsTheMemoryNoLongerThanTheClose) {
  Listens(absl::Seconds(15));
  for (const CloseMode mode : {CloseMode::kAbort, CloseMode::kGraceful}) {
    Link link = Shake();
    Memory& memory = Make(server_, 200'000);
    OpArgs args = server_.Args();
    args.path = Path::kZeroCopy;
    const OpId send = server_.Accepted(link.socket.Send(memory.All(), SendFlags::kNone, args));
    link.raw->Read(kHandshake + 32);  // SrcAvail
    EXPECT_TRUE(link.socket.Cancel(send).ok());
    Settle();
    EXPECT_EQ(server_.Find(send), nullptr) << "the peer may still be reading";
    OpArgs closing = server_.Args();
    if (mode == CloseMode::kGraceful) {
      closing.deadline = server_.context.Now() + absl::Milliseconds(200);
    }
    const absl::Time begun = server_.context.Now();
    const OpId close = server_.Accepted(link.socket.Close(mode, closing));
    EXPECT_FALSE(End(server_, send).ok());
    EXPECT_EQ(End(server_, close).ok(), mode == CloseMode::kAbort);
    EXPECT_LE(server_.context.Now() - begun, absl::Milliseconds(200) + kSlack);
    EXPECT_EQ(memory.region.info().operations, 0u);
  }
}

}  // namespace
}  // namespace esdp::contract
