#include <vector>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Which way the bytes go, what is told of it, and that no copy is made that was not promised.

namespace esdp::contract {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class PathsTest : public PairTest {
 protected:
  // Large receives that wait; how many of them say that they were written to.
  uint64_t CountWritten() {
    constexpr uint64_t kLength = 256 * 1024;
    Connect({.send_mode = DeliveryMode::kPipelined});
    Memory& from = Make(client_, kLength);
    Memory& to = Make(server_, kLength);
    uint64_t written = 0;
    for (uint64_t i = 0; i < 10; ++i) {
      const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
      Settle();
      from.Fill(i);
      const OpId send = client_.Send(from.All());
      const Event received = End(server_, receive);
      EXPECT_TRUE(WentByRdma(received)) << received.status();
      if ((received.flags & kWritten) != 0) ++written;
      EndWell(client_, send, kLength);
      EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
    }
    return written;
  }
  // The two events of one transfer.
  struct Ends {
    Event sent;
    Event received;
  };
  Ends Transfer(uint64_t length, const OpArgs& sending, const OpArgs& receiving) {
    Memory& from = Make(client_, length);
    Memory& to = Make(server_, length);
    from.Fill(length);
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll, receiving);
    const OpId send = client_.Send(from.All(), sending);
    const Ends ends{End(client_, send), End(server_, receive)};
    EXPECT_TRUE(ends.sent.ok()) << ends.sent.status();
    EXPECT_TRUE(ends.received.ok()) << ends.received.status();
    EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
    return ends;
  }
  Ends Transfer(uint64_t length, Path path = Path::kByThreshold) {
    OpArgs sending = client_.Args();
    OpArgs receiving = server_.Args();
    sending.path = receiving.path = path;
    return Transfer(length, sending, receiving);
  }
  static bool WentByRdma(const Event& event) {
    EXPECT_TRUE((event.flags & (kZeroCopy | kCopied)) != 0) << "the event tells no path";
    EXPECT_EQ((event.flags & kZeroCopy) != 0, event.bytes_zero_copy > 0);
    EXPECT_EQ((event.flags & kCopied) != 0, event.bytes_zero_copy < event.bytes);
    return event.bytes_zero_copy == event.bytes;
  }
};
ESDP_ON_EVERY_WORLD(PathsTest);

TEST_P(PathsTest, ZeroCopyOfOneMiBCopiesNoPayloadOnEitherSide) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (int i = 0; i < 3; ++i) {
    const Ends ends = Transfer(kMiB, Path::kZeroCopy);
    EXPECT_TRUE(WentByRdma(ends.sent));
    EXPECT_TRUE(WentByRdma(ends.received));
  }
  const SocketStats source = client_.socket.Stats();
  const SocketStats sink = server_.socket.Stats();
  EXPECT_EQ(source.payload_copies, 0u);
  EXPECT_EQ(source.payload_copy_bytes, 0u);
  EXPECT_EQ(sink.payload_copies, 0u);
  EXPECT_EQ(sink.payload_copy_bytes, 0u);
  // An advert carries a byte in its message, which the peer reads again by RDMA.
  EXPECT_EQ(source.bytes_sent_zero_copy + source.bytes_sent_copied, 3 * kMiB);
  EXPECT_LE(source.bytes_sent_copied, source.source_adverts_sent);
  EXPECT_EQ(sink.bytes_received_zero_copy, 3 * kMiB);
  EXPECT_EQ(sink.bytes_received_copied, 0u);
  EXPECT_EQ(source.sends_zero_copy, 3u);
  EXPECT_EQ(source.sends_copied, 0u);
  EXPECT_EQ(sink.receives_zero_copy, 3u);
  EXPECT_GE(source.source_adverts_sent, 3u);
  EXPECT_EQ(source.source_adverts_sent, sink.source_adverts_received);
}

// Receives that wait are shown to the peer, which writes to them with no round trip.
TEST_P(PathsTest, WaitingReceivesAreWrittenToAndNothingIsCopied) {
  constexpr uint64_t kLength = 256 * 1024;
  constexpr uint64_t kTransfers = 10;
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, kLength);
  Memory& to = Make(server_, kLength);
  from.Fill(kLength);
  // Two large sends at once make the half Pipelined.
  const OpId first = client_.Send(from.All(), client_.Args());
  const OpId second = client_.Send(from.All(), client_.Args());
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), kLength);
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), kLength);
  EndWell(client_, first, kLength);
  EndWell(client_, second, kLength);
  for (uint64_t i = 0; i < kTransfers; ++i) {
    const OpId receive = server_.Recv(to.All(), RecvFlags::kNone, server_.Args());
    from.Fill(i);
    const OpId send = client_.Send(from.All(), client_.Args());
    const Event sent = End(client_, send);
    const Event received = End(server_, receive);
    ASSERT_TRUE(sent.ok()) << sent.status();
    ASSERT_EQ(received.bytes, kLength) << received.status();
    EXPECT_TRUE(WentByRdma(sent));
    EXPECT_TRUE(WentByRdma(received));
    EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  }
  const SocketStats source = client_.socket.Stats();
  const SocketStats sink = server_.socket.Stats();
  EXPECT_GT(sink.sink_adverts_sent, 0u);
  EXPECT_GT(source.sink_adverts_received, 0u);
  EXPECT_EQ(source.payload_copies + sink.payload_copies, 0u);
}

