#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <ratio>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// A program that knows std::span and std::chrono needs none of Abseil's spans and few of its times.

namespace esdp::contract {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class StandardTypesTest : public PairTest {
 protected:
  // The virtual clock stands still meanwhile, the wall clock does not.
  template <typename Duration>
  void ExpectAfter(Duration wait, absl::Duration same) {
    const absl::Time before = client_.context.Now();
    const absl::Time after = client_.context.After(wait);
    EXPECT_GE(after, before + same);
    EXPECT_LE(after, client_.context.Now() + same);
  }
  void ConnectWithQueue() {
    ASSERT_NO_FATAL_FAILURE(Connect());
    absl::StatusOr<EventQueue> created = server_.context.CreateQueue({});
    ASSERT_TRUE(created.ok()) << created.status();
    queue_ = *std::move(created);
  }
  // Taken from it in the types that are tested.
  Event FromQueue() {
    EXPECT_TRUE(Pump([&] { return queue_.Stats().waiting == 1; }));
    std::array<Event, 1> out;
    const absl::Time deadline = server_.context.After(seconds(20));
    EXPECT_EQ(*queue_.Dequeue(std::span(out), {.deadline = deadline}), 1u);
    return out[0];
  }

  EventQueue queue_;
};
ESDP_ON_EVERY_WORLD(StandardTypesTest);

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST_P(StandardTypesTest, ADeadlineIsADurationOfAnyUnitFromNow) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  ExpectAfter(milliseconds(1500), absl::Milliseconds(1500));
  ExpectAfter(nanoseconds(7), absl::Nanoseconds(7));
  ExpectAfter(hours(1), absl::Hours(1));
  ExpectAfter(std::chrono::days(2), absl::Hours(48));
  ExpectAfter(std::chrono::duration<double>(0.25), absl::Milliseconds(250));
  ExpectAfter(std::chrono::duration<int, std::ratio<1, 3>>(-3), -absl::Seconds(1));
  ExpectAfter(absl::Milliseconds(2), absl::Milliseconds(2));
}

TEST_P(StandardTypesTest, WhatIsLongerThanAnyTimeIsForEver) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(client_.context.After(hours::max()), absl::InfiniteFuture());
  EXPECT_EQ(client_.context.After(hours::min()), absl::InfinitePast());
  const std::chrono::duration<double> endless(std::numeric_limits<double>::infinity());
  EXPECT_EQ(client_.context.After(endless), absl::InfiniteFuture());
  EXPECT_GT(client_.context.After(nanoseconds::max()), client_.context.After(hours(24 * 365)));
  EXPECT_EQ(Context().After(seconds(1)), absl::InfinitePast());
}

TEST_P(StandardTypesTest, RegionsAndEventsGoThroughStandardSpans) {
  ASSERT_NO_FATAL_FAILURE(ConnectWithQueue());
  std::vector<std::byte> from(1000, std::byte{7});
  std::array<std::byte, 1000> to{};
  const std::span<const std::byte> readable = from;
  Region source = *client_.context.RegisterReadOnly(readable);
  Region target = *server_.context.Register(std::span(to));
  Region dynamic = *server_.context.Register(std::span<std::byte>(from), {.local_write = false});
  EXPECT_EQ(target.info().length, 1000u);
  EXPECT_FALSE(dynamic.info().local_write);
  const std::array<Slice, 2> pieces = {*source.slice(0, 300), *source.slice(300, 700)};
  const std::array<Slice, 2> places = {*target.slice(0, 999), *target.slice(999, 1)};
  ASSERT_TRUE(server_.socket.RecvV(std::span(places), RecvFlags::kWaitAll, {queue_}).ok());
  EndWell(
      client_,
      client_.Accepted(client_.socket.SendV(std::span(pieces), SendFlags::kNone, client_.Args())),
      1000);
  EXPECT_EQ(FromQueue().bytes, 1000u);
  EXPECT_TRUE(SameBytes(from, to));
  std::vector<Event> events(4);
  EXPECT_EQ(*queue_.TryDequeue(std::span(events)), 0u);
}

TEST_P(StandardTypesTest, CallsThatCopyTakeStandardSpans) {
  ASSERT_NO_FATAL_FAILURE(ConnectWithQueue());
  std::array<std::byte, 5> to{};
  ASSERT_TRUE(server_.socket.RecvCopy(std::span(to), RecvFlags::kWaitAll, {queue_}).ok());
  EndWell(
      client_,
      client_.Accepted(client_.socket.SendCopy(BytesOf("hello"), SendFlags::kNone, client_.Args())),
      5);
  EXPECT_TRUE(FromQueue().ok());
  EXPECT_TRUE(SameBytes(BytesOf("hello"), to));
}

TEST_P(StandardTypesTest, ADurationFromNowIsTheDeadlineOfAReceive) {
  ASSERT_NO_FATAL_FAILURE(ConnectWithQueue());
  std::array<std::byte, 5> to{};
  const OpArgs args = {.queue = queue_, .deadline = server_.context.After(milliseconds(10))};
  ASSERT_TRUE(server_.socket.RecvCopy(std::span(to), RecvFlags::kNone, args).ok());
  EXPECT_EQ(FromQueue().kind, ErrorKind::kDeadlineExceeded);
}

// Before there were standard spans, braces were an empty one of Abseil's.
TEST_P(StandardTypesTest, BracesAreStillAnEmptySpan) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(*client_.queue.TryDequeue({}), 0u);
  EXPECT_EQ(KindOf(client_.context.Register({}).status()), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace esdp::contract
