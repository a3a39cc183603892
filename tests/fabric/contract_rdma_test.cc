// CONTRACT.md, "RDMA and ordering".

#include <algorithm>

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ESDP_CONTRACT_SUITE(RdmaContract);

struct Span {
  size_t local;
  size_t remote;
  size_t length;
};
constexpr Span kSpans[] = {
    {0, 0, 1},      {1, 0, 1},       {0, 3, 7},
    {5, 9, 64},     {63, 1, 1499},   {0, 0, 65536},
    {7, 3, 131071}, {1, 2, 1000003}, {3, 1, (4 << 20) + 1},
};
constexpr size_t kSpace = (4 << 20) + 64;

TEST_P(RdmaContract, WritesEveryLengthAndAlignment) {
  const Link link = Connect();
  Memory source(*one_, kSpace);
  Memory target(*two_, kSpace);
  source.Fill(21);
  const RemoteRange key = (*two_)->RegionKey(target.region()).value_or(RemoteRange{});
  for (const Span& span : kSpans) {
    SCOPED_TRACE(span.length);
    target.Clear();
    ASSERT_POSTED(two_->Receive(link.two, 1, {}));

    ASSERT_POSTED(one_->Write(link.one, 2, {source.Entry(span.local, span.length)},
                              {key.key, key.address + span.remote}));
    const Completion written = NextCompletion(*one_, link.one);
    EXPECT_EQ(written.opcode, Opcode::kWrite);
    EXPECT_EQ(written.status, WorkStatus::kSuccess);
    EXPECT_TRUE(two_->completions.empty());
    ASSERT_POSTED(one_->Send(link.one, 3, {}));  // what has arrived is known by a message behind it
    ExpectSuccess(*one_, link.one, 3);
    ExpectSuccess(*two_, link.two, 1);

    EXPECT_TRUE(target.IsClear(0, span.remote));
    EXPECT_TRUE(target.Copy(span.remote, span.length) == source.Copy(span.local, span.length));
    EXPECT_TRUE(target.IsClear(span.remote + span.length, 32));
  }
}

TEST_P(RdmaContract, ReadsEveryLengthAndAlignment) {
  const Link link = Connect();
  Memory target(*one_, kSpace);
  Memory source(*two_, kSpace);
  source.Fill(22);
  const RemoteRange key = (*two_)->RegionKey(source.region()).value_or(RemoteRange{});
  for (const Span& span : kSpans) {
    SCOPED_TRACE(span.length);
    target.Clear();

    ASSERT_POSTED(one_->Read(link.one, 2, {target.Entry(span.local, span.length)},
                             {key.key, key.address + span.remote}));
    const Completion read = NextCompletion(*one_, link.one);

    EXPECT_EQ(read.opcode, Opcode::kRead);
    EXPECT_EQ(read.status, WorkStatus::kSuccess);
    EXPECT_TRUE(target.IsClear(0, span.local));
    EXPECT_TRUE(target.Copy(span.local, span.length) == source.Copy(span.remote, span.length));
    EXPECT_TRUE(target.IsClear(span.local + span.length, 32));
  }
  EXPECT_TRUE(two_->completions.empty());
}

TEST_P(RdmaContract, AReadScattersOverItsEntries) {
  const Link link = Connect();
  const size_t count = std::min<size_t>((*one_)->limits().read_scatter_gather_max, 16);
  Memory target(*one_, 4096);
  Memory source(*two_, 4096);
  source.Fill(23);
  const RemoteRange key = (*two_)->RegionKey(source.region()).value_or(RemoteRange{});
  std::vector<ScatterEntry> entries;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {  // from the back of the target to its front
    entries.push_back(target.Entry((count - 1 - i) * 128, 3 + i));
    total += 3 + i;
  }

  ASSERT_POSTED(one_->Read(link.one, 1, entries, key));
  ExpectSuccess(*one_, link.one, 1);

  size_t read = 0;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(target.Copy((count - 1 - i) * 128, 3 + i), source.Copy(read, 3 + i));
    EXPECT_TRUE(target.IsClear((count - 1 - i) * 128 + 3 + i, 128 - 3 - i));
    read += 3 + i;
  }
  EXPECT_EQ(read, total);
}

