#include "impl/provider/shard.h"

#include <array>
#include <chrono>
#include <deque>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "impl/base/random.h"
#include "impl/provider/regions.h"
#include "tests/provider/shard_pair.h"

namespace esdp::provider {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ShardTest : public testing::TestWithParam<World> {
 protected:
  ShardTest() : pair_(GetParam()) {}

  bool Finish(Side& side, std::initializer_list<const Job*> jobs) {
    return pair_.RunUntil([&] {
      for (const Job* job : jobs) {
        if (!side.recorder.Find(job->transfer)) return false;
      }
      return true;
    });
  }
  bool BothClosed() {
    return pair_.RunUntil(
        [&] { return !client().recorder.closed().empty() && !server().recorder.closed().empty(); });
  }
  // Sends all of `from` in one piece and receives it whole; what the two results say.
  void Carry(Memory& from, Memory& to, bool zero_copy) {
    const uint64_t length = from.bytes().size();
    Job& send = NewJob(from, true, 0, length);
    Job& receive = NewJob(to, false, 0, length);
    receive.transfer.wait_all = true;
    send.transfer.path = receive.transfer.path = zero_copy ? Path::kZeroCopy : Path::kCopy;
    Submit(server(), pair_.server_connection(), receive);
    Submit(client(), pair_.client_connection(), send);
    ASSERT_TRUE(Finish(client(), {&send}));
    ASSERT_TRUE(Finish(server(), {&receive}));
    const auto sent = client().recorder.Find(send.transfer)->result;
    const auto received = server().recorder.Find(receive.transfer)->result;
    EXPECT_EQ(sent.ending, EndReason::kOk);
    EXPECT_EQ(received.ending, EndReason::kOk);
    EXPECT_EQ(sent.bytes, length);
    EXPECT_EQ(received.bytes, length);
    EXPECT_EQ(sent.bytes_zero_copy, zero_copy ? length : 0);
    EXPECT_EQ(received.bytes_zero_copy, zero_copy ? length : 0);
    EXPECT_TRUE(from.bytes() == to.bytes());
    EXPECT_EQ(from.region().operations(), 0u);
    EXPECT_EQ(to.region().operations(), 0u);
  }

  Side& client() { return pair_.client(); }
  Side& server() { return pair_.server(); }

  Memory& NewMemory(Side& side, size_t bytes, Exposure exposure = Exposure::kPerOperation) {
    return memories_.emplace_back(side, bytes, exposure);
  }
  Job& NewJob(Memory& memory, bool is_send, uint64_t offset, uint64_t length) {
    return jobs_.emplace_back(memory, is_send, offset, length);
  }

