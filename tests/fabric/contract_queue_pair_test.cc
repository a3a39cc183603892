// CONTRACT.md, "Queue pairs".

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ESDP_CONTRACT_SUITE(QueuePairContract);

TEST_P(QueuePairContract, RefusesOptionsBeyondTheLimits) {
  const Limits& limits = (*one_)->limits();
  QueuePairOptions options = Options();
  options.send_work = limits.send_work_max + 1;
  EXPECT_CODE((*one_)->CreateQueuePair(options).status(), kOutOfRange);
  options = Options();
  options.receive_work = limits.receive_work_max + 1;
  EXPECT_CODE((*one_)->CreateQueuePair(options).status(), kOutOfRange);

  options = Options();
  options.send_work = limits.send_work_max;
  options.receive_work = limits.receive_work_max;
  options.initiator_depth = UINT32_MAX;
  options.responder_resources = UINT32_MAX;
  EXPECT_POSTED((*one_)->CreateQueuePair(options).status());
}

TEST_P(QueuePairContract, NothingIsSentBeforeTheConnection) {
  Memory memory(*one_, 8);
  const QueuePairId queue_pair = Create(*one_);
  EXPECT_CODE(one_->Send(queue_pair, 1, {memory.All()}), kFailedPrecondition);
  EXPECT_POSTED(one_->Receive(queue_pair, 1, {memory.All()}));

  ASSERT_POSTED(StartConnecting(queue_pair));
  EXPECT_CODE(one_->Send(queue_pair, 1, {memory.All()}), kFailedPrecondition);
  EXPECT_POSTED(one_->Receive(queue_pair, 2, {memory.All()}));
}

TEST_P(QueuePairContract, CarriesMessagesOfEverySize) {
  const Link link = Connect();
  const size_t sizes[] = {0,     1,     2,      3,       7,       63,
                          64,    65,    1499,   4096,    16384,   65535,
                          65536, 65537, 131072, 1000003, 1 << 20, (4 << 20) + 5};
  for (const size_t size : sizes) {
    if (size > (*one_)->limits().message_bytes_max) continue;
    SCOPED_TRACE(size);
    Memory source(*one_, size + 2);
    Memory target(*two_, size + 2);
    source.Fill(size);
    ASSERT_POSTED(two_->Receive(link.two, size, {target.Entry(0, size)}));
    ASSERT_POSTED(one_->Send(link.one, size, {source.Entry(1, size)}));

    const Completion received = NextCompletion(*two_, link.two);
    EXPECT_EQ(received.status, WorkStatus::kSuccess);
    EXPECT_EQ(received.opcode, Opcode::kReceive);
    EXPECT_EQ(received.byte_length, size);
    EXPECT_FALSE(received.has_invalidated);
    EXPECT_TRUE(target.Copy(0, size) == source.Copy(1, size));
    EXPECT_TRUE(target.IsClear(size, 2));
    const Completion sent = NextCompletion(*one_, link.one);
    EXPECT_EQ(sent.work_id, size);
    EXPECT_EQ(sent.opcode, Opcode::kSend);
    EXPECT_EQ(sent.status, WorkStatus::kSuccess);
  }
  EXPECT_TRUE(one_->completions.empty());
  EXPECT_TRUE(two_->completions.empty());
}

TEST_P(QueuePairContract, GathersAndScattersAcrossAnyBoundary) {
  const Link link = Connect();
  constexpr size_t kTotal = 70000;
  const size_t entries_max =
      std::min((*one_)->limits().scatter_gather_max, (*two_)->limits().scatter_gather_max);
  Memory source(*one_, kTotal);
  Memory target(*two_, kTotal);
  source.Fill(11);
  const auto cut = [&](Memory& memory, std::vector<size_t> lengths) {
    if (lengths.size() > entries_max) lengths.resize(entries_max);
    lengths.back() += kTotal - std::accumulate(lengths.begin(), lengths.end(), size_t{0});
    std::vector<ScatterEntry> entries;
    size_t offset = 0;
    for (const size_t length : lengths) {
      entries.push_back(memory.Entry(offset, length));
      offset += length;
    }
    return entries;
  };
  const std::vector<size_t> cuts[] = {{kTotal},   {1, 1},         {0, 5, 0, 1},
                                      {65536, 1}, {33, 40000, 7}, {1, 2, 3, 4, 5, 6}};
  uint64_t id = 0;
  for (const std::vector<size_t>& at_source : cuts) {
    for (const std::vector<size_t>& at_target : cuts) {
      target.Clear();
      ++id;
      ASSERT_POSTED(two_->Receive(link.two, id, cut(target, at_target)));
      ASSERT_POSTED(one_->Send(link.one, id, cut(source, at_source)));
      ExpectSuccess(*two_, link.two, id);
      ExpectSuccess(*one_, link.one, id);
      EXPECT_TRUE(target.Copy(0, kTotal) == source.Copy(0, kTotal)) << "exchange " << id;
    }
  }
}