TEST_P(PathsTest, AReceiveThatWasWrittenToSaysSo) {
  const uint64_t written = CountWritten();
  EXPECT_GT(written, 0u);
  EXPECT_GT(server_.socket.Stats().sink_adverts_sent, 0u);
}

TEST_P(PathsTest, ReceivesThatAreNotToBeShownAreReadFromThePeer) {
  client_.queue = EventQueue();
  client_.context = Context();
  server_.queue = EventQueue();
  ContextOptions options = OptionsOf(world());
  options.show_receives = false;
  ASSERT_NO_FATAL_FAILURE(server_.Open(options, 64));
  ASSERT_NO_FATAL_FAILURE(client_.Open(OptionsOf(world(), &server_.context), 64));
  EXPECT_EQ(CountWritten(), 0u);
  EXPECT_EQ(server_.socket.Stats().sink_adverts_sent, 0u);
}

TEST_P(PathsTest, CopiedBytesOfRegisteredMemoryCostTheSenderNoCopyAndTheReceiverOne) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Ends ends = Transfer(kMiB, Path::kCopy);
  EXPECT_FALSE(WentByRdma(ends.sent));
  EXPECT_EQ(ends.sent.bytes_zero_copy, 0u);
  EXPECT_EQ(ends.received.bytes_zero_copy, 0u);
  const SocketStats source = client_.socket.Stats();
  const SocketStats sink = server_.socket.Stats();
  EXPECT_EQ(source.payload_copy_bytes, 0u) << "gathered straight from the region";
  EXPECT_EQ(sink.payload_copy_bytes, kMiB);
  EXPECT_EQ(source.bytes_sent_copied, kMiB);
  EXPECT_EQ(sink.bytes_received_copied, kMiB);
  EXPECT_EQ(source.sends_copied, 1u);
  EXPECT_EQ(sink.receives_copied, 1u);
}

