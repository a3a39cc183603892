#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// SendBatch and RecvBatch: many operations in one turn, each of which is one like any other.

namespace esdp::contract {
namespace {

class BatchTest : public PairTest {
 protected:
  // `count` slices of `size`, one behind the other.
  static std::vector<Slice> Cut(const Memory& memory, uint64_t size, size_t count) {
    std::vector<Slice> slices;
    for (size_t i = 0; i < count; ++i) slices.push_back(memory.At(i * size, size));
    return slices;
  }
  // Posts all of them, however many calls it takes, and notes their names.
  std::vector<OpId> SendAll(Side& side, const std::vector<Slice>& slices, const OpArgs& args) {
    std::vector<OpId> ops(slices.size());
    size_t done = 0;
    const bool all = Pump([&] {
      const auto sent =
          side.socket.SendBatch(absl::MakeConstSpan(slices).subspan(done), SendFlags::kNone, args,
                                absl::MakeSpan(ops).subspan(done));
      if (sent.ok()) done += *sent;
      return done == slices.size();
    });
    EXPECT_TRUE(all);
    for (const OpId op : ops) (void)side.Accepted(op);
    return ops;
  }
};
ESDP_ON_EVERY_WORLD(BatchTest);

TEST_P(BatchTest, EachSliceIsASendWithItsOwnNameAndPlaceInTheStream) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 64 * 200);
  Memory& to = Make(server_, from.size());
  from.Fill(NewSeed());
  for (int round = 0; round < 3; ++round) {
    to.Clear();
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    const std::vector<OpId> ops = SendAll(client_, Cut(from, 64, 200), client_.Args(1000));
    EndWell(server_, receive, from.size());
    EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
    for (size_t i = 0; i < ops.size(); ++i) {
      const Event event = End(client_, ops[i]);
      ASSERT_TRUE(event.ok()) << event.status();
      EXPECT_EQ(event.type, EventType::kSend);
      EXPECT_EQ(event.cookie, 1000u);
      EXPECT_EQ(event.bytes, 64u);
      EXPECT_EQ(event.stream_offset, static_cast<uint64_t>(round) * from.size() + i * 64);
    }
  }
  EXPECT_EQ(client_.socket.Stats().sends_copied, 600u);
}

TEST_P(BatchTest, SmallSendsShareMessages) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 64 * 32);
  const OpId receive = server_.Recv(Make(server_, from.size()).All(), RecvFlags::kWaitAll);
  Settle();
  const uint64_t before = client_.socket.Stats().messages_sent;
  const std::vector<OpId> ops = SendAll(client_, Cut(from, 64, 32), client_.Args());
  EndWell(server_, receive, from.size());
  for (const OpId op : ops) EndWell(client_, op, 64);
  EXPECT_LE(client_.socket.Stats().messages_sent - before, 3u);
}

TEST_P(BatchTest, OfAnySizeTheyGoInOrder) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 1 << 20);
  Memory& to = Make(server_, from.size());
  from.Fill(NewSeed());
  std::vector<Slice> slices;
  uint64_t at = 0;
  for (const uint64_t size :
       std::initializer_list<uint64_t>{1, 64, 0, 2000, 300'000, 3, 2048, 2049, 100'000, 0, 7}) {
    slices.push_back(from.At(at, size));
    at += size;
  }
  const OpId receive = server_.Recv(to.At(0, at), RecvFlags::kWaitAll);
  const std::vector<OpId> ops = SendAll(client_, slices, client_.Args());
  EndWell(server_, receive, at);
  for (size_t i = 0; i < ops.size(); ++i) EndWell(client_, ops[i], slices[i].length());
  EXPECT_TRUE(SameBytes(absl::MakeSpan(from.bytes).first(at), absl::MakeSpan(to.bytes).first(at)));
}

TEST_P(BatchTest, WhatThePeerDoesNotTakeYetWaitsBehindWhatWasSentBefore) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 2000 * 400);
  Memory& to = Make(server_, from.size());
  from.Fill(NewSeed());
  const std::vector<OpId> ops = SendAll(client_, Cut(from, 2000, 400), client_.Args());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(server_, receive, from.size());
  for (const OpId op : ops) EndWell(client_, op, 2000);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

