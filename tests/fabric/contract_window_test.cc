// CONTRACT.md, "Windows".

#include <set>

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ESDP_CONTRACT_SUITE(WindowContract);

TEST_P(WindowContract, BindChecksItsRange) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory memory(*one_, 64);
  const auto bind = [&](std::byte* address, uint64_t length) {
    return (*one_)->Bind(link.one, memory.region(), address, length, kForReading).status();
  };

  EXPECT_CODE(bind(memory.at(0), 65), kOutOfRange);
  EXPECT_CODE(bind(memory.at(0) - 1, 2), kOutOfRange);
  EXPECT_CODE(bind(memory.at(64), 1), kOutOfRange);
  EXPECT_CODE(bind(memory.at(32), UINT64_MAX - 8), kOutOfRange);
  EXPECT_CODE(bind(memory.at(0), 0), kInvalidArgument);
  EXPECT_CODE((*one_)->Bind(link.one, RegionId{98765}, memory.at(0), 1, kForReading).status(),
              kNotFound);
  EXPECT_POSTED(bind(memory.at(0), 64));
}

TEST_P(WindowContract, BindNeedsAConnectedQueuePair) {
  ESDP_NEEDS(windows);
  Memory memory(*one_, 64);
  const QueuePairId lone = Create(*one_);
  EXPECT_CODE((*one_)->Bind(lone, memory.region(), memory.at(0), 64, kForReading).status(),
              kFailedPrecondition);

  const Link link = Connect();
  ASSERT_POSTED((*one_)->Disconnect(link.one, false));
  EXPECT_CODE((*one_)->Bind(link.one, memory.region(), memory.at(0), 64, kForReading).status(),
              kFailedPrecondition);
}

TEST_P(WindowContract, AWindowCannotWriteWhereTheRegionCannot) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory constant(*one_, 64, {.local_write = false});

  EXPECT_CODE((*one_)->Bind(link.one, constant.region(), constant.at(0), 64, kForWriting).status(),
              kFailedPrecondition);
  EXPECT_POSTED(
      (*one_)->Bind(link.one, constant.region(), constant.at(0), 64, kForReading).status());
}

TEST_P(WindowContract, AWindowGivesExactlyItsRange) {
  ESDP_NEEDS(windows);
  constexpr size_t kOffset = 101;
  constexpr size_t kLength = 333;
  struct Case {
    const char* name;
    int64_t shift;
    size_t length;
    bool allowed;
  };
  const Case cases[] = {
      {"all of it", 0, kLength, true},    {"its last byte", kLength - 1, 1, true},
      {"one byte before", -1, 2, false},  {"one byte behind", 1, kLength, false},
      {"just behind", kLength, 1, false}, {"wrapping round", -16, kLength, false},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    for (const bool reading : {true, false}) {
      const Link link = Connect();
      Memory memory(*two_, 600);
      memory.Fill(3);
      const std::vector<std::byte> before = memory.Copy(0, 600);
      const RemoteRange range = Bind(*two_, link.two, memory, kOffset, kLength,
                                     {.remote_read = true, .remote_write = true});
      const RemoteRange asked{range.key, range.address + static_cast<uint64_t>(test.shift)};
      const size_t first = static_cast<size_t>(static_cast<int64_t>(kOffset) + test.shift);
      if (reading && test.allowed) ExpectReadAllowed(link, asked, memory.Copy(first, test.length));
      if (reading && !test.allowed) ExpectReadRefused(link, asked, test.length);
      if (!reading && test.allowed) ExpectWriteAllowed(link, asked, test.length);
      if (!reading && !test.allowed) ExpectWriteRefused(link, asked, test.length);
      Settle();
      EXPECT_EQ(memory.Copy(0, kOffset), std::vector(before.begin(), before.begin() + kOffset));
      EXPECT_EQ(memory.Copy(kOffset + kLength, 600 - kOffset - kLength),
                std::vector(before.begin() + kOffset + kLength, before.end()));
      if (reading || !test.allowed) continue;
      EXPECT_NE(memory.Copy(first, test.length),
                std::vector(before.begin() + static_cast<ptrdiff_t>(first),
                            before.begin() + static_cast<ptrdiff_t>(first + test.length)));
    }
  }
}

TEST_P(WindowContract, AWindowGivesExactlyItsRights) {
  ESDP_NEEDS(windows);
  Memory memory(*two_, 64);
  memory.Fill(4);
  const std::vector<std::byte> before = memory.Copy(0, 64);

  const Link reading = Connect();
  ExpectWriteRefused(reading, Bind(*two_, reading.two, memory, 0, 64, kForReading), 64);
  EXPECT_EQ(memory.Copy(0, 64), before);

  const Link writing = Connect();
  ExpectReadRefused(writing, Bind(*two_, writing.two, memory, 0, 64, kForWriting), 64);

  const Link neither = Connect();
  ExpectReadRefused(neither, Bind(*two_, neither.two, memory, 0, 64, {}), 64);
}

