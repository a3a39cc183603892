// Memory that lies in files, and who may read it: over "local", and what others make of it.

#include <fstream>
#include <string>

#include "esdp/region.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

namespace esdp::contract {
namespace {

constexpr size_t kBytes = 1 << 20;

// Whether the byte lies in a file without a name.
bool LiesInFile(const std::byte* byte) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<uint64_t>(byte);
  for (std::string line; std::getline(maps, line);) {
    size_t past = 0;
    const uint64_t begin = std::stoull(line, &past, 16);
    const uint64_t end = std::stoull(line.substr(past + 1), nullptr, 16);
    if (begin <= at && at < end) return line.find("memfd:esdp") != std::string::npos;
  }
  return false;
}

struct Asked {
  Shareable shareable = Shareable::kAuto;
  size_t bytes = kBytes;
  Exposure exposure = Exposure::kPerOperation;
};

bool IsShared(Context& context, const Asked& asked) {
  const auto region = context.Allocate(
      asked.bytes, {.registration = {.exposure = asked.exposure}, .shareable = asked.shareable});
  EXPECT_TRUE(region.ok()) << region.status();
  std::byte* const base = region->info().base;
  EXPECT_EQ(base[asked.bytes - 1], std::byte{0});
  base[0] = std::byte{1};
  return LiesInFile(base);
}

TEST(ShareableTest, MemoryLiesInAFileWhereItIsWorthIt) {
  Context context = *Context::Open({.fabric = "local"});
  EXPECT_TRUE(IsShared(context, {}));
  EXPECT_TRUE(IsShared(context, {.bytes = 64 << 10}));
  EXPECT_FALSE(IsShared(context, {.bytes = (64 << 10) - 1}));
  EXPECT_TRUE(IsShared(context, {.shareable = Shareable::kAlways, .bytes = 1}));
  EXPECT_FALSE(IsShared(context, {.shareable = Shareable::kNever}));
  EXPECT_FALSE(IsShared(context, {.exposure = Exposure::kNone}));
  EXPECT_TRUE(IsShared(context, {.exposure = Exposure::kRegionKey}));
}

TEST(ShareableTest, WhereNobodyCanMakeUseOfItMemoryLiesInNoFile) {
  Context qpip = *Context::Open({.fabric = "qpip"});
  EXPECT_FALSE(IsShared(qpip, {}));
  EXPECT_TRUE(IsShared(qpip, {.shareable = Shareable::kAlways}));
  Context never = *Context::Open({.fabric = "local", .local_share = LocalShare::kNever});
  EXPECT_FALSE(IsShared(never, {}));
}

TEST(ShareableTest, OptionsThatAreNoneAreRefused) {
  const auto wrong = Context::Open({.local_share = static_cast<LocalShare>(3)});
  EXPECT_TRUE(Refuses(wrong, ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
}

class LocalShareTest : public PairTest {
 protected:
  void SetUp() override {}
  // Both sides with this option, and a megabyte from one to the other and back, out of memory that
  // was allocated.
  void CarryWith(LocalShare share) {
    for (Side* side : {&server_, &client_}) {
      ContextOptions options = OptionsOf(world());
      options.local_share = share;
      side->Open(options, 1024);
    }
    ASSERT_NO_FATAL_FAILURE(Connect());
    for (int round = 0; round < 3; ++round) {
      CarryOne(client_, server_);
      CarryOne(server_, client_);
    }
  }

  void CarryOne(Side& source, Side& sink) {
    const Region from = *source.context.Allocate(kBytes);
    const Region to = *sink.context.Allocate(kBytes);
    for (size_t i = 0; i < kBytes; ++i) {
      from.info().base[i] = static_cast<std::byte>(i * 13 + i / 255);
    }
    const OpId receive = sink.Recv(to.slice(), RecvFlags::kWaitAll);
    const OpId send = source.Send(from.slice());
    EndWell(source, send, kBytes);
    EndWell(sink, receive, kBytes);
    EXPECT_TRUE(SameBytes({from.info().base, kBytes}, {to.info().base, kBytes}));
  }
};
INSTANTIATE_TEST_SUITE_P(On, LocalShareTest,
                         ::testing::Values(World::kLocalThread, World::kLocalManual), ParamName);

TEST_P(LocalShareTest, BytesArriveWhereReadingIsProved) { CarryWith(LocalShare::kProved); }
TEST_P(LocalShareTest, BytesArriveWhereEverybodyIsTrusted) { CarryWith(LocalShare::kUser); }
TEST_P(LocalShareTest, BytesArriveWhereNobodyMayRead) { CarryWith(LocalShare::kNever); }

}  // namespace
}  // namespace esdp::contract