TEST_P(PathsTest, SmallSendsCostOneCopyPerSide) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (int i = 0; i < 10; ++i) (void)Transfer(100);
  EXPECT_LE(client_.socket.Stats().payload_copy_bytes, 1'000u);
  EXPECT_EQ(server_.socket.Stats().payload_copy_bytes, 1'000u);
}

TEST_P(PathsTest, UnregisteredMemoryCostsOneCopyPerSide) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const std::vector<std::byte> text(100'000, std::byte{3});
  Memory& to = Make(server_, 100'000);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  (void)client_.Accepted(client_.socket.SendCopy(text, SendFlags::kNone, client_.Args()));
  EndWell(server_, receive, 100'000);
  EXPECT_LE(client_.socket.Stats().payload_copy_bytes, 100'000u);
  EXPECT_LE(server_.socket.Stats().payload_copy_bytes, 100'000u);
}

TEST_P(PathsTest, TheThresholdDecidesToTheByte) {
  const SocketOptions options{.zcopy_send_min = 5'000, .zcopy_recv_min = 0};
  ASSERT_NO_FATAL_FAILURE(Connect(options, options));
  EXPECT_FALSE(WentByRdma(Transfer(4'999).sent));
  EXPECT_TRUE(WentByRdma(Transfer(5'000).sent));
}

TEST_P(PathsTest, TheDefaultThresholdIs64KiB) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_FALSE(WentByRdma(Transfer(64 * 1024 - 1).sent));
  EXPECT_TRUE(WentByRdma(Transfer(64 * 1024).sent));
}

TEST_P(PathsTest, NeverMeansNever) {
  const SocketOptions never{.zcopy_send_min = kNever, .zcopy_recv_min = kNever};
  ASSERT_NO_FATAL_FAILURE(Connect(never, never));
  EXPECT_EQ(Transfer(4 * kMiB).sent.bytes_zero_copy, 0u);
  EXPECT_EQ(client_.socket.Stats().source_adverts_sent, 0u);
}

TEST_P(PathsTest, TheOperationsOwnPathOverrulesTheThreshold) {
  const SocketOptions never{.zcopy_send_min = kNever, .zcopy_recv_min = kNever};
  ASSERT_NO_FATAL_FAILURE(Connect(never, never));
  EXPECT_TRUE(WentByRdma(Transfer(20'000, Path::kZeroCopy).sent));
  ASSERT_NO_FATAL_FAILURE(Connect({.zcopy_send_min = 0}, {.zcopy_recv_min = 0}));
  EXPECT_EQ(Transfer(20'000, Path::kCopy).sent.bytes_zero_copy, 0u);
}

TEST_P(PathsTest, AThresholdSetLaterHoldsForLaterOperations) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_TRUE(WentByRdma(Transfer(kMiB).sent));
  EXPECT_TRUE(client_.socket.SetOption({OptionName::kZcopySendMin, kNever}).ok());
  EXPECT_EQ(Transfer(kMiB).sent.bytes_zero_copy, 0u);
  const auto option = client_.socket.GetOption(OptionName::kZcopySendMin);
  ASSERT_TRUE(option.ok()) << option.status();
  EXPECT_EQ(std::get<uint64_t>(option->value), kNever);
}

TEST_P(PathsTest, AReceiverThatDoesNotWantItIsSentCopies) {
  ASSERT_NO_FATAL_FAILURE(Connect({.zcopy_send_min = 0}, {.zcopy_recv_min = kNever}));
  const Ends ends = Transfer(kMiB);
  EXPECT_EQ(ends.received.bytes, kMiB);
}

TEST_P(PathsTest, StreamOffsetsCountEachDirectionFromZero) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  uint64_t offset = 0;
  for (const uint64_t length : {100u, 100'000u, 1u, 70'000u}) {
    const Ends ends = Transfer(length);
    EXPECT_EQ(ends.sent.stream_offset, offset);
    EXPECT_EQ(ends.received.stream_offset, offset);
    offset += length;
  }
  Memory& back = Make(server_, 10);
  const OpId receive = client_.Recv(Make(client_, 10).All(), RecvFlags::kWaitAll);
  EXPECT_EQ(End(server_, server_.Send(back.All())).stream_offset, 0u);
  EXPECT_EQ(End(client_, receive).stream_offset, 0u);
}

TEST_P(PathsTest, TheSocketTellsItsTransportAndItsAddresses) {
  EXPECT_EQ(Socket().transport(), Transport::kNone);
  Socket unused = *client_.context.CreateSocket(Family::kIpv4);
  EXPECT_EQ(unused.transport(), Transport::kNone);
  const OpId close = client_.Accepted(unused.Close(CloseMode::kGraceful, client_.Args()));
  EXPECT_TRUE(End(client_, close).status().ok());
  EXPECT_EQ(unused.transport(), Transport::kNone) << "closed before it was used";
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Transport expected = TransportOf(world());
  EXPECT_EQ(client_.socket.transport(), expected);
  EXPECT_EQ(server_.socket.transport(), expected);
  EXPECT_EQ(client_.socket.peer(), listener_.local());
  EXPECT_EQ(client_.socket.local(), server_.socket.peer());
  EXPECT_EQ(server_.socket.local().port(), listener_.local().port());
  EXPECT_NE(client_.socket.local().port(), 0u);
}

TEST_P(PathsTest, SmallSendsShareMessages) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 64);
  Memory& to = Make(server_, 64 * 200);
  for (int i = 0; i < 200; ++i) (void)client_.Send(from.All());
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), to.size());
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() == 0; }));
  EXPECT_LT(client_.socket.Stats().messages_sent, 200u);
}

TEST_P(PathsTest, EveryCopyOfUnregisteredBytesIsCounted) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::array<std::byte, 100> bytes{};
  OpArgs delivered = client_.Args();
  delivered.complete_at = CompleteAt::kDelivered;
  const OpId send = client_.Accepted(client_.socket.SendCopy(bytes, SendFlags::kNone, delivered));
  const OpId receive = server_.Accepted(
      server_.socket.RecvCopy(absl::MakeSpan(bytes), RecvFlags::kWaitAll, server_.Args()));
  EndWell(client_, send, 100);
  EndWell(server_, receive, 100);

  // Into the pool and into a send buffer; out of a receive buffer.
  EXPECT_EQ(client_.socket.Stats().payload_copies, 2u);
  EXPECT_EQ(client_.socket.Stats().payload_copy_bytes, 200u);
  EXPECT_EQ(server_.socket.Stats().payload_copies, 1u);
  EXPECT_EQ(server_.socket.Stats().payload_copy_bytes, 100u);
}

}  // namespace
}  // namespace esdp::contract
