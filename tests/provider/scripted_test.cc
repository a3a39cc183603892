#include <poll.h>

#include <array>
#include <chrono>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "tests/provider/scripted.h"

namespace esdp::provider {
namespace {

using std::chrono::milliseconds;

bool IsReadable(int fd, int milliseconds = 0) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

// R3.10.4
TEST_F(ScriptedTest, AMessageThatDoesNotDecodeNamesItsFault) {
  Establish();
  const std::array<std::byte, 16> garbage{std::byte{0x55}};
  fabric_->Deliver(queue_pair_, garbage);
  Poll();
  fabric_->Raise(EventOf(RendezvousType::kDisconnected, Cause::kLocalDisconnect));
  Poll();
  EXPECT_EQ(Closed().ending, EndReason::kPeerProtocol);
  EXPECT_NE(Closed().text.find("broke SDP"), std::string::npos) << Closed().text;
}

TEST_F(ScriptedTest, AFailedWorkRequestIsTheRootCauseOnceEverythingIsFlushed) {
  const ConnectionId connection = Establish();
  Memory& memory = NewMemory(100);
  Job& receive = NewJob(memory, false, 0, 100);
  Submit(side_, connection, receive);
  Poll();
  fabric_->Complete({.queue_pair = queue_pair_,
                     .opcode = fabric::Opcode::kRead,
                     .status = WorkStatus::kRemoteAccess});
  Poll();
  EXPECT_FALSE(Result(receive));  // the peer might still write until the queue pair has flushed
  fabric_->Raise(EventOf(RendezvousType::kDisconnected, Cause::kRemoteTerminate));
  Poll();
  ASSERT_TRUE(Result(receive));
  EXPECT_EQ(Result(receive)->result.ending, EndReason::kRemoteAccess);
  EXPECT_EQ(Closed().ending, EndReason::kRemoteAccess);
  EXPECT_EQ(Result(receive)->text, Closed().text);
}

TEST_F(ScriptedTest, ADmaBufIsSentWithoutACopyHoweverLittleOfItThereIs) {
  const ConnectionId connection = Establish();
  std::array<std::byte, 4096> buffer{};
  const auto region =
      *side_.shard->RegisterDmaBuf({.fd = 5, .offset = 0}, buffer, Exposure::kPerOperation);
  EXPECT_EQ(Shard::Describe(*region).base, nullptr);
  for (const uint64_t length : {uint64_t{1}, uint64_t{100}, uint64_t{3000}}) {
    Memory& memory = NewMemory(1);
    Job& job = NewJob(memory, true, 0, 1);
    job.pieces[0] = {region.get(), 0, length};
    job.transfer.zcopy_min = ~uint64_t{0};
    const size_t before = fabric_->sends().size();
    Submit(side_, connection, job);
    Poll();
    ASSERT_EQ(fabric_->sends().size(), before + 1);
    EXPECT_EQ(fabric_->sends().back().bytes.size(), 16 + length);
    fabric_->Complete({.queue_pair = queue_pair_, .opcode = fabric::Opcode::kSend});
    Poll();
    EXPECT_TRUE(Result(job));
  }
  EXPECT_EQ(side_.shard->Counters(connection)->payload_copies, 0u);
  EXPECT_TRUE(side_.shard->Deregister(*region).ok());
}

TEST_F(ScriptedTest, ARefusedPostEndsTheConnection) {
  const ConnectionId connection = Establish();
  fabric_->Refuse("PostSend", absl::ResourceExhaustedError("send queue full"));
  Memory& memory = NewMemory(100);
  Job& send = NewJob(memory, true, 0, 100);
  Submit(side_, connection, send);
  EXPECT_EQ(fabric_->disconnects(), 1);
  fabric_->Raise(EventOf(RendezvousType::kDisconnected, Cause::kLocalDisconnect));
  Poll();
  EXPECT_EQ(Closed().ending, EndReason::kFabricFailed);
  EXPECT_NE(Closed().text.find("send queue full"), std::string::npos) << Closed().text;
}

TEST_F(ScriptedTest, APostRefusedByAnEndThatHasBegunWaitsForItsCause) {
  const ConnectionId connection = Establish();
  fabric_->Refuse("PostSend", absl::FailedPreconditionError("not ready"));
  fabric_->Refuse("Disconnect", absl::FailedPreconditionError("not ready"));
  Memory& memory = NewMemory(100);
  Job& send = NewJob(memory, true, 0, 100);
  Submit(side_, connection, send);
  Poll();
  fabric_->Raise(EventOf(RendezvousType::kDisconnected, Cause::kPeerReset));
  Poll();
  EXPECT_EQ(Closed().ending, EndReason::kPeerReset);
  EXPECT_EQ(Closed().text.find("not ready"), std::string::npos) << Closed().text;
}

TEST_F(ScriptedTest, ASendHasLeftBeforeItsEndIsTold) {
  const ConnectionId connection = Establish();
  const size_t before = fabric_->sends().size();
  size_t posted = 0;
  side_.recorder.on_finished = [&](Transfer&) { posted = fabric_->sends().size() - before; };
  Memory& memory = NewMemory(64);
  Job& send = NewJob(memory, true, 0, 64);
  Submit(side_, connection, send);
  ASSERT_TRUE(Result(send));
  EXPECT_EQ(posted, 1u);
}

TEST_F(ScriptedTest, ASendCarriesHeaderAndBytesInOneMessage) {
  const ConnectionId connection = Establish();
  Memory& memory = NewMemory(100);
  memory.Fill(1);
  Job& send = NewJob(memory, true, 10, 50);
  Submit(side_, connection, send);
  ASSERT_EQ(fabric_->sends().size(), 1u);
  const std::vector<std::byte> bytes = fabric_->sends()[0].bytes;
  ASSERT_EQ(bytes.size(), wire::kBaseHeaderBytes + 50);
  EXPECT_TRUE(std::equal(bytes.begin() + 16, bytes.end(), memory.bytes().begin() + 10));
  EXPECT_EQ(Sent(0).base.sequence, 1u);
}

// R25.5, R25.6
TEST_F(ScriptedTest, AnAdvertIsShownThroughAWindowAndWithdrawnBeforeItsSendEnds) {
  const ConnectionId connection = Establish();
  Memory& memory = NewMemory(200'000);
  Job& send = NewJob(memory, true, 1000, 100'000);
  Submit(side_, connection, send);
  ASSERT_EQ(fabric_->sends().size(), 1u);
  const auto advert = std::get<wire::SrcAvail>(Sent(0).body);
  const FakeFabric::Window window = fabric_->windows().at(advert.remote_key);
  EXPECT_EQ(window.address, memory.bytes().data() + 1000);
  EXPECT_EQ(window.length, 100'000u);
  fabric_->CompleteSend();
  acknowledged_ = 1;
  const uint32_t inline_bytes = static_cast<uint32_t>(fabric_->sends()[0].bytes.size()) - 32;
  wire::Message done;
  done.body = wire::RdmaRdCompl{100'000 - inline_bytes};
  Deliver(done);
  Poll();
  EXPECT_FALSE(Result(send));
  ASSERT_EQ(fabric_->sends().size(), 2u);
  EXPECT_EQ(fabric_->sends()[1].work.opcode, fabric::Opcode::kInvalidate);
  EXPECT_EQ(fabric_->sends()[1].work.invalidate_key, advert.remote_key);
  fabric_->CompleteSend();
  Poll();
  ASSERT_TRUE(Result(send));
  EXPECT_EQ(Result(send)->result.bytes_zero_copy, 100'000u);
}

// A peer that has read everything that it was shown, and told so, before any withdrawal of ours is over. Of the send queue
// half is the withdrawals'.
class WithdrawalTest : public ScriptedTest {
 protected:
  static constexpr uint32_t kWork = 16, kRoom = kWork / 2;
  static constexpr uint64_t kLength = 100'000;
  static constexpr uint8_t kSends = 3 * kRoom;

  WithdrawalTest() {
    fabric_->mutable_limits().send_work_max = kWork;
    const ConnectionId connection = EstablishPipelined(kSends);
    Memory& memory = NewMemory(kLength);
    for (int i = 0; i < kSends; ++i) {
      sends_.push_back(&NewJob(memory, true, 0, kLength));
      Submit(side_, connection, *sends_.back());
      CompleteSends();
      acknowledged_ = static_cast<uint32_t>(fabric_->sends().size());
      Deliver({});
      Poll();
    }
    EXPECT_EQ(fabric_->windows().size(), kSends);
    for (int i = 0; i < kSends; ++i) {
      wire::Message done;
      done.body = wire::RdmaRdCompl{kLength};
      Deliver(done);
      Poll();
    }
  }
  size_t Invalidations() const {
    size_t count = 0;
    for (const FakeFabric::Posted& each : fabric_->sends()) {
      if (each.work.opcode == fabric::Opcode::kInvalidate) ++count;
    }
    return count;
  }
  size_t Ended() const {
    size_t count = 0;
    for (const Job* send : sends_) {
      if (Result(*send)) ++count;
    }
    return count;
  }

  std::vector<Job*> sends_;
};

// R25.5
TEST_F(WithdrawalTest, WhatTheSendQueueHasNoRoomForWaitsForIt) {
  EXPECT_EQ(Invalidations(), kRoom);
  EXPECT_EQ(Ended(), 0u);
  fabric_->CompleteSend();
  Poll();
  EXPECT_EQ(Invalidations(), kRoom + 1);
  EXPECT_EQ(Ended(), 1u);
  CompleteSends();
  EXPECT_EQ(Ended(), kSends);
  EXPECT_TRUE(fabric_->windows().empty());
  EXPECT_EQ(fabric_->disconnects(), 0);
  for (const Job* send : sends_) EXPECT_EQ(Result(*send)->result.ending, EndReason::kOk);
}

// R25.5
TEST_F(WithdrawalTest, WhatWaitsIsOverWhenTheConnectionIsLost) {
  EXPECT_EQ(Invalidations(), kRoom);
  fabric_->Raise(EventOf(RendezvousType::kDisconnected, Cause::kPeerReset));
  Poll();
  EXPECT_EQ(Ended(), kSends);
  EXPECT_EQ(Closed().ending, EndReason::kPeerReset);
  EXPECT_TRUE(fabric_->windows().empty());
}

// R25.5
TEST_F(WithdrawalTest, AKeyThatIsDeadWhenItsTurnComesIsNoFault) {
  std::map<uint32_t, FakeFabric::Window> waiting = fabric_->windows();
  for (const FakeFabric::Posted& each : fabric_->sends()) waiting.erase(each.work.invalidate_key);
  ASSERT_EQ(waiting.size(), kSends - kRoom);
  for (const auto& [key, window] : waiting) fabric_->LoseWindow(key);
  fabric_->CompleteSend();
  Poll();
  EXPECT_EQ(Invalidations(), kRoom);
  EXPECT_EQ(Ended(), 1u) << "they end in order";
  CompleteSends();
  EXPECT_EQ(Ended(), kSends);
  EXPECT_EQ(fabric_->disconnects(), 0);
}

TEST_F(ScriptedTest, AKeyThatIsDeadAtItsWithdrawalIsNoFault) {
  const ConnectionId connection = Establish();
  Memory& memory = NewMemory(200'000);
  Job& send = NewJob(memory, true, 0, 100'000);
  Submit(side_, connection, send);
  fabric_->CompleteSend();
  acknowledged_ = 1;
  fabric_->Refuse("PostSend", absl::NotFoundError("no such key"));
  const uint32_t inline_bytes = static_cast<uint32_t>(fabric_->sends()[0].bytes.size()) - 32;
  wire::Message done;
  done.body = wire::RdmaRdCompl{100'000 - inline_bytes};
  Deliver(done);
  Poll();
  ASSERT_TRUE(Result(send));
  EXPECT_EQ(Result(send)->result.ending, EndReason::kOk);
}

TEST_F(ScriptedTest, WhatCannotBeExposedIsCopied) {
  const ConnectionId connection = Establish();
  fabric_->Refuse("Bind", absl::ResourceExhaustedError("no window left"));
  Memory& memory = NewMemory(200'000);
  Job& send = NewJob(memory, true, 0, 100'000);
  Submit(side_, connection, send);
  ASSERT_FALSE(fabric_->sends().empty());
  EXPECT_TRUE(std::holds_alternative<wire::Data>(Sent(0).body));
  EXPECT_EQ(side_.shard->Counters(connection)->expose_failures, 1u);
}

TEST_F(ScriptedTest, TheLossTakesTheWindowsBackBeforeTheSendsEnd) {
  const ConnectionId connection = Establish();
  Memory& memory = NewMemory(200'000);
  Job& send = NewJob(memory, true, 0, 100'000);
  side_.recorder.on_finished = [&](Transfer&) { EXPECT_TRUE(fabric_->windows().empty()); };
  Submit(side_, connection, send);
  EXPECT_EQ(fabric_->windows().size(), 1u);
  fabric_->Raise(EventOf(RendezvousType::kDisconnected, Cause::kPeerReset));
  Poll();
  ASSERT_TRUE(Result(send));
  EXPECT_EQ(Result(send)->result.ending, EndReason::kPeerReset);
}

TEST_F(ScriptedTest, AChunkCrossingMakesOneAdvertForEachChunk) {
  fabric_->mutable_limits().region_bytes_max = 120 * 4096;  // before any region of the test
  const ConnectionId connection = Establish();
  Memory& memory = NewMemory(200 * 4096);
  Job& send = NewJob(memory, true, 70 * 4096, 100 * 4096);
  Submit(side_, connection, send);
  EXPECT_EQ(std::get<wire::SrcAvail>(Sent(0).body).length, 50u * 4096);
  EXPECT_EQ(fabric_->windows().begin()->second.length, 50u * 4096);
}

TEST_F(ScriptedTest, ASubmitFromTheObserverIsExecutedAfterIt) {
  const ConnectionId connection = Establish();
  Memory& memory = NewMemory(100);
  Job& first = NewJob(memory, false, 0, 100);
  Job& second = NewJob(memory, false, 0, 100);
  int depth = 0;
  side_.recorder.on_finished = [&](Transfer& transfer) {
    EXPECT_EQ(++depth, 1);
    if (&transfer == &first.transfer) {
      Submit(side_, connection, second);
      Submit(side_, connection, Request::Kind::kAbort);
    }
    --depth;
  };
  first.transfer.deadline = fabric_->Now() + milliseconds(1);
  Submit(side_, connection, first);
  fabric_->MoveTime(milliseconds(2));
  Poll();
  EXPECT_EQ(Result(first)->result.ending, EndReason::kDeadlineExceeded);
  EXPECT_EQ(fabric_->disconnects(), 1);  // the abort was executed, and before it the second receive
  EXPECT_FALSE(Result(second));
  fabric_->Raise(EventOf(RendezvousType::kDisconnected, Cause::kLocalDisconnect));
  Poll();
  EXPECT_EQ(Result(second)->result.ending, EndReason::kLocalAbort);
}

TEST_F(ScriptedTest, TheDescriptorTellsOfArrivalsWakeUpsAndDeadlines) {
  const ConnectionId connection = Establish();
  const int fd = side_.shard->fd();
  Poll();
  EXPECT_FALSE(IsReadable(fd));
  side_.shard->Wake();
  EXPECT_TRUE(IsReadable(fd));
  Poll();
  EXPECT_FALSE(IsReadable(fd));
  fabric_->Complete({.queue_pair = fabric::QueuePairId{999}});  // of a queue pair that is gone
  EXPECT_TRUE(IsReadable(fd));
  Poll();
  EXPECT_FALSE(IsReadable(fd));
  Memory& memory = NewMemory(100);
  Job& receive = NewJob(memory, false, 0, 100);
  receive.transfer.deadline = fabric_->Now() + milliseconds(5);
  Submit(side_, connection, receive);
  EXPECT_TRUE(IsReadable(fd, 2000));
}

TEST_F(ScriptedTest, WorkThatWasPostedAndNotPolledForIsFoundAtOnce) {
  const ConnectionId connection = Establish();
  Memory& memory = NewMemory(100);
  Submit(side_, connection, NewJob(memory, true, 0, 100));
  EXPECT_TRUE(side_.shard->WaitForWork(kTimeInfinite));  // returns, although nothing has arrived
  Poll();
  const int fd = side_.shard->fd();
  Poll();
  EXPECT_FALSE(IsReadable(fd));
  Submit(side_, connection, NewJob(memory, true, 0, 100));  // now somebody sleeps on that
  EXPECT_TRUE(IsReadable(fd));
}

TEST_F(ScriptedTest, TheFabricNeedsToTellOfArrivalsOnlyWhereSomebodyWaits) {
  Establish();
  Poll();
  EXPECT_FALSE(fabric_->waits_expected());
  const int polls = fabric_->polls();
  (void)side_.shard->WaitForWork(fabric_->Now());
  EXPECT_TRUE(fabric_->waits_expected());
  EXPECT_GT(fabric_->polls(), polls) << "what came before was not told";
  Poll();
  EXPECT_FALSE(fabric_->waits_expected()) << "nobody waits any more";
  side_.shard->fd();
  Poll();
  EXPECT_TRUE(fabric_->waits_expected()) << "of the descriptor one does not know";
}

TEST(SeveralScriptedTest, EachFabricHearsWhetherSomebodyWaits) {
  auto one = std::make_unique<FakeFabric>();
  auto two = std::make_unique<FakeFabric>();
  const FakeFabric* const seen[] = {one.get(), two.get()};
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
  fabrics.push_back(std::move(one));
  fabrics.push_back(std::move(two));
  Side side;
  ShardOptions options;
  options.progress = Progress::kManual;
  side.shard = *Shard::Create(std::move(fabrics), side.recorder, options);
  (void)side.shard->Poll();
  for (const FakeFabric* fabric : seen) EXPECT_FALSE(fabric->waits_expected());
  side.shard->fd();
  (void)side.shard->Poll();
  for (const FakeFabric* fabric : seen) EXPECT_TRUE(fabric->waits_expected());
}

// What came while nobody waited is not told: the wait finds it.
TEST_F(ScriptedTest, AWaitBeginsWithALook) {
  Establish();
  while (side_.shard->Poll()) {
  }
  fabric_->Complete({.queue_pair = fabric::QueuePairId{999}});
  EXPECT_TRUE(side_.shard->WaitForWork(kTimeInfinite));
}

}  // namespace
}  // namespace esdp::provider