TEST_P(QueuePairContract, RefusesTooManyEntries) {
  const Link link = Connect();
  const Limits& limits = (*one_)->limits();
  Memory memory(*one_, 8);
  Memory remote(*two_, 8);
  const std::vector<ScatterEntry> many(limits.scatter_gather_max + 1, memory.Entry(0, 1));
  const std::vector<ScatterEntry> too_many_to_read(limits.read_scatter_gather_max + 1,
                                                   memory.Entry(0, 1));
  const absl::StatusOr<RemoteRange> key = (*two_)->RegionKey(remote.region());
  ASSERT_TRUE(key.ok());

  EXPECT_CODE(one_->Send(link.one, 1, many), kOutOfRange);
  EXPECT_CODE(one_->Receive(link.one, 1, many), kOutOfRange);
  EXPECT_CODE(one_->Write(link.one, 1, many, *key), kOutOfRange);
  EXPECT_CODE(one_->Read(link.one, 1, too_many_to_read, *key), kOutOfRange);
}

TEST_P(QueuePairContract, RefusesAMessageBeyondTheLimit) {
  const Limits& limits = (*one_)->limits();
  const uint64_t part = limits.message_bytes_max / limits.scatter_gather_max + 1;
  ASSERT_LE(part, UINT32_MAX) << "no list of entries can be longer than the limit";
  const Link link = Connect();
  Memory memory(*one_, part);
  const std::vector<ScatterEntry> entries(limits.scatter_gather_max, memory.All());

  EXPECT_CODE(one_->Send(link.one, 1, entries), kOutOfRange);
  EXPECT_CODE(one_->Write(link.one, 1, entries, {1, 0}), kOutOfRange);
  EXPECT_CODE(one_->Read(link.one, 1, entries, {1, 0}), kOutOfRange);
}

TEST_P(QueuePairContract, RefusesLocalRangesOutsideARegion) {
  const Link link = Connect();
  Memory memory(*one_, 64);
  const auto refused = [&](std::byte* address, uint32_t length) {
    const std::vector<ScatterEntry> entries{{memory.region(), address, length}};
    EXPECT_CODE(one_->Send(link.one, 1, entries), kOutOfRange);
    EXPECT_CODE(one_->Receive(link.one, 1, entries), kOutOfRange);
    EXPECT_CODE(one_->Read(link.one, 1, entries, {1, 0}), kOutOfRange);
    EXPECT_CODE(one_->Write(link.one, 1, entries, {1, 0}), kOutOfRange);
  };

  refused(memory.at(0) - 1, 8);
  refused(memory.at(0), 65);
  refused(memory.at(60), 5);
  refused(memory.at(64), 1);
  refused(nullptr, 1);
  EXPECT_CODE(one_->Send(link.one, 1, {{RegionId{4711}, memory.at(0), 1}}), kNotFound);
  EXPECT_CODE(one_->Receive(link.one, 1, {memory.All(), {RegionId::kNone, memory.at(0), 1}}),
              kNotFound);
}

TEST_P(QueuePairContract, RefusesToPlaceWithoutLocalWrite) {
  const Link link = Connect();
  Memory constant(*one_, 64, {.local_write = false, .remote_read = true});

  EXPECT_CODE(one_->Receive(link.one, 1, {constant.All()}), kFailedPrecondition);
  EXPECT_CODE(one_->Read(link.one, 1, {constant.All()}, {1, 0}), kFailedPrecondition);
  Memory inbox(*two_, 64);
  ASSERT_POSTED(two_->Receive(link.two, 1, {inbox.All()}));
  EXPECT_POSTED(one_->Send(link.one, 1, {constant.All()}));
  ExpectSuccess(*two_, link.two, 1);
}