  // They outlive the shards, which may use them to their last moment.
  std::deque<Memory> memories_;
  std::deque<Job> jobs_;
  ShardPair pair_;
};

TEST_P(ShardTest, ConnectsAndTellsBothSides) {
  ASSERT_TRUE(pair_.Connect());
  EXPECT_EQ(client().recorder.connected().size(), 1u);
  EXPECT_EQ(server().recorder.incoming().size(), 1u);
}

TEST_P(ShardTest, ReadinessIsToldWhereItIsWatched) {
  ConnectionOptions watched;
  watched.watch_readiness = true;
  pair_.Listen(watched);
  ASSERT_TRUE(pair_.Connect());
  const auto of_server = [&] { return server().recorder.readiness(pair_.server_connection()); };
  const auto of_client = [&] { return client().recorder.readiness(pair_.client_connection()); };
  const Readiness writable{.writable = true};
  ASSERT_TRUE(pair_.RunUntil([&] { return of_server() == writable; }));
  EXPECT_EQ(of_client(), std::nullopt);

  Memory& from = NewMemory(client(), 100);
  Submit(client(), pair_.client_connection(), NewJob(from, true, 0, 100));
  ASSERT_TRUE(pair_.RunUntil([&] { return of_server()->readable; })) << "no receive is posted";
  EXPECT_EQ(of_client(), std::nullopt);

  Submit(client(), pair_.client_connection(), Request::Kind::kReadiness);
  ASSERT_TRUE(pair_.RunUntil([&] { return of_client() == writable; }));
  Submit(client(), pair_.client_connection(), Request::Kind::kShutdown);
  ASSERT_TRUE(pair_.RunUntil([&] { return of_server()->ended && !of_client()->writable; }));
  EXPECT_TRUE(of_server()->readable) << "the end is behind the bytes";
}

TEST_P(ShardTest, CarriesCopiedBytes) {
  ASSERT_TRUE(pair_.Connect());
  Memory& from = NewMemory(client(), 300'000);
  Memory& to = NewMemory(server(), 300'000);
  from.Fill(1);
  Carry(from, to, false);
  const auto counters = *server().shard->Counters(pair_.server_connection());
  EXPECT_EQ(counters.bytes_received_copied, 300'000u);
  EXPECT_EQ(counters.bytes_received_zero_copy, 0u);
}

TEST_P(ShardTest, CarriesZeroCopyBytesWithoutCopyingThem) {
  ASSERT_TRUE(pair_.Connect());
  Memory& from = NewMemory(client(), 3'000'000);
  Memory& to = NewMemory(server(), 3'000'000);
  from.Fill(2);
  Carry(from, to, true);
  EXPECT_EQ(client().shard->Counters(pair_.client_connection())->payload_copy_bytes, 0u);
  EXPECT_EQ(server().shard->Counters(pair_.server_connection())->payload_copy_bytes, 0u);
}

TEST_P(ShardTest, CarriesRandomTransfersInOrder) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  ASSERT_TRUE(pair_.Connect());
  constexpr size_t kBytes = 1 << 20;
  Memory& from = NewMemory(client(), kBytes);
  Memory& to = NewMemory(server(), kBytes);
  from.Fill(seed);
  std::vector<Job*> sends;
  std::vector<Job*> receives;
  const auto cut = [&](std::vector<Job*>& jobs, Memory& memory, bool is_send) {
    for (size_t at = 0; at < kBytes;) {
      const uint64_t length = std::min<uint64_t>(random.Below(100'000) + 1, kBytes - at);
      Job& job = NewJob(memory, is_send, at, length);
      jobs.push_back(&job);
      job.transfer.wait_all = true;
      job.transfer.path = static_cast<Path>(random.Below(3));
      at += length;
    }
  };
  cut(sends, from, true);
  cut(receives, to, false);
  for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
    if (i < receives.size()) Submit(server(), pair_.server_connection(), *receives[i]);
    if (i < sends.size()) Submit(client(), pair_.client_connection(), *sends[i]);
  }
  ASSERT_TRUE(pair_.RunUntil([&] {
    return client().recorder.finished().size() == sends.size() &&
           server().recorder.finished().size() == receives.size();
  }));
  EXPECT_TRUE(from.bytes() == to.bytes());
  for (size_t i = 0; i < receives.size(); ++i) {
    const Recorder::Finished finished = server().recorder.finished()[i];
    EXPECT_EQ(finished.transfer, &receives[i]->transfer);
    EXPECT_EQ(finished.result.ending, EndReason::kOk) << finished.text;
  }
}

TEST_P(ShardTest, GathersAndScattersPieces) {
  ASSERT_TRUE(pair_.Connect());
  Memory& from = NewMemory(client(), 200'000);
  Memory& to = NewMemory(server(), 200'000);
  from.Fill(3);
  Job& send = NewJob(from, true, 0, 0);
  send.pieces = {
      {&from.region(), 100'000, 100'000}, {&from.region(), 0, 0}, {&from.region(), 0, 70'000}};
  send.transfer.pieces = send.pieces;
  Job& receive = NewJob(to, false, 0, 0);
  receive.pieces = {{&to.region(), 5, 90'001}, {&to.region(), 100'000, 79'999}};
  receive.transfer.pieces = receive.pieces;
  receive.transfer.wait_all = true;
  Submit(client(), pair_.client_connection(), send);
  Submit(server(), pair_.server_connection(), receive);
  ASSERT_TRUE(Finish(server(), {&receive}));
  ASSERT_TRUE(Finish(client(), {&send}));
  std::vector<std::byte> sent(from.bytes().begin() + 100'000, from.bytes().end());
  sent.insert(sent.end(), from.bytes().begin(), from.bytes().begin() + 70'000);
  std::vector<std::byte> received(to.bytes().begin() + 5, to.bytes().begin() + 90'006);
  received.insert(received.end(), to.bytes().begin() + 100'000, to.bytes().begin() + 179'999);
  EXPECT_EQ(server().recorder.Find(receive.transfer)->result.ending, EndReason::kOk);
  EXPECT_TRUE(sent == received);
}

TEST_P(ShardTest, KRegionKeyAndKNoneCarryTheSameBytes) {
  for (const Exposure exposure : {Exposure::kRegionKey, Exposure::kNone}) {
    Memory& from = NewMemory(client(), 400'000, exposure);
    Memory& to = NewMemory(server(), 400'000);
    from.Fill(4);
    ASSERT_TRUE(pair_.Connect());
    Job& send = NewJob(from, true, 0, 400'000);
    Job& receive = NewJob(to, false, 0, 400'000);
    receive.transfer.wait_all = true;
    Submit(server(), pair_.server_connection(), receive);
    Submit(client(), pair_.client_connection(), send);
    ASSERT_TRUE(Finish(server(), {&receive}));
    ASSERT_TRUE(Finish(client(), {&send}));
    EXPECT_TRUE(from.bytes() == to.bytes());
    const uint64_t zero_copy = client().recorder.Find(send.transfer)->result.bytes_zero_copy;
    EXPECT_EQ(zero_copy, exposure == Exposure::kNone ? 0u : 400'000u);
  }
}

TEST_P(ShardTest, ARegionInUseIsNotDeregistered) {
  ASSERT_TRUE(pair_.Connect());
  Memory& to = NewMemory(server(), 1000);
  Job& receive = NewJob(to, false, 0, 1000);
  Submit(server(), pair_.server_connection(), receive);
  // Its own thread may have been at work just then, and takes it over afterwards.
  EXPECT_TRUE(pair_.RunUntil([&] { return Shard::Describe(to.region()).operations == 1; }));
  EXPECT_EQ(server().shard->Deregister(to.region()).code(), absl::StatusCode::kFailedPrecondition);
  Submit(server(), pair_.server_connection(), Request::Kind::kAbort);
  ASSERT_TRUE(Finish(server(), {&receive}));
  EXPECT_TRUE(server().shard->Deregister(to.region()).ok());
  EXPECT_EQ(server().shard->Deregister(to.region()).code(), absl::StatusCode::kNotFound);
}

TEST_P(ShardTest, APassedDeadlineEndsAReceive) {
  ASSERT_TRUE(pair_.Connect());
  Memory& to = NewMemory(server(), 1000);
  Job& receive = NewJob(to, false, 0, 1000);
  const Time deadline = server().shard->Now() + milliseconds(30);
  receive.transfer.deadline = deadline;
  Submit(server(), pair_.server_connection(), receive);
  ASSERT_TRUE(Finish(server(), {&receive}));
  EXPECT_GE(server().shard->Now(), deadline);
  EXPECT_LT(server().shard->Now(), deadline + seconds(5));
  const auto result = server().recorder.Find(receive.transfer)->result;
  EXPECT_EQ(result.ending, EndReason::kDeadlineExceeded);
  EXPECT_EQ(result.bytes, 0u);
}

TEST_P(ShardTest, CancelEndsOneReceiveAndLeavesTheNext) {
  ASSERT_TRUE(pair_.Connect());
  Memory& from = NewMemory(client(), 100);
  Memory& to = NewMemory(server(), 200);
  from.Fill(5);
  Job& first = NewJob(to, false, 0, 100);
  Job& second = NewJob(to, false, 100, 100);
  Submit(server(), pair_.server_connection(), first);
  Submit(server(), pair_.server_connection(), second);
  Request cancel;
  cancel.kind = Request::Kind::kCancel;
  cancel.connection = pair_.server_connection();
  cancel.transfer = &first.transfer;
  server().shard->Submit(cancel);
  server().shard->Submit(cancel);  // too late is no harm
  Job& send = NewJob(from, true, 0, 100);
  Submit(client(), pair_.client_connection(), send);
  ASSERT_TRUE(Finish(server(), {&first, &second}));
  EXPECT_EQ(server().recorder.Find(first.transfer)->result.ending, EndReason::kCancelled);
  EXPECT_EQ(server().recorder.Find(second.transfer)->result.ending, EndReason::kOk);
  EXPECT_EQ(server().recorder.finished().size(), 2u);
}

TEST_P(ShardTest, ClosesInOrderOnBothSides) {
  ASSERT_TRUE(pair_.Connect());
  Memory& from = NewMemory(client(), 100);
  Memory& to = NewMemory(server(), 100);
  Job& send = NewJob(from, true, 0, 100);
  Job& receive = NewJob(to, false, 0, 100);
  Job& after = NewJob(to, false, 0, 100);
  Submit(client(), pair_.client_connection(), send);
  Submit(client(), pair_.client_connection(), Request::Kind::kClose);
  Submit(server(), pair_.server_connection(), receive);
  ASSERT_TRUE(Finish(server(), {&receive}));
  Submit(server(), pair_.server_connection(), after);
  ASSERT_TRUE(Finish(server(), {&after}));
  EXPECT_TRUE(server().recorder.Find(after.transfer)->result.end_of_stream);
  Submit(server(), pair_.server_connection(), Request::Kind::kClose);
  ASSERT_TRUE(BothClosed());
  EXPECT_EQ(client().recorder.closed()[0].failure.ending, EndReason::kOk);
  EXPECT_EQ(server().recorder.closed()[0].failure.ending, EndReason::kOk);
}

TEST_P(ShardTest, ShutdownIsReportedAndReceivingGoesOn) {
  ASSERT_TRUE(pair_.Connect());
  Memory& from = NewMemory(server(), 100);
  Memory& to = NewMemory(client(), 100);
  Submit(client(), pair_.client_connection(), Request::Kind::kShutdown);
  ASSERT_TRUE(pair_.RunUntil([&] { return !client().recorder.shut_down().empty(); }));
  EXPECT_EQ(client().recorder.shut_down()[0].failure.ending, EndReason::kOk);
  Job& send = NewJob(from, true, 0, 100);
  Job& receive = NewJob(to, false, 0, 100);
  Submit(client(), pair_.client_connection(), receive);
  Submit(server(), pair_.server_connection(), send);
  ASSERT_TRUE(Finish(client(), {&receive}));
  EXPECT_EQ(client().recorder.Find(receive.transfer)->result.bytes, 100u);
}

TEST_P(ShardTest, AnAbortEndsBothSidesWithTheirRootCauses) {
  ASSERT_TRUE(pair_.Connect());
  Memory& mine = NewMemory(client(), 100);
  Memory& theirs = NewMemory(server(), 100);
  Job& receive = NewJob(mine, false, 0, 100);
  Job& other = NewJob(theirs, false, 0, 100);
  Submit(client(), pair_.client_connection(), receive);
  Submit(server(), pair_.server_connection(), other);
  Submit(client(), pair_.client_connection(), Request::Kind::kAbort);
  ASSERT_TRUE(BothClosed());
  const auto local = *client().recorder.Find(receive.transfer);
  const auto remote = *server().recorder.Find(other.transfer);
  EXPECT_EQ(local.result.ending, EndReason::kLocalAbort);
  EXPECT_EQ(remote.result.ending, EndReason::kPeerReset);
  EXPECT_NE(remote.text.find("127.0.0.1:"), std::string::npos) << remote.text;
  EXPECT_EQ(server().recorder.closed()[0].failure.ending, EndReason::kPeerReset);
  EXPECT_EQ(server().recorder.closed()[0].failure.text, remote.text);
}

TEST_P(ShardTest, ATransferAfterTheEndIsTooLate) {
  ASSERT_TRUE(pair_.Connect());
  Submit(client(), pair_.client_connection(), Request::Kind::kAbort);
  ASSERT_TRUE(BothClosed());
  Memory& theirs = NewMemory(server(), 100);
  Job& late = NewJob(theirs, true, 0, 100);
  Submit(server(), pair_.server_connection(), late);
  ASSERT_TRUE(Finish(server(), {&late}));
  EXPECT_EQ(server().recorder.Find(late.transfer)->result.ending, EndReason::kTooLate);
  Job& unknown = NewJob(theirs, true, 0, 100);
  Submit(server(), ConnectionId{77}, unknown);
  ASSERT_TRUE(Finish(server(), {&unknown}));
  EXPECT_EQ(server().recorder.Find(unknown.transfer)->result.ending, EndReason::kTooLate);
}

TEST_P(ShardTest, AnUnheardConnectNamesTheAddress) {
  const Address address = pair_.Listen();
  ASSERT_TRUE(server().shard->StopListening(pair_.listener()).ok());
  const auto connection =
      client().shard->Connect(Loopback(0), address, {}, client().shard->Now() + seconds(5));
  ASSERT_TRUE(connection.ok()) << connection.status();
  ASSERT_TRUE(pair_.RunUntil([&] { return !client().recorder.closed().empty(); }));
  const Failure failure = client().recorder.closed()[0].failure;
  EXPECT_EQ(failure.ending, EndReason::kRefused);
  EXPECT_NE(failure.text.find(fabric::ToString(address)), std::string::npos) << failure.text;
  EXPECT_TRUE(client().recorder.connected().empty());
}

TEST_P(ShardTest, AConnectGivenUpEndsAtOnce) {
  const Address address = pair_.Listen();
  const auto connection =
      client().shard->Connect(Loopback(0), address, {}, client().shard->Now() + seconds(5));
  ASSERT_TRUE(connection.ok());
  Submit(client(), *connection, Request::Kind::kAbort);
  ASSERT_TRUE(pair_.RunUntil([&] { return !client().recorder.closed().empty(); }));
  EXPECT_EQ(client().recorder.closed()[0].failure.ending, EndReason::kLocalAbort);
  pair_.RunFor(milliseconds(20));
  for (const ConnectionId incoming : server().recorder.incoming()) {  // it had been accepted before
    EXPECT_TRUE(pair_.RunUntil([&] { return !server().recorder.closed().empty(); }));
    EXPECT_EQ(server().recorder.closed()[0].connection, incoming);
  }
}

TEST_P(ShardTest, APeerThatVanishesEndsEverythingThatWaits) {
  ASSERT_TRUE(pair_.Connect());
  Memory& to = NewMemory(client(), 4'000'000);
  Memory& from = NewMemory(client(), 4'000'000);
  Job& receive = NewJob(to, false, 0, 4'000'000);
  Job& send = NewJob(from, true, 0, 4'000'000);
  Submit(client(), pair_.client_connection(), receive);
  Submit(client(), pair_.client_connection(), send);
  server().shard.reset();
  ASSERT_TRUE(pair_.RunUntil([&] { return !client().recorder.closed().empty(); }));
  EXPECT_EQ(client().recorder.Find(receive.transfer)->result.ending, EndReason::kPeerReset);
  EXPECT_EQ(client().recorder.Find(send.transfer)->result.ending, EndReason::kPeerReset);
  EXPECT_EQ(to.region().operations(), 0u);
}

TEST_P(ShardTest, ADestroyedShardFinishesItsTransfersFirst) {
  ASSERT_TRUE(pair_.Connect());
  Memory& to = NewMemory(client(), 100);
  Job& receive = NewJob(to, false, 0, 100);
  Submit(client(), pair_.client_connection(), receive);
  const auto begin = std::chrono::steady_clock::now();
  client().shard.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  ASSERT_TRUE(client().recorder.Find(receive.transfer));
  EXPECT_EQ(client().recorder.Find(receive.transfer)->result.ending, EndReason::kLocalAbort);
  EXPECT_EQ(client().recorder.closed().size(), 1u);
}

TEST_P(ShardTest, TheBacklogBoundsConnectionsThatNobodyTakes) {
  const Address address = pair_.Listen({}, 2);
  for (size_t i = 1; i <= 3; ++i) {  // one after the other: what is half open does not count
    ASSERT_TRUE(
        client().shard->Connect(Loopback(0), address, {}, client().shard->Now() + seconds(5)).ok());
    ASSERT_TRUE(pair_.RunUntil([&] {
      return client().recorder.closed().size() + server().recorder.incoming().size() == i;
    }));
  }
  ASSERT_TRUE(pair_.RunUntil([&] { return client().recorder.connected().size() == 2; }));
  EXPECT_EQ(client().recorder.connected().size(), 2u);
  EXPECT_EQ(client().recorder.closed()[0].failure.ending, EndReason::kRejected);
  ASSERT_TRUE(pair_.RunUntil([&] { return server().recorder.incoming().size() == 2; }));
  Submit(server(), server().recorder.incoming()[0], Request::Kind::kTaken);
  ASSERT_TRUE(
      client().shard->Connect(Loopback(0), address, {}, client().shard->Now() + seconds(5)).ok());
  EXPECT_TRUE(pair_.RunUntil([&] { return client().recorder.connected().size() == 3; }));
}

TEST_P(ShardTest, ATransferOutsideItsRegionIsRefused) {
  ASSERT_TRUE(pair_.Connect());
  Memory& memory = NewMemory(client(), 100);
  Job& beyond = NewJob(memory, true, 50, 51);
  Submit(client(), pair_.client_connection(), beyond);
  ASSERT_TRUE(Finish(client(), {&beyond}));
  EXPECT_EQ(client().recorder.Find(beyond.transfer)->result.ending, EndReason::kInternal);
}

INSTANTIATE_TEST_SUITE_P(Worlds, ShardTest,
                         testing::Values(World::kSim, World::kQpipManual, World::kQpipThread),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace esdp::provider
