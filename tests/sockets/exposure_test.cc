#include <vector>

#include "esdp/region.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// The contract of completion, rule 11, and what the kinds of exposure mean: memory that the peer
// could reach is out of its reach before the terminal event is delivered. That a kept key is
// refused is tested at the port; here, that the library lets go of the memory in time.

namespace esdp::contract {
namespace {

constexpr uint64_t kLarge = 1 << 20;

class ExposureTest : public PairTest {
 protected:
  void Settled(Memory& memory) {
    EXPECT_EQ(memory.region.info().operations, 0u);
    const absl::Status closed = memory.region.Close();
    EXPECT_TRUE(closed.ok()) << closed;
  }
};
ESDP_ON_EVERY_WORLD(ExposureTest);

// Rule 11.
TEST_P(ExposureTest, ARegionCanBeClosedAsSoonAsItsEventIsThere) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const Path path : {Path::kCopy, Path::kZeroCopy}) {
    Memory& from = Make(client_, kLarge);
    Memory& to = Make(server_, kLarge);
    Carry(client_, from, server_, to, kLarge, path);
    Settled(from);
    Settled(to);
  }
}

// Rule 11.
TEST_P(ExposureTest, ARegionCanBeClosedAfterItsOperationsWereCancelled) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, kLarge);
  Memory& to = Make(server_, kLarge);
  const OpId receive = server_.Recv(to.All());
  EXPECT_TRUE(server_.socket.Cancel(receive).ok());
  EXPECT_EQ(End(server_, receive).kind, ErrorKind::kCancelled);
  Settled(to);
  const OpId send = client_.Send(from.All());
  Settle();
  EXPECT_TRUE(Pump([&] { return from.region.info().operations == 1; })) << "shown to the peer";
  EXPECT_TRUE(client_.socket.Cancel(send).ok());
  // The peer may have answered the first one by now.
  const absl::Status harder = client_.socket.Cancel(send, CancelMode::kAbortConnection);
  EXPECT_TRUE(harder.ok() || KindOf(harder) == ErrorKind::kBadHandle) << harder;
  (void)End(client_, send);
  Settled(from);
}

// Rule 11.
TEST_P(ExposureTest, ARegionCanBeClosedAfterThePeerHasGone) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, kLarge);
  const OpId send = client_.Send(from.All());
  Settle();
  server_.socket = {};
  EXPECT_EQ(End(client_, send).kind, ErrorKind::kPeerReset);
  Settled(from);
}

// Rule 11.
TEST_P(ExposureTest, ARegionInUseIsNotClosedAndNothingChanges) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, kLarge);
  Memory& to = Make(server_, kLarge);
  from.Fill(NewSeed());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EXPECT_TRUE(Refuses(to.region.Close(), ErrorKind::kBusy, absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Refuses(to.region.Close(server_.context.Now() + absl::Milliseconds(20)),
                      ErrorKind::kDeadlineExceeded, absl::StatusCode::kDeadlineExceeded));
  const OpId send = client_.Send(from.All());
  EndWell(client_, send, kLarge);
  EndWell(server_, receive, kLarge);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  Settled(to);
}

// Rule 11.
TEST_P(ExposureTest, CloseWithADeadlineWaitsForTheOperations) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& to = Make(server_, 100);
  OpArgs args = server_.Args();
  args.deadline = server_.context.Now() + absl::Milliseconds(30);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kNone, args);
  const absl::Status closed = to.region.Close(server_.context.Now() + absl::Seconds(10));
  EXPECT_TRUE(closed.ok()) << closed;
  EXPECT_GE(server_.context.Now(), args.deadline);
  EXPECT_EQ(End(server_, receive).kind, ErrorKind::kDeadlineExceeded);
}