TEST_P(QueuePairContract, EntriesAreCopiedAtPost) {
  const Link link = Connect();
  Memory source(*one_, 64);
  Memory target(*two_, 64);
  source.Fill(12);
  std::vector<ScatterEntry> entries{target.Entry(0, 32)};
  ASSERT_POSTED(two_->Receive(link.two, 1, entries));
  entries[0] = {RegionId{999}, nullptr, 0};
  entries = {source.Entry(0, 32)};
  ASSERT_POSTED(one_->Send(link.one, 1, entries));
  entries[0] = source.Entry(32, 32);

  ExpectSuccess(*two_, link.two, 1);

  EXPECT_EQ(target.Copy(0, 32), source.Copy(0, 32));
}

TEST_P(QueuePairContract, ABatchIsPostedWholeOrNotAtAll) {
  const Link link = Connect();
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  const ScatterEntry good = source.All();
  const ScatterEntry bad{RegionId{4711}, source.at(0), 8};
  std::array<SendWork, 3> sends;
  for (size_t i = 0; i < sends.size(); ++i) {
    sends[i] = {.work_id = i, .entries = &good, .entry_count = 1, .remote = {}};
  }
  sends[2].entries = &bad;
  const ScatterEntry place = target.All();
  std::array<ReceiveWork, 2> receives{ReceiveWork{1, &place, 1}, ReceiveWork{2, &bad, 1}};
  EXPECT_CODE((*two_)->PostReceive(link.two, receives), kNotFound);
  ASSERT_POSTED(two_->Receive(link.two, 3, {place}));

  EXPECT_CODE((*one_)->PostSend(link.one, sends), kNotFound);
  Settle();
  EXPECT_TRUE(one_->completions.empty());
  EXPECT_TRUE(two_->completions.empty());

  ASSERT_POSTED(one_->Send(link.one, 4, {good}));
  ExpectSuccess(*two_, link.two, 3);
  ExpectSuccess(*one_, link.one, 4);
}

TEST_P(QueuePairContract, AFullSendQueueRefuses) {
  QueuePairOptions small = Options();
  small.send_work = 4;
  const Link link = Connect(small, Options());
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  const ScatterEntry entry = source.All();
  std::vector<SendWork> batch(5, SendWork{.entries = &entry, .entry_count = 1, .remote = {}});
  for (uint64_t i = 0; i < 16; ++i) ASSERT_POSTED(two_->Receive(link.two, i, {target.All()}));

  EXPECT_CODE((*one_)->PostSend(link.one, batch), kResourceExhausted);
  batch.pop_back();
  for (int round = 0; round < 3; ++round) {
    ASSERT_POSTED((*one_)->PostSend(link.one, batch));
    for (size_t i = 0; i < batch.size(); ++i) ExpectSuccess(*one_, link.one, 0);
  }
}

TEST_P(QueuePairContract, AFullReceiveQueueRefuses) {
  QueuePairOptions small = Options();
  small.receive_work = 4;
  const Link link = Connect(Options(), small);
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_POSTED(two_->Receive(link.two, i, {target.All()}));
  EXPECT_CODE(two_->Receive(link.two, 4, {target.All()}), kResourceExhausted);

  ASSERT_POSTED(one_->Send(link.one, 1, {source.All()}));
  ExpectSuccess(*two_, link.two, 0);

  EXPECT_POSTED(two_->Receive(link.two, 4, {target.All()}));
  EXPECT_CODE(two_->Receive(link.two, 5, {target.All()}), kResourceExhausted);
}