TEST_P(BatchTest, ReceivesAreFilledInTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 100 * 100);
  Memory& to = Make(server_, from.size());
  from.Fill(NewSeed());
  std::vector<OpId> ops(100);
  const auto accepted = server_.socket.RecvBatch(Cut(to, 100, 100), RecvFlags::kWaitAll,
                                                 server_.Args(7), absl::MakeSpan(ops));
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  ASSERT_EQ(*accepted, 100u);
  for (const OpId op : ops) (void)server_.Accepted(op);
  EndWell(client_, client_.Send(from.All()), from.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const Event event = End(server_, ops[i]);
    ASSERT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event.bytes, 100u);
    EXPECT_EQ(event.cookie, 7u);
  }
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

TEST_P(BatchTest, ReceivesBehindTheEndOfTheStreamFindIt) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId close = client_.Close();
  (void)End(server_, server_.Accepted(server_.socket.Shutdown(server_.Args())));
  EXPECT_TRUE(End(client_, close).ok());
  Settle();
  std::vector<OpId> ops(5);
  const auto accepted = server_.socket.RecvBatch(Cut(Make(server_, 50), 10, 5), RecvFlags::kNone,
                                                 server_.Args(), absl::MakeSpan(ops));
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  for (const OpId op : ops) (void)server_.Accepted(op);
  for (const OpId op : ops) EXPECT_TRUE(End(server_, op).eof());
}

TEST_P(BatchTest, ASliceThatIsRefusedRefusesAllOfThem) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& mine = Make(client_, 100);
  Memory& foreign = Make(server_, 100);
  const std::array<Slice, 3> slices = {mine.All(), mine.All(), foreign.All()};
  EXPECT_TRUE(Refuses(client_.socket.SendBatch(slices, SendFlags::kNone, client_.Args()),
                      ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
  const std::array<Slice, 2> urgent = {mine.All(), mine.At(0, 0)};
  EXPECT_TRUE(Refuses(client_.socket.SendBatch(urgent, SendFlags::kUrgent, client_.Args()),
                      ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(client_.socket.SendBatch({}, SendFlags::kNone, client_.Args()),
                      ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
  std::array<OpId, 1> too_few;
  EXPECT_TRUE(
      Refuses(client_.socket.SendBatch(absl::MakeConstSpan(slices).first(2), SendFlags::kNone,
                                       client_.Args(), absl::MakeSpan(too_few)),
              ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
  Settle();
  client_.Collect();
  EXPECT_TRUE(client_.events.empty()) << "a send of a batch that was refused";
  EXPECT_EQ(client_.socket.Stats().sends_copied, 0u);
}

TEST_P(BatchTest, AFullQueueTakesItsShareAndNothingIsLost) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  auto small = client_.context.CreateQueue({.depth = 5});
  ASSERT_TRUE(small.ok());
  Memory& from = Make(client_, 8 * 100);
  Memory& to = Make(server_, from.size());
  from.Fill(NewSeed());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const std::vector<Slice> slices = Cut(from, 100, 8);
  const auto first = client_.socket.SendBatch(slices, SendFlags::kNone, {.queue = *small});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, 5u);
  const auto rest = absl::MakeConstSpan(slices).subspan(5);
  EXPECT_TRUE(Refuses(client_.socket.SendBatch(rest, SendFlags::kNone, {.queue = *small}),
                      ErrorKind::kQueueFull, absl::StatusCode::kResourceExhausted));
  size_t events = 0;
  std::array<Event, 8> taken;
  const auto take = [&] {
    const auto count = small->TryDequeue(absl::MakeSpan(taken));
    if (count.ok()) events += *count;
    return count.ok();
  };
  EXPECT_TRUE(Pump([&] { return take() && events == 5; }));
  const auto second = client_.socket.SendBatch(rest, SendFlags::kNone, {.queue = *small});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, 3u);
  EndWell(server_, receive, from.size());
  EXPECT_TRUE(Pump([&] { return take() && events == 8; }));
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

TEST_P(BatchTest, OnAConnectionThatHasEndedItSaysWhy) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const std::vector<Slice> slices = Cut(Make(client_, 100), 10, 10);
  const OpId pending = client_.Recv(Make(client_, 10).All());
  server_.socket = {};
  EXPECT_EQ(End(client_, pending).kind, ErrorKind::kPeerReset);
  EXPECT_TRUE(Refuses(client_.socket.SendBatch(slices, SendFlags::kNone, client_.Args()),
                      ErrorKind::kPeerReset, absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace esdp::contract