// Rule 11.
TEST_P(ExposureTest, DroppingTheLastHandleDuringAnOperationIsSafe) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, kLarge);
  Memory& to = Make(server_, kLarge);
  from.Fill(NewSeed());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const OpId send = client_.Send(from.All());
  from.region = {};
  to.region = {};
  EndWell(client_, send, kLarge);
  EndWell(server_, receive, kLarge);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  EXPECT_TRUE(Pump([&] { return client_.context.Stats().regions == 0; }));
  EXPECT_TRUE(Pump([&] { return server_.context.Stats().regions == 0; }));
}

TEST_P(ExposureTest, EachKindOfExposureCarriesTheSameBytes) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const Exposure sending : {Exposure::kPerOperation, Exposure::kRegionKey, Exposure::kNone}) {
    for (const Exposure receiving :
         {Exposure::kPerOperation, Exposure::kRegionKey, Exposure::kNone}) {
      Memory& from = Make(client_, kLarge, {.exposure = sending});
      Memory& to = Make(server_, kLarge, {.exposure = receiving});
      from.Fill(NewSeed());
      EXPECT_EQ(from.region.info().exposure, sending);
      Carry(client_, from, server_, to, kLarge);
    }
  }
}

TEST_P(ExposureTest, MemoryThatIsNotExposedIsNeverAdvertised) {
  ASSERT_NO_FATAL_FAILURE(Connect({.zcopy_send_min = 0}));
  Memory& from = Make(client_, kLarge, {.exposure = Exposure::kNone});
  Memory& to = Make(server_, kLarge);
  Carry(client_, from, server_, to, kLarge, Path::kZeroCopy);
  const SocketStats stats = client_.socket.Stats();
  EXPECT_EQ(stats.bytes_sent_zero_copy, 0u);
  EXPECT_EQ(stats.source_adverts_sent, 0u);
  EXPECT_EQ(stats.bytes_sent_copied, kLarge);
}

TEST_P(ExposureTest, ReadOnlyMemoryIsSentByEitherPathAndNeverReceivedInto) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::vector<std::byte> text(kLarge, std::byte{42});
  const auto region = client_.context.RegisterReadOnly(text);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_FALSE(region->info().local_write);
  Memory& to = Make(server_, kLarge);
  for (const Path path : {Path::kCopy, Path::kZeroCopy}) {
    OpArgs args = client_.Args();
    args.path = path;
    to.Clear();
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    const OpId send = client_.Send(region->slice(), args);
    EndWell(client_, send, kLarge);
    EndWell(server_, receive, kLarge);
    EXPECT_TRUE(SameBytes(text, to.bytes));
  }
  const auto refused = client_.socket.Recv(region->slice(), RecvFlags::kNone, client_.Args());
  EXPECT_TRUE(Refuses(refused, ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
}

TEST_P(ExposureTest, TheSameSliceIsSentManyTimesAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 100'000);
  Memory& to = Make(server_, 16 * 100'000);
  from.Fill(NewSeed());
  std::vector<OpId> sends;
  for (int i = 0; i < 16; ++i) sends.push_back(client_.Send(from.All()));
  // A thread has carried some of them over by now, on a slow machine.
  if (!HasThread(world())) {
    EXPECT_EQ(from.region.info().operations, 16u);
  }
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  for (const OpId op : sends) EndWell(client_, op, 100'000);
  EndWell(server_, receive, to.size());
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(SameBytes(from.bytes, absl::MakeSpan(to.bytes).subspan(i * 100'000, 100'000)));
  }
}

TEST_P(ExposureTest, TheSameMemoryMayBeRegisteredTwice) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 1'000);
  auto overlapping = client_.context.Register(absl::MakeSpan(from.bytes).subspan(100, 500));
  ASSERT_TRUE(overlapping.ok()) << overlapping.status();
  EXPECT_EQ(client_.context.Stats().regions, 2u);
  EXPECT_EQ(client_.context.Stats().region_bytes, 1'500u);
  EXPECT_TRUE(overlapping->Close().ok());
  Carry(client_, from, server_, Make(server_, 1'000), 1'000);
}

}  // namespace
}  // namespace esdp::contract
