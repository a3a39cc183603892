#include <algorithm>
#include <array>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "impl/base/random.h"
#include "tests/sockets/harness.h"

// That the bytes are the same: of any size, posted in any pieces, by any path, both ways at once.

namespace esdp::contract {
namespace {

// One direction of a stream: a source cut into sends, a sink cut into receives, at different
// places.
struct Flow {
  Side* from;
  Side* to;
  Memory* source;
  Memory* sink;
  std::vector<uint64_t> sends;
  std::vector<uint64_t> receives;
  size_t sent = 0, received = 0;          // operations posted
  uint64_t sent_to = 0, received_to = 0;  // bytes posted
};

class StreamTest : public PairTest {
 protected:
  static std::vector<uint64_t> Cut(Random& random, uint64_t total, uint64_t most) {
    std::vector<uint64_t> sizes;
    while (total > 0) {
      // Small ones are as likely as large ones.
      const uint64_t limit = uint64_t{1} << random.Between(0, 20);
      sizes.push_back(std::min({random.Between(1, limit), most, total}));
      total -= sizes.back();
    }
    return sizes;
  }
  Flow MakeFlow(Random& random, Side& from, Side& to, uint64_t total, uint64_t most) {
    Flow flow{&from,
              &to,
              &Make(from, total),
              &Make(to, total),
              Cut(random, total, most),
              Cut(random, total, most)};
    flow.source->Fill(random.Next());
    return flow;
  }
  // Posts a few more of either kind, as if by whim.
  static void PostSome(Flow& flow, Random& random, bool any_path) {
    const auto path = [&] { return any_path ? Path(random.Below(3)) : Path::kByThreshold; };
    while (flow.sent < flow.sends.size() && flow.from->Outstanding() < 100 &&
           !random.Chance(1, 4)) {
      const uint64_t length = flow.sends[flow.sent++];
      OpArgs args = flow.from->Args();
      args.path = path();
      (void)flow.from->Send(flow.source->At(flow.sent_to, length), args);
      flow.sent_to += length;
    }
    while (flow.received < flow.receives.size() && flow.to->Outstanding() < 100 &&
           !random.Chance(1, 4)) {
      const uint64_t length = flow.receives[flow.received++];
      OpArgs args = flow.to->Args();
      args.path = path();
      (void)flow.to->Recv(flow.sink->At(flow.received_to, length), RecvFlags::kWaitAll, args);
      flow.received_to += length;
    }
  }
  void Run(std::vector<Flow>& flows, Random& random, bool any_path) {
    const auto all_posted = [](const Flow& flow) {
      return flow.sent == flow.sends.size() && flow.received == flow.receives.size();
    };
    EXPECT_TRUE(Pump(
        [&] {
          for (Flow& flow : flows) PostSome(flow, random, any_path);
          return std::all_of(flows.begin(), flows.end(), all_posted) &&
                 client_.Outstanding() + server_.Outstanding() == 0;
        },
        absl::Seconds(60)));
    for (Side* side : {&client_, &server_}) {
      for (const Event& event : side->events) ASSERT_TRUE(event.ok()) << event.status();
    }
    for (const Flow& flow : flows) EXPECT_TRUE(SameBytes(flow.source->bytes, flow.sink->bytes));
  }
};
ESDP_ON_EVERY_WORLD(StreamTest);

TEST_P(StreamTest, RandomSizesArriveExactlyWhateverTheThreshold) {
  const uint64_t seed = NewSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const uint64_t threshold : {uint64_t{0}, kNever, uint64_t{64 * 1024}}) {
    SCOPED_TRACE("threshold " + std::to_string(threshold));
    const SocketOptions options{.zcopy_send_min = threshold, .zcopy_recv_min = threshold};
    ASSERT_NO_FATAL_FAILURE(Connect(options, options));
    const uint64_t total = threshold == 0 ? 2 << 20 : 8 << 20;
    std::vector<Flow> flows = {MakeFlow(random, client_, server_, total, 512 * 1024)};
    Run(flows, random, false);
  }
}

TEST_P(StreamTest, BothDirectionsAtOnceByAnyMixtureOfPaths) {
  const uint64_t seed = NewSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::vector<Flow> flows = {MakeFlow(random, client_, server_, 4 << 20, 300'000),
                             MakeFlow(random, server_, client_, 4 << 20, 300'000)};
  Run(flows, random, true);
}

TEST_P(StreamTest, SmallBuffersCarryTheSameBytes) {
  const uint64_t seed = NewSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const SocketOptions least{
      .receive_buffers = 3, .receive_buffer_bytes = 1024, .send_buffers = 1, .coalesce_max = 0};
  ASSERT_NO_FATAL_FAILURE(Connect(least, least));
  std::vector<Flow> flows = {MakeFlow(random, client_, server_, 1 << 20, 100'000),
                             MakeFlow(random, server_, client_, 1 << 20, 100'000)};
  Run(flows, random, true);
}

TEST_P(StreamTest, UnequalOptionsOfTheTwoSidesAgree) {
  const uint64_t seed = NewSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  ASSERT_NO_FATAL_FAILURE(
      Connect({.zcopy_send_min = 0, .receive_buffers = 1024, .receive_buffer_bytes = 1024},
              {.zcopy_send_min = kNever, .receive_buffers = 3, .receive_buffer_bytes = 1 << 20}));
  std::vector<Flow> flows = {MakeFlow(random, client_, server_, 1 << 20, 200'000),
                             MakeFlow(random, server_, client_, 1 << 20, 200'000)};
  Run(flows, random, false);
}

TEST_P(StreamTest, ManyOperationsMayBeOutstandingOnOneSocket) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  constexpr size_t kCount = 500;
  Memory& from = Make(client_, kCount * 100);
  Memory& to = Make(server_, kCount * 100);
  from.Fill(NewSeed());
  std::vector<OpId> receives;
  std::vector<OpId> sends;
  for (size_t i = 0; i < kCount; ++i) {
    receives.push_back(server_.Recv(to.At(i * 100, 100), RecvFlags::kWaitAll));
  }
  for (size_t i = 0; i < kCount; ++i) sends.push_back(client_.Send(from.At(i * 100, 100)));
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() + server_.Outstanding() == 0; }));
  ASSERT_EQ(server_.events.size(), kCount);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(server_.events[i].op, receives[i]);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(client_.events[i].op, sends[i]);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

TEST_P(StreamTest, GathersFromAndScattersIntoManyPlaces) {
  const uint64_t seed = NewSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const Path path : {Path::kCopy, Path::kByThreshold, Path::kZeroCopy}) {
    constexpr uint64_t kBytes = 600'000;
    Memory& from = Make(client_, kBytes);
    Memory& to = Make(server_, kBytes);
    from.Fill(random.Next());
    const auto slices = [&](Memory& memory) {
      std::vector<Slice> list;
      uint64_t at = 0;
      for (const uint64_t size : Cut(random, kBytes, 200'000)) {
        list.push_back(memory.At(at, size));
        at += size;
        if (random.Chance(1, 4)) list.push_back(memory.At(at, 0));
      }
      return list;
    };
    OpArgs sending = client_.Args();
    sending.path = path;
    const OpId receive =
        server_.Accepted(server_.socket.RecvV(slices(to), RecvFlags::kWaitAll, server_.Args()));
    const OpId send =
        client_.Accepted(client_.socket.SendV(slices(from), SendFlags::kNone, sending));
    EndWell(client_, send, kBytes);
    EndWell(server_, receive, kBytes);
    EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  }
}

TEST_P(StreamTest, SlicesOfOneListMayBelongToSeveralRegions) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::vector<Slice> sources;
  std::vector<Slice> sinks;
  std::vector<std::byte> expected;
  std::vector<Memory*> sink_memories;
  for (const uint64_t size : {10u, 100'000u, 3'000u}) {
    Memory& from = Make(client_, size);
    from.Fill(size);
    sources.push_back(from.All());
    expected.insert(expected.end(), from.bytes.begin(), from.bytes.end());
    sink_memories.push_back(&Make(server_, size));
    sinks.push_back(sink_memories.back()->All());
  }
  const OpId receive =
      server_.Accepted(server_.socket.RecvV(sinks, RecvFlags::kWaitAll, server_.Args()));
  (void)client_.Accepted(client_.socket.SendV(sources, SendFlags::kNone, client_.Args()));
  EndWell(server_, receive, expected.size());
  std::vector<std::byte> got;
  for (const Memory* memory : sink_memories) {
    got.insert(got.end(), memory->bytes.begin(), memory->bytes.end());
  }
  EXPECT_TRUE(SameBytes(expected, got));
}

TEST_P(StreamTest, SendCopyTakesTheBytesBeforeItReturns) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const size_t size : {size_t{1}, size_t{3'000}, size_t{200'000}}) {
    std::vector<std::byte> text(size, std::byte{7});
    const OpId send =
        client_.Accepted(client_.socket.SendCopy(text, SendFlags::kNone, client_.Args()));
    std::fill(text.begin(), text.end(), std::byte{0});
    Memory& to = Make(server_, size);
    EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), size);
    EndWell(client_, send, size);
    EXPECT_TRUE(SameBytes(std::vector<std::byte>(size, std::byte{7}), to.bytes));
  }
  EXPECT_EQ(client_.context.Stats().bounce_bytes, 0u) << "the pool is empty again";
}

TEST_P(StreamTest, ReceivesIntoUnregisteredMemoryThatIdleLeaveTheBouncePoolToSends) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::vector<std::vector<std::byte>> idle(32, std::vector<std::byte>(64 * 1024));
  std::vector<OpId> receives;
  for (auto& bytes : idle) {
    receives.push_back(server_.Accepted(
        server_.socket.RecvCopy(absl::MakeSpan(bytes), RecvFlags::kWaitAll, server_.Args())));
  }
  EXPECT_EQ(server_.context.Stats().bounce_bytes, 0u);
  std::vector<std::byte> all(1 << 20, std::byte{7});
  Memory& to = Make(client_, all.size());
  const OpId sent =
      server_.Accepted(server_.socket.SendCopy(all, SendFlags::kNone, server_.Args()));
  EndWell(client_, client_.Recv(to.All(), RecvFlags::kWaitAll), all.size());
  EndWell(server_, sent, all.size());
  EXPECT_TRUE(SameBytes(all, to.bytes));
  for (size_t i = 0; i < 2; ++i) {
    EndWell(client_, client_.Send(to.All()), all.size());
  }
  for (const OpId receive : receives) EndWell(server_, receive, 64 * 1024);
  for (const auto& bytes : idle)
    EXPECT_TRUE(SameBytes(absl::MakeSpan(all).first(64 * 1024), bytes));
}

TEST_P(StreamTest, RecvCopyFillsUnregisteredMemory) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const size_t size : {size_t{1}, size_t{3'000}, size_t{200'000}}) {
    Memory& from = Make(client_, size);
    from.Fill(size);
    std::vector<std::byte> got(size);
    const OpId receive = server_.Accepted(
        server_.socket.RecvCopy(absl::MakeSpan(got), RecvFlags::kWaitAll, server_.Args()));
    (void)client_.Send(from.All());
    EndWell(server_, receive, size);
    EXPECT_TRUE(SameBytes(from.bytes, got));
  }
  EXPECT_EQ(server_.context.Stats().bounce_bytes, 0u);
}