TEST_P(WindowContract, AWindowServesOneQueuePair) {
  ESDP_NEEDS(windows);
  const Link owner = Connect();
  const Link other = Connect();
  Memory memory(*two_, 64);
  memory.Fill(5);
  const RemoteRange range = Bind(*two_, owner.two, memory, 0, 64, kForReading);

  ExpectReadRefused(other, range, 64);
  ExpectReadAllowed(owner, range, memory.Copy(0, 64));
}

TEST_P(WindowContract, WindowsMayOverlap) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory memory(*two_, 64);
  memory.Fill(6);
  const RemoteRange whole = Bind(*two_, link.two, memory, 0, 64, kForReading);
  const RemoteRange part = Bind(*two_, link.two, memory, 16, 16, kForReading);
  EXPECT_NE(whole.key, part.key);

  ASSERT_POSTED(two_->Invalidate(link.two, 9, whole.key));
  ExpectSuccess(*two_, link.two, 9);

  ExpectReadAllowed(link, part, memory.Copy(16, 16));
  ExpectReadRefused(link, whole, 64);
}

TEST_P(WindowContract, KeysAreNotReusedSoon) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory memory(*one_, 64);
  std::set<uint32_t> keys;
  for (uint64_t i = 0; i < 256; ++i) {
    const RemoteRange range = Bind(*one_, link.one, memory, 0, 64, kForReading);
    EXPECT_NE(range.key, 0u);
    EXPECT_TRUE(keys.insert(range.key).second) << "key " << range.key << " came twice";
    ASSERT_POSTED(one_->Invalidate(link.one, i, range.key));
    ExpectSuccess(*one_, link.one, i);
  }
}

TEST_P(WindowContract, LocalInvalidateEndsAKey) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory memory(*two_, 64);
  memory.Fill(7);
  const RemoteRange range = Bind(*two_, link.two, memory, 0, 64, kForReading);
  ExpectReadAllowed(link, range, memory.Copy(0, 64));

  ASSERT_POSTED(two_->Invalidate(link.two, 9, range.key));
  const Completion completion = NextCompletion(*two_, link.two);
  EXPECT_EQ(completion.opcode, Opcode::kInvalidate);
  EXPECT_EQ(completion.status, WorkStatus::kSuccess);

  ExpectReadRefused(link, range, 64);
}

TEST_P(WindowContract, RemoteInvalidateEndsAKeyAndNamesIt) {
  ESDP_NEEDS(windows);
  ESDP_NEEDS(remote_invalidate);
  const Link link = Connect();
  Memory memory(*two_, 64);
  Memory message(*one_, 8);
  Memory inbox(*two_, 16);
  const RemoteRange range = Bind(*two_, link.two, memory, 0, 64, kForReading);
  ASSERT_POSTED(two_->Receive(link.two, 1, {inbox.Entry(0, 8)}));
  ASSERT_POSTED(two_->Receive(link.two, 2, {inbox.Entry(8, 8)}));

  ASSERT_POSTED(one_->Send(link.one, 1, {message.All()}));
  ASSERT_POSTED(one_->SendAndInvalidate(link.one, 2, {message.All()}, range.key));

  EXPECT_FALSE(NextCompletion(*two_, link.two).has_invalidated);
  const Completion second = NextCompletion(*two_, link.two);
  EXPECT_EQ(second.status, WorkStatus::kSuccess);
  EXPECT_TRUE(second.has_invalidated);
  EXPECT_EQ(second.invalidated_key, range.key);
  ExpectSuccess(*one_, link.one, 1);
  ExpectSuccess(*one_, link.one, 2);
  EXPECT_CODE(two_->Invalidate(link.two, 3, range.key), kNotFound);
  EXPECT_POSTED((*two_)->Deregister(memory.region()));

  ExpectReadRefused(link, range, 64);
}

TEST_P(WindowContract, InvalidatingAnUnknownKeyEndsTheStream) {
  ESDP_NEEDS(remote_invalidate);
  const Link link = Connect();
  const Link bystander = Connect();
  Memory memory(*two_, 64);
  memory.Fill(8);
  Memory message(*one_, 8);
  const RemoteRange others = Bind(*two_, bystander.two, memory, 0, 64, kForReading);
  ASSERT_POSTED(two_->Receive(link.two, 1, {memory.Entry(0, 8)}));

  ASSERT_POSTED(one_->SendAndInvalidate(link.one, 2, {message.All()}, others.key));

  EXPECT_NE(NextCompletion(*two_, link.two).status, WorkStatus::kSuccess);
  ExpectEnds(Cause::kRemoteTerminate, Cause::kLocalAccess);
  ExpectReadAllowed(bystander, others, memory.Copy(0, 64));
}