TEST_P(QueuePairContract, EveryWorkCompletesOnceInPostingOrder) {
  const Link link = Connect();
  Memory local(*one_, 4096);
  Memory remote(*two_, 4096);
  const RemoteRange key = (*two_)->RegionKey(remote.region()).value_or(RemoteRange{});
  const bool windows = (*one_)->limits().windows;
  std::vector<Opcode> expected;
  for (uint64_t i = 0; i < 40; ++i) {
    const std::vector<ScatterEntry> entries{local.Entry(i * 64, 64)};
    if (i % 4 == 0) {
      ASSERT_POSTED(two_->Receive(link.two, i / 4, {remote.Entry(0, 64)}));
      ASSERT_POSTED(one_->Send(link.one, i, entries));
      expected.push_back(Opcode::kSend);
    } else if (i % 4 == 1) {
      ASSERT_POSTED(one_->Read(link.one, i, entries, {key.key, key.address + i}));
      expected.push_back(Opcode::kRead);
    } else if (i % 4 == 2 || !windows) {
      ASSERT_POSTED(one_->Write(link.one, i, entries, {key.key, key.address + 64}));
      expected.push_back(Opcode::kWrite);
    } else {
      const RemoteRange range = Bind(*one_, link.one, local, 0, 64, kForReading);
      ASSERT_POSTED(one_->Invalidate(link.one, i, range.key));
      expected.push_back(Opcode::kInvalidate);
    }
    if (i % 16 == 15) LetTimePass();
  }

  for (uint64_t i = 0; i < 40; ++i) {
    const Completion completion = NextCompletion(*one_, link.one);
    EXPECT_EQ(completion.work_id, i);
    EXPECT_EQ(completion.opcode, expected[i]);
    EXPECT_EQ(completion.status, WorkStatus::kSuccess) << ToString(completion.status);
  }
  for (uint64_t i = 0; i < 10; ++i) ExpectSuccess(*two_, link.two, i);
  Settle();
  EXPECT_TRUE(one_->completions.empty());
  EXPECT_TRUE(two_->completions.empty());
}

TEST_P(QueuePairContract, TheSourceIsFreeAfterItsCompletion) {
  const Link link = Connect();
  constexpr size_t kSize = 1 << 20;
  Memory source(*one_, kSize);
  Memory target(*two_, 2 * kSize);
  source.Fill(13);
  const std::vector<std::byte> sent = source.Copy(0, kSize);
  const RemoteRange key = (*two_)->RegionKey(target.region()).value_or(RemoteRange{});
  ASSERT_POSTED(two_->Receive(link.two, 1, {target.Entry(0, kSize)}));
  ASSERT_POSTED(two_->Receive(link.two, 2, {target.Entry(0, 0)}));

  ASSERT_POSTED(one_->Send(link.one, 1, {source.All()}));
  ExpectSuccess(*one_, link.one, 1);
  source.Clear();
  ExpectSuccess(*two_, link.two, 1);
  EXPECT_TRUE(target.Copy(0, kSize) == sent);

  source.Fill(13);
  ASSERT_POSTED(one_->Write(link.one, 2, {source.All()}, {key.key, key.address + kSize}));
  ExpectSuccess(*one_, link.one, 2);
  source.Clear();
  ASSERT_POSTED(one_->Send(link.one, 3, {}));
  ExpectSuccess(*two_, link.two, 2);
  EXPECT_TRUE(target.Copy(kSize, kSize) == sent);
}

TEST_P(QueuePairContract, BothSidesMaySendLargeMessagesAtOnce) {
  const Link link = Connect();
  constexpr size_t kSize = 8 << 20;
  Memory out_one(*one_, kSize);
  Memory out_two(*two_, kSize);
  Memory in_one(*one_, kSize);
  Memory in_two(*two_, kSize);
  out_one.Fill(14);
  out_two.Fill(15);
  ASSERT_POSTED(one_->Receive(link.one, 1, {in_one.All()}));
  ASSERT_POSTED(two_->Receive(link.two, 1, {in_two.All()}));

  ASSERT_POSTED(one_->Send(link.one, 2, {out_one.All()}));
  ASSERT_POSTED(two_->Send(link.two, 2, {out_two.All()}));

  ASSERT_TRUE(Pump([&] { return one_->completions.size() == 2 && two_->completions.size() == 2; }));
  EXPECT_TRUE(in_one.Copy(0, kSize) == out_two.Copy(0, kSize));
  EXPECT_TRUE(in_two.Copy(0, kSize) == out_one.Copy(0, kSize));
}