TEST_P(StreamTest, ABouncePoolWithoutRoomRefusesAndFreesItselfByEvents) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const std::vector<std::byte> text(400'000);
  std::vector<OpId> sends;
  absl::StatusOr<OpId> refused = OpId::kNone;
  for (int i = 0; i < 100 && refused.ok(); ++i) {
    refused = client_.socket.SendCopy(text, SendFlags::kNone, client_.Args());
    if (refused.ok()) sends.push_back(client_.Accepted(refused));
  }
  EXPECT_TRUE(Refuses(refused, ErrorKind::kSocketWindow, absl::StatusCode::kResourceExhausted));
  Memory& to = Make(server_, 400'000);
  for (const OpId op : sends) {
    EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), 400'000);
    EndWell(client_, op, 400'000);
  }
  const OpId again =
      client_.Accepted(client_.socket.SendCopy(text, SendFlags::kNone, client_.Args()));
  (void)server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, again, 400'000);
}

TEST_P(StreamTest, ASocketHasRoomForCopiesHoweverMuchThosePeersHoldThatTakeNothing) {
  const std::vector<std::byte> text(64 * 1024);
  std::deque<Socket> standing;
  const auto stand = [&] {
    standing.push_back(std::move(client_.socket));
    standing.push_back(std::move(server_.socket));
  };
  ASSERT_NO_FATAL_FAILURE(Connect());
  absl::StatusOr<OpId> refused = OpId::kNone;
  for (int i = 0; i < 100 && refused.ok(); ++i) {
    refused = client_.socket.SendCopy(text, SendFlags::kNone, client_.Args());
    if (refused.ok()) client_.Accepted(refused);
  }
  EXPECT_TRUE(Refuses(refused, ErrorKind::kSocketWindow, absl::StatusCode::kResourceExhausted));
  EXPECT_NE(refused.status().message().find("this socket holds"), std::string_view::npos);
  stand();
  for (int i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    client_.Accepted(client_.socket.SendCopy(text, SendFlags::kNone, client_.Args()));
    stand();
  }
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& to = Make(server_, text.size());
  const OpId sent =
      client_.Accepted(client_.socket.SendCopy(text, SendFlags::kNone, client_.Args()));
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), text.size());
  EndWell(client_, sent, text.size());
}

