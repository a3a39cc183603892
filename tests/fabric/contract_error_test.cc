// CONTRACT.md, "Errors".

#include <algorithm>

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ESDP_CONTRACT_SUITE(ErrorContract);

TEST_P(ErrorContract, ASendWithoutAReceiveIsNeverLost) {
  const Link link = Connect();
  Memory source(*one_, 64);
  Memory target(*two_, 64);
  source.Fill(31);

  ASSERT_POSTED(one_->Send(link.one, 1, {source.All()}));
  if ((*one_)->limits().initiator_speaks_first) {
    for (const Completion& completion :
         CompletionsUntilEnd(*one_, link.one, Cause::kRemoteTerminate)) {
      EXPECT_TRUE(completion.status == WorkStatus::kSuccess ||
                  completion.status == WorkStatus::kReceiverNotReady)
          << ToString(completion.status);
    }
    CompletionsUntilEnd(*two_, link.two, Cause::kProtocol);
    return;
  }
  Settle();
  EXPECT_TRUE(two_->completions.empty());
  ASSERT_POSTED(two_->Receive(link.two, 2, {target.All()}));
  ExpectSuccess(*two_, link.two, 2);
  ExpectSuccess(*one_, link.one, 1);
  EXPECT_EQ(target.Copy(0, 64), source.Copy(0, 64));
}

TEST_P(ErrorContract, AMessageLongerThanItsReceiveEndsTheStream) {
  for (const size_t excess : {size_t{1}, size_t{100000}}) {
    SCOPED_TRACE(excess);
    const Link link = Connect();
    Memory source(*one_, 64 + excess);
    Memory target(*two_, 200000);
    source.Fill(32);
    ASSERT_POSTED(two_->Receive(link.two, 1, {target.Entry(1000, 32), target.Entry(2000, 32)}));

    ASSERT_POSTED(one_->Send(link.one, 1, {source.All()}));

    EXPECT_NE(NextCompletion(*two_, link.two).status, WorkStatus::kSuccess);
    ExpectEnds(Cause::kRemoteTerminate, Cause::kProtocol);
    EXPECT_TRUE(target.IsClear(0, 1000));
    EXPECT_TRUE(target.IsClear(1032, 968));
    EXPECT_TRUE(target.IsClear(2032, 200000 - 2032));
  }
}

TEST_P(ErrorContract, ARefusedReadTellsWhichOne) {
  const Link link = Connect();
  Memory local(*one_, 256);
  Memory remote(*two_, 256);
  remote.Fill(33);
  const RemoteRange key = (*two_)->RegionKey(remote.region()).value_or(RemoteRange{});
  ASSERT_POSTED(one_->Receive(link.one, 9, {local.Entry(192, 64)}));

  ASSERT_POSTED(one_->Read(link.one, 1, {local.Entry(0, 64)}, key));
  ASSERT_POSTED(one_->Read(link.one, 2, {local.Entry(64, 64)}, {key.key, key.address + 193}));
  ASSERT_POSTED(one_->Read(link.one, 3, {local.Entry(128, 64)}, key));

  const std::vector<Completion> completions =
      CompletionsUntilEnd(*one_, link.one, Cause::kRemoteTerminate);
  CompletionsUntilEnd(*two_, link.two, Cause::kLocalAccess);
  const auto status_of = [&](uint64_t id) {
    const auto found =
        std::find_if(completions.begin(), completions.end(),
                     [&](const Completion& completion) { return completion.work_id == id; });
    return found == completions.end() ? WorkStatus::kTransport : found->status;
  };
  EXPECT_EQ(completions.size(), 4u);
  EXPECT_EQ(status_of(1), WorkStatus::kSuccess);
  EXPECT_EQ(status_of(2), AsTold(WorkStatus::kRemoteAccess, status_of(2)));
  EXPECT_EQ(status_of(3), WorkStatus::kFlushed);
  EXPECT_EQ(status_of(9), WorkStatus::kFlushed);
  EXPECT_EQ(local.Copy(0, 64), remote.Copy(0, 64));
}