TEST_P(RdmaContract, AZeroLengthTransferSucceeds) {
  const Link link = Connect();
  Memory local(*one_, 8);
  Memory remote(*two_, 8);
  remote.Fill(24);
  const RemoteRange key = (*two_)->RegionKey(remote.region()).value_or(RemoteRange{});

  ASSERT_POSTED(one_->Read(link.one, 1, {}, key));
  ASSERT_POSTED(one_->Write(link.one, 2, {}, key));
  ASSERT_POSTED(one_->Read(link.one, 3, {local.Entry(4, 0)}, {key.key, key.address + 8}));
  ASSERT_POSTED(one_->Write(link.one, 4, {local.Entry(4, 0)}, {key.key, key.address + 8}));

  for (uint64_t id = 1; id <= 4; ++id) ExpectSuccess(*one_, link.one, id);
  ExpectReadAllowed(link, key, remote.Copy(0, 8));
  EXPECT_TRUE(local.IsClear(0, 8));
}

TEST_P(RdmaContract, ASendIsSeenAfterTheWritesBeforeIt) {
  const Link link = Connect();
  constexpr size_t kSize = 100000;
  Memory source(*one_, kSize);
  Memory target(*two_, kSize);
  const RemoteRange key = (*two_)->RegionKey(target.region()).value_or(RemoteRange{});
  for (uint64_t round = 0; round < 10; ++round) {
    source.Fill(round);
    ASSERT_POSTED(two_->Receive(link.two, round, {}));
    for (uint64_t part = 0; part < 10; ++part) {
      ASSERT_POSTED(one_->Write(link.one, part, {source.Entry(part * kSize / 10, kSize / 10)},
                                {key.key, key.address + part * kSize / 10}));
    }
    ASSERT_POSTED(one_->Send(link.one, 10, {}));

    ExpectSuccess(*two_, link.two, round);

    EXPECT_TRUE(target.Copy(0, kSize) == source.Copy(0, kSize)) << "round " << round;
    for (uint64_t id = 0; id <= 10; ++id) ExpectSuccess(*one_, link.one, id);
  }
}

TEST_P(RdmaContract, ReadsBeyondTheDepthAreQueued) {
  QueuePairOptions shallow = Options();
  shallow.initiator_depth = 2;
  const Link link = Connect(shallow, Options());
  constexpr size_t kReads = 24;
  Memory target(*one_, kReads * 1000);
  Memory source(*two_, kReads * 1000);
  source.Fill(25);
  const RemoteRange key = (*two_)->RegionKey(source.region()).value_or(RemoteRange{});
  Memory inbox(*two_, 8);
  ASSERT_POSTED(two_->Receive(link.two, 1, {inbox.All()}));

  for (uint64_t i = 0; i < kReads; ++i) {
    ASSERT_POSTED(
        one_->Read(link.one, i, {target.Entry(i * 1000, 1000)}, {key.key, key.address + i * 1000}));
  }
  ASSERT_POSTED(one_->Send(link.one, kReads, {target.Entry(0, 8)}));

  for (uint64_t i = 0; i <= kReads; ++i) ExpectSuccess(*one_, link.one, i);
  ExpectSuccess(*two_, link.two, 1);
  EXPECT_TRUE(target.Copy(0, kReads * 1000) == source.Copy(0, kReads * 1000));
}

TEST_P(RdmaContract, AReadNeedsADepth) {
  QueuePairOptions none = Options();
  none.initiator_depth = 0;
  const Link link = Connect(none, Options());
  Memory local(*one_, 8);
  Memory remote(*two_, 8);
  const RemoteRange key = (*two_)->RegionKey(remote.region()).value_or(RemoteRange{});

  EXPECT_CODE(one_->Read(link.one, 1, {local.All()}, key), kFailedPrecondition);
  ExpectWriteAllowed(link, key, 8);
}

TEST_P(RdmaContract, SendsDoNotOvertakeEachOther) {
  const Link link = Connect();
  constexpr uint64_t kMessages = 30;
  Memory source(*one_, 200000);
  Memory target(*two_, kMessages * 200000);
  source.Fill(26);
  const auto length = [](uint64_t i) { return i % 3 == 0 ? 200000 - i : i; };
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_POSTED(two_->Receive(link.two, i, {target.Entry(i * 200000, 200000)}));
  }

  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_POSTED(one_->Send(link.one, i, {source.Entry(i, length(i))}));
  }

  for (uint64_t i = 0; i < kMessages; ++i) {
    const Completion received = NextCompletion(*two_, link.two);
    EXPECT_EQ(received.work_id, i);
    EXPECT_EQ(received.byte_length, length(i));
    EXPECT_TRUE(target.Copy(i * 200000, length(i)) == source.Copy(i, length(i)));
  }
}

}  // namespace
}  // namespace esdp::fabric