TEST_P(WindowContract, ARegionKeyCannotBeInvalidated) {
  ESDP_NEEDS(remote_invalidate);
  const Link link = Connect();
  const Link bystander = Connect();
  Memory memory(*two_, 64);
  Memory message(*one_, 8);
  const absl::StatusOr<RemoteRange> key = (*two_)->RegionKey(memory.region());
  ASSERT_TRUE(key.ok()) << key.status();
  ASSERT_POSTED(two_->Receive(link.two, 1, {memory.Entry(0, 8)}));

  ASSERT_POSTED(one_->SendAndInvalidate(link.one, 2, {message.All()}, key->key));

  EXPECT_NE(NextCompletion(*two_, link.two).status, WorkStatus::kSuccess);
  ExpectEnds(Cause::kRemoteTerminate, Cause::kLocalAccess);
  ExpectReadAllowed(bystander, *key, memory.Copy(0, 64));
}

TEST_P(WindowContract, LocalInvalidateOfAnUnknownKeyIsNotFound) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  const Link bystander = Connect();
  Memory memory(*one_, 64);
  const RemoteRange others = Bind(*one_, bystander.one, memory, 0, 64, kForReading);
  const absl::StatusOr<RemoteRange> whole = (*one_)->RegionKey(memory.region());
  ASSERT_TRUE(whole.ok());
  const RemoteRange own = Bind(*one_, link.one, memory, 0, 64, kForReading);

  EXPECT_CODE(one_->Invalidate(link.one, 1, others.key), kNotFound);
  EXPECT_CODE(one_->Invalidate(link.one, 1, whole->key), kNotFound);
  EXPECT_CODE(one_->Invalidate(link.one, 1, 0), kNotFound);
  ASSERT_POSTED(one_->Invalidate(link.one, 2, own.key));
  ExpectSuccess(*one_, link.one, 2);
  EXPECT_CODE(one_->Invalidate(link.one, 3, own.key), kNotFound);
}

TEST_P(WindowContract, UnbindIsForTheTimeAfterTheConnection) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory memory(*one_, 64);
  const RemoteRange range = Bind(*one_, link.one, memory, 0, 64, kForReading);
  EXPECT_CODE((*one_)->Unbind(link.one, range.key), kFailedPrecondition);

  ASSERT_POSTED((*two_)->Disconnect(link.two, false));
  ExpectEnds(Cause::kPeerReset, Cause::kLocalDisconnect);

  EXPECT_CODE((*one_)->Deregister(memory.region()), kFailedPrecondition);
  EXPECT_POSTED((*one_)->Unbind(link.one, range.key));
  EXPECT_CODE((*one_)->Unbind(link.one, range.key), kNotFound);
  EXPECT_POSTED((*one_)->Deregister(memory.region()));
}

TEST_P(WindowContract, DestroyWithdrawsTheWindows) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory memory(*one_, 64);
  Bind(*one_, link.one, memory, 0, 64, kForReading);
  Bind(*one_, link.one, memory, 8, 8, kForReading);

  ASSERT_POSTED((*one_)->DestroyQueuePair(link.one));

  EXPECT_POSTED((*one_)->Deregister(memory.region()));
}

TEST_P(WindowContract, WhatThePeerHasWrittenIsCountedWithoutGaps) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory memory(*two_, 64);
  Memory source(*one_, 64);
  const RemoteRange range = Bind(*two_, link.two, memory, 0, 64, kForWriting);
  EXPECT_EQ((*two_)->Written(link.two, range.key + 1), kWrittenUnknown);
  const bool can_tell = (*two_)->Written(link.two, range.key) != kWrittenUnknown;
  const auto expect_after = [&](uint64_t offset, size_t length, uint64_t written) {
    ASSERT_POSTED(one_->Write(link.one, 1, {source.Entry(0, length)},
                              RemoteRange{range.key, range.address + offset}));
    ExpectSuccess(*one_, link.one, 1);
    Settle();
    EXPECT_EQ((*two_)->Written(link.two, range.key), can_tell ? written : kWrittenUnknown)
        << offset << " + " << length;
  };
  EXPECT_EQ((*two_)->Written(link.two, range.key), can_tell ? 0 : kWrittenUnknown);
  expect_after(0, 8, 8);
  expect_after(16, 8, 8);
  expect_after(8, 8, 16);
  expect_after(4, 8, 16);
  expect_after(16, 48, 64);
  if (!(*two_)->limits().remote_invalidate) return;
  Memory inbox(*two_, 8);
  ASSERT_POSTED(two_->Receive(link.two, 2, {inbox.All()}));
  ASSERT_POSTED(one_->SendAndInvalidate(link.one, 3, {source.Entry(0, 8)}, range.key));
  EXPECT_EQ(NextCompletion(*two_, link.two).written, can_tell ? 64 : kWrittenUnknown);
  ExpectSuccess(*one_, link.one, 3);
}

}  // namespace
}  // namespace esdp::fabric