TEST_P(QueuePairContract, ManyQueuePairsShareAFabric) {
  constexpr size_t kLinks = 32;
  constexpr uint64_t kMessages = 10;
  std::vector<Link> links;
  for (size_t i = 0; i < kLinks; ++i) links.push_back(Connect());
  Memory source(*one_, kLinks);
  Memory target(*two_, kLinks * kMessages);
  source.Fill(16);
  for (uint64_t m = 0; m < kMessages; ++m) {
    for (size_t i = 0; i < kLinks; ++i) {
      ASSERT_POSTED(two_->Receive(links[i].two, m, {target.Entry(i * kMessages + m, 1)}));
      ASSERT_POSTED(one_->Send(links[i].one, m, {source.Entry(i, 1)}));
    }
  }
  // One of them breaks: a message without a receive where that is fatal, an abrupt end anywhere.
  ASSERT_POSTED((*one_)->Disconnect(links[0].one, false));

  for (size_t i = 1; i < kLinks; ++i) {
    for (uint64_t m = 0; m < kMessages; ++m) {
      ExpectSuccess(*one_, links[i].one, m);
      ExpectSuccess(*two_, links[i].two, m);
      EXPECT_EQ(target.Copy(i * kMessages + m, 1), source.Copy(i, 1));
    }
  }
}

TEST_P(QueuePairContract, ReleasedReceivesStillTakeTheirMessages) {
  constexpr size_t kSize = 40000;
  const Link link = Connect();
  Memory source(*one_, kSize);
  Memory target(*two_, 3 * kSize);
  source.Fill(5);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_POSTED(two_->Receive(link.two, i, {target.Entry(i * kSize, kSize)}));
  }
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_POSTED(one_->Send(link.one, i, {source.All()}));
    EXPECT_EQ(NextCompletion(*two_, link.two).byte_length, kSize);
    (*two_)->ReleaseUnusedReceives(link.two);
  }

  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(target.Copy(i * kSize, kSize) == source.Copy(0, kSize)) << i;
  }
}

namespace {

// What `completion` says has arrived: where it is lent, out of the fabric's own memory.
std::vector<std::byte> Arrived(const Completion& completion, const Memory& target) {
  if (completion.lent == nullptr) return target.Copy(0, completion.byte_length);
  return {completion.lent, completion.lent + completion.byte_length};
}

}  // namespace

TEST_P(QueuePairContract, LentMessagesAreReadWhereTheyLie) {
  constexpr std::array<size_t, 12> kSizes{1,    63,    64,    65,    1000,  1024,
                                          4096, 16400, 65552, 69632, 69633, 200000};
  constexpr size_t kHead = 16;
  // What follows a header, since it is copied faster so.
  const bool begins_at_line = std::string_view((*two_)->name()) == "local";
  QueuePairOptions lending = Options();
  lending.lend_messages = true;
  const Link link = Connect(Options(), lending);
  size_t lent = 0;
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    Memory source(*one_, size);
    Memory target(*two_, size);
    source.Fill(size);
    std::vector<std::byte> arrived;
    std::vector<std::byte> placed;
    two_->on_polled = [&](const Completion& completion) {
      EXPECT_EQ(completion.byte_length, size);
      arrived = Arrived(completion, target);
      placed = target.Copy(0, std::min(size, kLentHeadBytes));
      if (completion.lent == nullptr) return;
      ++lent;
      if (begins_at_line) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(completion.lent + kHead) % 64, 0u);
      }
      if (size > kLentHeadBytes) {
        EXPECT_TRUE(target.IsClear(kLentHeadBytes, size - kLentHeadBytes));
      }
    };
    ASSERT_POSTED(two_->Receive(link.two, size, {target.All()}));
    if (size > kHead) {
      const ScatterEntry rest = source.Entry(kHead, size - kHead);
      ASSERT_POSTED(one_->Send(link.one, size, {source.Entry(0, kHead), rest}));
    } else {
      ASSERT_POSTED(one_->Send(link.one, size, {source.All()}));
    }
    ExpectSuccess(*two_, link.two, size);
    EXPECT_TRUE(arrived == source.Copy(0, size));
    EXPECT_TRUE(placed == source.Copy(0, std::min(size, kLentHeadBytes)));
  }
  EXPECT_EQ(lent != 0, (*two_)->limits().lends_messages);
}