TEST_P(ErrorContract, ARefusedWriteEndsTheStream) {
  const Link link = Connect();
  Memory remote(*two_, 256, {.local_write = true, .remote_write = true});
  Memory local(*one_, 1 << 20);
  const RemoteRange key = (*two_)->RegionKey(remote.region()).value_or(RemoteRange{});
  ASSERT_POSTED(two_->Receive(link.two, 7, {remote.Entry(0, 8)}));

  ASSERT_POSTED(one_->Write(link.one, 1, {local.Entry(0, 256)}, key));
  ASSERT_POSTED(one_->Write(link.one, 2, {local.Entry(0, 257)}, key));
  ASSERT_POSTED(one_->Write(link.one, 3, {local.All()}, key));

  const std::vector<Completion> at_one =
      CompletionsUntilEnd(*one_, link.one, Cause::kRemoteTerminate);
  ASSERT_EQ(at_one.size(), 3u);
  EXPECT_EQ(at_one[0].status, WorkStatus::kSuccess);
  for (const Completion& completion : at_one) {
    EXPECT_TRUE(completion.status == WorkStatus::kSuccess ||
                completion.status == WorkStatus::kRemoteAccess ||
                completion.status == WorkStatus::kFlushed)
        << ToString(completion.status);
  }
  const std::vector<Completion> at_two = CompletionsUntilEnd(*two_, link.two, Cause::kLocalAccess);
  ASSERT_EQ(at_two.size(), 1u);
  EXPECT_EQ(at_two[0].status, WorkStatus::kFlushed);
}

TEST_P(ErrorContract, ARefusedAccessTouchesNothing) {
  ESDP_NEEDS(windows);
  constexpr size_t kSize = 300000;
  constexpr size_t kFirst = 50000;
  constexpr size_t kShown = 100000;
  // Long enough to take several segments where the wire has them; the first bytes of it are in the
  // window.
  for (const size_t length : {size_t{kShown + 1}, size_t{200000}}) {
    SCOPED_TRACE(length);
    const Link link = Connect();
    Memory memory(*two_, kSize);
    const RemoteRange range = Bind(*two_, link.two, memory, kFirst, kShown, kForWriting);

    ExpectWriteRefused(link, range, length);
    Settle();

    EXPECT_TRUE(memory.IsClear(0, kFirst));
    EXPECT_TRUE(memory.IsClear(kFirst + kShown, kSize - kFirst - kShown));
  }
  const Link link = Connect();
  Memory memory(*two_, kSize);
  memory.Fill(34);
  ExpectReadRefused(link, Bind(*two_, link.two, memory, kFirst, kShown, kForReading), 200000);
}

TEST_P(ErrorContract, AnUnknownKeyIsRefused) {
  Memory memory(*two_, 64);
  const RemoteRange key = (*two_)->RegionKey(memory.region()).value_or(RemoteRange{});
  for (const uint32_t wrong : {0u, key.key + 1, key.key - 1, key.key ^ 0x80000000u, UINT32_MAX}) {
    SCOPED_TRACE(wrong);
    ExpectReadRefused(Connect(), {wrong, key.address}, 8);
    ExpectWriteRefused(Connect(), {wrong, key.address}, 8);
  }
  EXPECT_TRUE(memory.IsClear(0, 64));
}

TEST_P(ErrorContract, ALostStreamLeavesTheFabricWorking) {
  Memory memory(*two_, 64);
  memory.Fill(35);
  const RemoteRange key = (*two_)->RegionKey(memory.region()).value_or(RemoteRange{});
  const Link neighbour = Connect();

  for (int i = 0; i < 3; ++i) {
    const Link broken = Connect();
    ExpectReadRefused(broken, {key.key, key.address + 1}, 64);
    ASSERT_POSTED((*one_)->DestroyQueuePair(broken.one));
    ASSERT_POSTED((*two_)->DestroyQueuePair(broken.two));
  }

  ExpectReadAllowed(neighbour, key, memory.Copy(0, 64));
  ExpectReadAllowed(Connect(), key, memory.Copy(0, 64));
}

TEST_P(ErrorContract, PeerDeathFlushesEverything) {
  const Link link = Connect();
  constexpr size_t kSize = 4 << 20;
  Memory local(*one_, kSize);
  Memory remote(*two_, kSize);
  const RemoteRange key = (*two_)->RegionKey(remote.region()).value_or(RemoteRange{});
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_POSTED(one_->Receive(link.one, 100 + i, {local.Entry(0, 64)}));
    ASSERT_POSTED(two_->Receive(link.two, i, {remote.All()}));
    ASSERT_POSTED(one_->Read(link.one, 2 * i, {local.All()}, key));
    ASSERT_POSTED(one_->Write(link.one, 2 * i + 1, {local.All()}, key));
  }
  Pump([] { return false; }, std::chrono::microseconds(7));

  two_->End();

  const std::vector<Completion> completions =
      CompletionsUntilEnd(*one_, link.one, Cause::kPeerReset);
  EXPECT_EQ(completions.size(), 12u);
  const auto flushed = std::count_if(
      completions.begin(), completions.end(),
      [](const Completion& completion) { return completion.status == WorkStatus::kFlushed; });
  EXPECT_GE(flushed, 4);  // the receives at least
}

}  // namespace
}  // namespace esdp::fabric
