#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Wrong arguments: each has a status whose text says what to do, and changes nothing.

namespace esdp::contract {
namespace {

using absl::StatusCode;

constexpr SendFlags kSend = SendFlags::kNone;
constexpr RecvFlags kRecv = RecvFlags::kNone;

class BadInputTest : public PairTest {
 protected:
  // Nothing was lost by what has been refused.
  void ExpectStillWorks() {
    Memory& from = Make(client_, 100'000);
    from.Fill(5);
    Carry(client_, from, server_, Make(server_, 100'000), 100'000);
  }
  static std::string TextOf(const absl::Status& status) {
    return {status.message().data(), status.message().size()};
  }
};
ESDP_ON_EVERY_WORLD(BadInputTest);

TEST_P(BadInputTest, EmptyHandlesAnswerNotFound) {
  const auto kind = ErrorKind::kBadHandle;
  const auto code = StatusCode::kNotFound;
  Memory& memory = Make(client_, 10);
  Socket socket;
  const OpArgs args = client_.Args();
  EXPECT_FALSE(socket.valid());
  EXPECT_TRUE(Refuses(socket.Bind(Address()), kind, code));
  EXPECT_TRUE(Refuses(socket.Listen(1), kind, code));
  EXPECT_TRUE(Refuses(socket.Connect(Address(), args), kind, code));
  EXPECT_TRUE(Refuses(socket.Accept(1, args), kind, code));
  EXPECT_TRUE(Refuses(socket.Send(memory.All(), kSend, args), kind, code));
  EXPECT_TRUE(Refuses(socket.SendV({}, kSend, args), kind, code));
  EXPECT_TRUE(Refuses(socket.SendCopy(memory.bytes, kSend, args), kind, code));
  EXPECT_TRUE(Refuses(socket.Recv(memory.All(), kRecv, args), kind, code));
  EXPECT_TRUE(Refuses(socket.RecvV({}, kRecv, args), kind, code));
  EXPECT_TRUE(Refuses(socket.RecvCopy(absl::MakeSpan(memory.bytes), kRecv, args), kind, code));
  EXPECT_TRUE(Refuses(socket.Shutdown(args), kind, code));
  EXPECT_TRUE(Refuses(socket.Close(CloseMode::kAbort, args), kind, code));
  EXPECT_TRUE(Refuses(socket.Cancel(OpId{1}), kind, code));
  EXPECT_TRUE(Refuses(socket.CancelAll(Direction::kBoth), kind, code));
  EXPECT_TRUE(Refuses(socket.SetOption({OptionName::kLinger, absl::Seconds(1)}), kind, code));
  EXPECT_TRUE(Refuses(socket.GetOption(OptionName::kLinger), kind, code));
  EXPECT_EQ(socket.id(), SocketId::kNone);
  EXPECT_EQ(socket.Stats().messages_sent, 0u);
}

TEST_P(BadInputTest, EmptyContextsQueuesAndRegionsAnswerToo) {
  const auto kind = ErrorKind::kBadHandle;
  const auto code = StatusCode::kNotFound;
  std::vector<std::byte> bytes(10);
  Context context;
  EXPECT_TRUE(Refuses(context.Register(absl::MakeSpan(bytes)), kind, code));
  EXPECT_TRUE(Refuses(context.RegisterReadOnly(bytes), kind, code));
  EXPECT_TRUE(Refuses(context.Allocate(10), kind, code));
  EXPECT_TRUE(Refuses(context.CreateQueue({}), kind, code));
  EXPECT_TRUE(Refuses(context.CreateSocket(Family::kIpv4), kind, code));
  EXPECT_TRUE(Refuses(context.TakeAccepted(SocketId{1}), kind, code));
  EXPECT_TRUE(Refuses(context.Progress(), kind, code));
  EXPECT_TRUE(Refuses(context.Close(absl::InfiniteFuture()), kind, code));
  EXPECT_EQ(context.Stats().sockets, 0u);
  EventQueue queue;
  std::array<Event, 1> out;
  EXPECT_TRUE(Refuses(queue.Dequeue(absl::MakeSpan(out)), kind, code));
  EXPECT_TRUE(Refuses(queue.TryDequeue(absl::MakeSpan(out)), kind, code));
  EXPECT_TRUE(Refuses(queue.Resize(5), kind, code));
  EXPECT_TRUE(Refuses(queue.Close(), kind, code));
  EXPECT_EQ(queue.Stats().depth, 0u);
  queue.Wake();
  Region region;
  EXPECT_FALSE(region.valid());
  EXPECT_EQ(region.slice().length(), 0u);
  EXPECT_FALSE(region.slice(0, 1).ok());
  EXPECT_EQ(region.info().length, 0u);
  EXPECT_FALSE(region.Close().ok());
}

TEST_P(BadInputTest, AnEmptySliceIsRefusedAtPost) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const auto kind = ErrorKind::kInvalidArgument;
  const auto code = StatusCode::kInvalidArgument;
  Memory& memory = Make(client_, 10);
  const std::array<Slice, 2> half_empty = {memory.All(), Slice()};
  Socket& socket = client_.socket;
  EXPECT_TRUE(Refuses(socket.Send(Slice(), kSend, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.Recv(Slice(), kRecv, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.SendV(half_empty, kSend, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.RecvV(half_empty, kRecv, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.Send(Region().slice(), kSend, client_.Args()), kind, code));
  EXPECT_EQ(memory.region.info().operations, 0u);
  EXPECT_EQ(client_.queue.Stats().reserved, 0u);
  ExpectStillWorks();
}

TEST_P(BadInputTest, SlicesOutsideTheRegionAreOutOfRange) {
  Memory& memory = Make(client_, 1000);
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const std::vector<std::pair<uint64_t, uint64_t>> wrong = {
      {0, 1001},  {1000, 1},      {1001, 0},  {999, 2},        {500, kMost},
      {kMost, 1}, {kMost, kMost}, {1, kMost}, {kMost - 5, 10}, {0, kMost}};
  for (const auto& [offset, length] : wrong) {
    EXPECT_TRUE(
        Refuses(memory.region.slice(offset, length), ErrorKind::kBadRange, StatusCode::kOutOfRange))
        << offset << ", " << length;
  }
  EXPECT_EQ(memory.At(1000, 0).length(), 0u);
  EXPECT_EQ(memory.At(0, 1000).length(), 1000u);
  EXPECT_EQ(memory.At(999, 1).offset(), 999u);
}

#ifndef NDEBUG
TEST_P(BadInputTest, ASecondReceiveIntoTheSameBytesIsRefusedInADebugBuild) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const auto kind = ErrorKind::kInvalidArgument;
  const auto code = StatusCode::kInvalidArgument;
  Memory& to = Make(server_, 1000);
  const OpId first = server_.Recv(to.At(100, 100));
  EXPECT_TRUE(Refuses(server_.socket.Recv(to.At(199, 10), kRecv, server_.Args()), kind, code));
  const std::array<Slice, 2> twice = {to.At(300, 10), to.At(305, 10)};
  EXPECT_TRUE(Refuses(server_.socket.RecvV(twice, kRecv, server_.Args()), kind, code));
  Region other = *server_.context.Register(absl::MakeSpan(to.bytes));
  const Slice same = *other.slice(150, 1);
  EXPECT_TRUE(Refuses(server_.socket.Recv(same, kRecv, server_.Args()), kind, code));
  const auto copied = absl::MakeSpan(to.bytes).subspan(150, 1);
  EXPECT_TRUE(Refuses(server_.socket.RecvCopy(copied, kRecv, server_.Args()), kind, code));
  EXPECT_EQ(server_.context.Stats().operations, 1u);
  ASSERT_TRUE(server_.socket.Cancel(first).ok());
  EXPECT_EQ(End(server_, first).kind, ErrorKind::kCancelled);
  const OpId again = server_.Recv(to.At(199, 10));
  ASSERT_TRUE(server_.socket.Cancel(again).ok());
  EXPECT_EQ(End(server_, again).kind, ErrorKind::kCancelled);
  ExpectStillWorks();
}
#endif

TEST_P(BadInputTest, AQueueOrRegionOfAnotherContextIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& mine = Make(client_, 10);
  Memory& theirs = Make(server_, 10);
  EXPECT_TRUE(Refuses(client_.socket.Send(mine.All(), kSend, server_.Args()),
                      ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(client_.socket.Close(CloseMode::kAbort, server_.Args()),
                      ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(client_.socket.Send(theirs.All(), kSend, client_.Args()),
                      ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  EventQueue none;
  EXPECT_TRUE(Refuses(client_.socket.Send(mine.All(), kSend, {.queue = none}),
                      ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  ExpectStillWorks();
}

TEST_P(BadInputTest, AClosedRegionGivesNoSlicesAndOldOnesAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& memory = Make(client_, 10);
  const Slice old = memory.All();
  EXPECT_TRUE(memory.region.Close().ok());
  EXPECT_EQ(memory.region.slice(0, 1).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(client_.socket.Send(old, kSend, client_.Args()).ok());
  EXPECT_FALSE(client_.socket.Recv(old, kRecv, client_.Args()).ok());
  EXPECT_FALSE(memory.region.Close().ok());
  ExpectStillWorks();
}

TEST_P(BadInputTest, ASliceOfARegionThatIsGoneIsRefusedAlsoWhereAnotherHasItsPlace) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::vector<std::byte> bytes(200'000);
  const auto region_of_all = [&] { return *client_.context.Register(absl::MakeSpan(bytes)); };
  Slice old = region_of_all().slice();
  Slice part = *region_of_all().slice(10, 100);
  const Region other = region_of_all();
  for (const Slice& slice : {old, part}) {
    const auto sent = client_.socket.Send(slice, kSend, client_.Args());
    EXPECT_TRUE(Refuses(sent, ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
    EXPECT_NE(TextOf(sent.status()).find("is gone"), std::string::npos) << sent.status();
    EXPECT_TRUE(Refuses(client_.socket.Recv(slice, kRecv, client_.Args()),
                        ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  }
  ExpectStillWorks();
}

TEST_P(BadInputTest, ARegionIsThereAsLongAsAnOperationOnItIs) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::vector<std::byte> bytes(100);
  Memory& from = Make(client_, 200);
  Region region = *server_.context.Register(absl::MakeSpan(bytes));
  const Slice half = *region.slice(0, 50);
  const Slice other = *region.slice(50, 50);
  const OpId first = server_.Recv(half, RecvFlags::kWaitAll);
  region = Region();
  const OpId second = server_.Recv(other, RecvFlags::kWaitAll);
  client_.Send(from.At(0, 100));
  EndWell(server_, first, 50);
  EndWell(server_, second, 50);
  EXPECT_TRUE(Refuses(server_.socket.Recv(half, kRecv, server_.Args()), ErrorKind::kInvalidArgument,
                      StatusCode::kInvalidArgument));
}

TEST_P(BadInputTest, MemoryThatIsNoneIsNotRegistered) {
  EXPECT_TRUE(Refuses(client_.context.Register({}), ErrorKind::kInvalidArgument,
                      StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(client_.context.RegisterReadOnly({}), ErrorKind::kInvalidArgument,
                      StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(client_.context.Allocate(0), ErrorKind::kInvalidArgument,
                      StatusCode::kInvalidArgument));
  const auto too_much = client_.context.Allocate(size_t{1} << 60);
  EXPECT_TRUE(Refuses(too_much, ErrorKind::kMemory, StatusCode::kResourceExhausted));
}

TEST_P(BadInputTest, AllocatedMemoryIsPageAlignedAndZero) {
  auto region = client_.context.Allocate(10'000);
  ASSERT_TRUE(region.ok()) << region.status();
  const RegionInfo info = region->info();
  EXPECT_GE(info.length, 10'000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(info.base) % 4096, 0u);
  EXPECT_TRUE(std::all_of(info.base, info.base + info.length,
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

// The flags of the mapping around `address`, as the system shows them: "hg" of one that asks for
// huge pages.
std::string FlagsOfMappingAround(const std::byte* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream mappings("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(mappings, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    if (std::istringstream(line) >> std::hex >> begin >> dash >> end && dash == '-') {
      found = begin <= wanted && wanted < end;
    }
    if (found && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

TEST_P(BadInputTest, AllocatedMemoryOfMegabytesAsksForHugePagesAndCanBeUsedToItsLastByte) {
  constexpr size_t kHugePage = size_t{2} << 20;
  auto region = client_.context.Allocate(kHugePage + 1, {.shareable = Shareable::kNever});
  ASSERT_TRUE(region.ok()) << region.status();
  const RegionInfo info = region->info();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(info.base) % kHugePage, 0u);
  if (std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    EXPECT_NE(FlagsOfMappingAround(info.base).find(" hg "), std::string::npos);
  }
  EXPECT_TRUE(std::all_of(info.base, info.base + info.length,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  std::fill_n(info.base, info.length, std::byte{1});
  EXPECT_TRUE(region->Close().ok());
}

TEST_P(BadInputTest, CallsOutOfTurnAreRefusedAsWrongState) {
  const auto kind = ErrorKind::kWrongState;
  const auto code = StatusCode::kFailedPrecondition;
  Memory& memory = Make(client_, 10);
  Socket fresh = *client_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(Refuses(fresh.Send(memory.All(), kSend, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(fresh.Recv(memory.All(), kRecv, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(fresh.Shutdown(client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(fresh.Accept(1, client_.Args()), kind, code));
  const Address address = Listen();
  EXPECT_TRUE(Refuses(listener_.Listen(1), kind, code)) << "listening twice";
  EXPECT_TRUE(Refuses(listener_.Bind(address), kind, code));
  EXPECT_TRUE(Refuses(listener_.Connect(address, server_.Args()), kind, code));
  Memory& theirs = Make(server_, 10);
  EXPECT_TRUE(Refuses(listener_.Send(theirs.All(), kSend, server_.Args()), kind, code));
  ASSERT_NO_FATAL_FAILURE(ConnectTo(address));
  EXPECT_TRUE(Refuses(client_.socket.Connect(address, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(client_.socket.Listen(1), kind, code));
  EXPECT_TRUE(Refuses(client_.socket.Accept(1, client_.Args()), kind, code));
  ExpectStillWorks();
}

TEST_P(BadInputTest, WrongNumbersAreNamed) {
  const auto kind = ErrorKind::kInvalidArgument;
  const auto code = StatusCode::kInvalidArgument;
  Socket socket = *server_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(Refuses(socket.Bind(Address::Loopback(Family::kIpv6, 0)), kind, code));
  EXPECT_TRUE(Refuses(socket.Listen(-1), kind, code));
  (void)Listen();
  EXPECT_TRUE(Refuses(listener_.Accept(-1, server_.Args()), kind, code));
  EXPECT_TRUE(
      Refuses(socket.Connect(Address::Loopback(Family::kIpv6, 5), server_.Args()), kind, code));
  EXPECT_TRUE(
      Refuses(socket.Connect(Address::Loopback(Family::kIpv4, 0), server_.Args()), kind, code));
  EXPECT_TRUE(Refuses(server_.context.TakeAccepted(SocketId{12345}), ErrorKind::kBadHandle,
                      StatusCode::kNotFound));
}

TEST_P(BadInputTest, OptionsOutsideTheirRangeAreRefusedWithTheRange) {
  struct Wrong {
    OptionName name;
    uint64_t value;
    std::string bound;  // in the text
  };
  const std::vector<Wrong> all = {{OptionName::kReceiveBuffers, 2, "3"},
                                  {OptionName::kReceiveBuffers, 1025, "1024"},
                                  {OptionName::kReceiveBufferBytes, 1023, "1024"},
                                  {OptionName::kReceiveBufferBytes, (1 << 20) + 1, "1048576"},
                                  {OptionName::kSendBuffers, 0, "1"},
                                  {OptionName::kSendBuffers, 65, "64"},
                                  {OptionName::kPeerReceiveBufferBytes, 1, "1024 to 1048576"},
                                  {OptionName::kPeerReceiveBufferBytes, 1023, "or 0"},
                                  {OptionName::kCoalesceMax, 16 * 1024 + 1, "16384"},
                                  {OptionName::kDeadlinePolicy, 2, "1"}};
  Socket socket = *client_.context.CreateSocket(Family::kIpv4);
  for (const Wrong& wrong : all) {
    const auto before = socket.GetOption(wrong.name);
    ASSERT_TRUE(before.ok()) << before.status();
    const absl::Status status = socket.SetOption({wrong.name, wrong.value});
    EXPECT_TRUE(Refuses(status, ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
    EXPECT_NE(TextOf(status).find(wrong.bound), std::string::npos) << status;
    EXPECT_EQ(socket.GetOption(wrong.name)->value, before->value);
  }
  const std::vector<SocketOptions> structures = {{.receive_buffers = 2},
                                                 {.receive_buffers = 1025},
                                                 {.receive_buffer_bytes = 1023},
                                                 {.send_buffers = 0},
                                                 {.send_buffers = 65},
                                                 {.linger = -absl::Seconds(1)},
                                                 {.cancel_grace = absl::ZeroDuration()},
                                                 {.receive_buffer_bytes = (1 << 20) + 1},
                                                 {.peer_receive_buffer_bytes = 1023},
                                                 {.coalesce_max = 16 * 1024 + 1}};
  for (const SocketOptions& options : structures) {
    const auto made = client_.context.CreateSocket(Family::kIpv4, SocketType::kStream, options);
    EXPECT_TRUE(Refuses(made, ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  }
}

TEST_P(BadInputTest, OptionsHaveTheirTypeAndTheirTime) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_TRUE(Refuses(client_.socket.SetOption({OptionName::kLinger, uint64_t{5}}),
                      ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(client_.socket.SetOption({OptionName::kZcopySendMin, absl::Seconds(1)}),
                      ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  for (const OptionName name : {OptionName::kReceiveBuffers, OptionName::kSendBuffers}) {
    EXPECT_EQ(client_.socket.SetOption({name, uint64_t{4}}).code(),
              StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(client_.socket.SetOption({OptionName::kZcopyRecvMin, uint64_t{0}}).ok());
  Socket fresh = *client_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(fresh.SetOption({OptionName::kKeepAliveIdle, absl::Seconds(3)}).ok());
  EXPECT_EQ(std::get<absl::Duration>(fresh.GetOption(OptionName::kKeepAliveIdle)->value),
            absl::Seconds(3));
}

TEST_P(BadInputTest, AKeepAliveTimeIsToldAsItWasRounded) {
  const auto idle = [](const Socket& socket) {
    return std::get<absl::Duration>(socket.GetOption(OptionName::kKeepAliveIdle)->value);
  };
  const SocketOptions options{.keep_alive_idle = absl::Milliseconds(1)};
  Socket socket = *client_.context.CreateSocket(Family::kIpv4, SocketType::kStream, options);
  EXPECT_EQ(idle(socket), absl::Seconds(1));
  EXPECT_TRUE(socket.SetOption({OptionName::kKeepAliveIdle, absl::Milliseconds(2001)}).ok());
  EXPECT_EQ(idle(socket), absl::Seconds(3));
  EXPECT_TRUE(socket.SetOption({OptionName::kKeepAliveIdle, absl::InfiniteDuration()}).ok());
  EXPECT_EQ(idle(socket), absl::Seconds(32767));
}

TEST_P(BadInputTest, MoreThanTheBouncePoolIsRefusedForGood) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::vector<std::byte> much((1 << 20) + 1);
  EXPECT_TRUE(Refuses(client_.socket.SendCopy(much, kSend, client_.Args()),
                      ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
  ExpectStillWorks();
}

TEST_P(BadInputTest, ProgressIsForManualContexts) {
  const auto moved = client_.context.Progress();
  if (HasThread(world())) {
    EXPECT_TRUE(Refuses(moved, ErrorKind::kWrongState, StatusCode::kFailedPrecondition));
  } else {
    EXPECT_TRUE(moved.ok()) << moved.status();
  }
}

}  // namespace
}  // namespace esdp::contract