TEST_P(QueuePairContract, MessagesThatAreLentLeaveRoomForTheNext) {
  constexpr size_t kSize = 16400;
  constexpr uint64_t kMessages = 100;
  QueuePairOptions lending = Options();
  lending.lend_messages = true;
  const Link link = Connect(lending, lending);
  Memory source(*one_, kSize);
  Memory target(*two_, kSize);
  for (const bool returns : {true, false}) {
    uint64_t received = 0;
    two_->on_polled = [&](const Completion& completion) {
      source.Fill(received);
      EXPECT_TRUE(Arrived(completion, target) == source.Copy(0, kSize)) << received;
      ++received;
      if (returns) (*two_)->ReturnLent(link.two);
    };
    for (uint64_t i = 0; i < kMessages; ++i) {
      source.Fill(i);
      const ScatterEntry entry = target.All();
      const ReceiveWork work{.work_id = i, .entries = &entry, .entry_count = 1};
      ASSERT_POSTED((*two_)->PostReceive(link.two, {&work, 1}));
      ASSERT_POSTED(one_->Send(link.one, i, {source.All()}));
      ExpectSuccess(*one_, link.one, i);
      ASSERT_TRUE(Pump([&] { return received == i + 1; }));
    }
  }
}

// Also where a Poll has no room for all that has arrived, and the next one hands out the rest.
TEST_P(QueuePairContract, WhatAPollHasLentStaysUntilTheNextOne) {
  constexpr size_t kSize = 20000;
  constexpr uint64_t kFirst = 6;
  constexpr uint64_t kMessages = 16;
  QueuePairOptions lending = Options();
  lending.lend_messages = true;
  const Link link = Connect(Options(), lending);
  Memory source(*one_, kMessages * kSize);
  Memory target(*two_, kMessages * kSize);
  source.Fill(9);
  for (uint64_t i = 0; i < kMessages; ++i) {
    const ScatterEntry entry = target.Entry(i * kSize, kSize);
    const ReceiveWork work{.work_id = i, .entries = &entry, .entry_count = 1};
    ASSERT_POSTED((*two_)->PostReceive(link.two, {&work, 1}));
  }
  const auto send = [&](uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      ASSERT_POSTED(one_->Send(link.one, i, {source.Entry(i * kSize, kSize)}));
    }
  };
  ASSERT_NO_FATAL_FAILURE(send(0, kFirst));
  std::array<Completion, kMessages> completions;
  uint64_t received = 0;
  for (int i = 0; i < 1000 && received < kMessages; ++i) {
    one_->Collect();
    LetTimePass();
    const size_t room = received == 0 ? 2 : completions.size();
    const size_t count = (*two_)->Poll(absl::MakeSpan(completions).first(room));
    // What is sent now takes all the room that there is.
    if (received == 0 && count != 0) {
      ASSERT_NO_FATAL_FAILURE(send(kFirst, kMessages));
    }
    one_->Collect();
    LetTimePass();
    for (size_t at = 0; at < count; ++at, ++received) {
      const ConstBytes expected(source.at(received * kSize), kSize);
      const std::byte* const here =
          completions[at].lent != nullptr ? completions[at].lent : target.at(received * kSize);
      EXPECT_TRUE(std::ranges::equal(ConstBytes(here, kSize), expected)) << received;
    }
  }
  EXPECT_EQ(received, kMessages);
}

TEST_P(QueuePairContract, WhatIsLentOutlivesItsQueuePair) {
  constexpr size_t kSize = 20000;
  QueuePairOptions lending = Options();
  lending.lend_messages = true;
  Memory source(*one_, kSize);
  Memory target(*two_, kSize);
  source.Fill(3);
  for (const bool destroys : {false, true}) {
    const Link link = Connect(Options(), lending);
    bool polled = false;
    two_->on_polled = [&](const Completion& completion) {
      if (completion.opcode != Opcode::kReceive || polled) return;
      polled = true;
      EXPECT_POSTED(destroys ? (*two_)->DestroyQueuePair(link.two)
                             : (*two_)->Disconnect(link.two, /*orderly=*/false));
      EXPECT_TRUE(Arrived(completion, target) == source.Copy(0, kSize));
    };
    ASSERT_POSTED(two_->Receive(link.two, 1, {target.All()}));
    ASSERT_POSTED(one_->Send(link.one, 1, {source.All()}));
    ASSERT_TRUE(Pump([&] { return polled; }));
    two_->on_polled = nullptr;
    Settle();
  }
}

TEST_P(QueuePairContract, AnEmptyBatchIsNothing) {
  const Link link = Connect();

  EXPECT_POSTED((*one_)->PostSend(link.one, {}));
  EXPECT_POSTED((*one_)->PostReceive(link.one, {}));
  Settle();

  EXPECT_TRUE(one_->completions.empty());
  EXPECT_TRUE(two_->completions.empty());
}

}  // namespace
}  // namespace esdp::fabric