TEST_P(StreamTest, OperationsOfNoBytesEndWellAndMoveNothing) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 10);
  Memory& to = Make(server_, 10);
  from.Fill(1);
  EndWell(client_, client_.Send(from.At(10, 0)), 0);
  EndWell(client_, client_.Accepted(client_.socket.SendCopy({}, SendFlags::kNone, client_.Args())),
          0);
  OpArgs zero_copy = client_.Args();
  zero_copy.path = Path::kZeroCopy;
  EndWell(client_, client_.Send(from.At(0, 0), zero_copy), 0);
  const OpId none = server_.Recv(to.At(3, 0));
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  (void)client_.Send(from.All());
  EndWell(server_, receive, 10);
  const Event empty = End(server_, none);
  EXPECT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty.bytes, 0u);
  EXPECT_FALSE(empty.eof()) << "nothing has ended";
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

TEST_P(StreamTest, DeliveredComesOnlyWhenThePeersProviderHasTheBytes) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 200'000);
  Memory& to = Make(server_, 200'000);
  OpArgs args = client_.Args();
  args.complete_at = CompleteAt::kDelivered;
  const absl::Time begun = client_.context.Now();
  const OpId small = client_.Send(from.At(0, 100), args);
  EndWell(client_, small, 100);
  EXPECT_LT(client_.context.Now() - begun, absl::Seconds(10)) << "nobody has to receive for it";
  EndWell(server_, server_.Recv(to.At(0, 100), RecvFlags::kWaitAll), 100);
  const OpId large = client_.Send(from.All(), args);
  Settle();
  EXPECT_EQ(client_.Find(large), nullptr) << "the peer has not read it";
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), 200'000);
  EndWell(client_, large, 200'000);
}

}  // namespace
}  // namespace esdp::contract
