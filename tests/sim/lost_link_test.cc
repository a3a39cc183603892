#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "impl/assembly/simulated_host.h"
#include "impl/fabric/sim/sim_fabric.h"
#include "tests/sim/station.h"

// Links that are lost without a word, in virtual time: both ends find out, and in time.

namespace esdp::simulation {
namespace {

using fabric::sim::Faults;

constexpr absl::Duration kIdle = absl::Seconds(2);
constexpr absl::Duration kBreakWithin = absl::Milliseconds(5);

struct End {
  std::vector<std::byte> bytes = std::vector<std::byte>(100'000);  // outlives what uses it
  Context context;
  EventQueue queue;
  Socket socket;
  Region region;
  std::vector<Event> events;

  OpArgs Args() { return {.queue = queue, .complete_at = CompleteAt::kDelivered}; }
  void Open(const std::shared_ptr<fabric::sim::World>& world) {
    context = *assembly::OpenInWorld(world, fabric::sim::DefaultSimLimits(), {});
    queue = *context.CreateQueue({});
    region = *context.Register(absl::MakeSpan(bytes));
  }
  void Collect() {
    std::array<Event, 16> some;
    const auto taken = queue.TryDequeue(absl::MakeSpan(some));
    for (size_t i = 0; i < taken.value_or(0); ++i) events.push_back(some[i]);
  }
};

// Two ends in a world where every link is lost soon after its begin.
class LostLink {
 public:
  explicit LostLink(uint64_t seed) {
    const auto within = std::chrono::nanoseconds(absl::ToInt64Nanoseconds(kBreakWithin));
    const auto world = *fabric::sim::MakeWorld(
        {.seed = seed, .faults = {.silence = Faults::kAlways, .break_within = within}});
    one.Open(world);
    two.Open(world);
  }
  // Until this end has had so many events; false when it takes too long.
  bool Run(const End& end, size_t events) {
    const absl::Time late = one.context.Now() + absl::Minutes(5);
    while (end.events.size() < events && one.context.Now() < late) {
      (void)one.context.Progress(absl::Milliseconds(1));
      (void)two.context.Progress();
      one.Collect();
      two.Collect();
    }
    return end.events.size() >= events;
  }
  void Connect() {
    SocketOptions options;
    options.keep_alive_idle = kIdle;
    Socket listener = *two.context.CreateSocket(Family::kIpv4, SocketType::kStream, options);
    ASSERT_TRUE(listener.Bind(Address::Loopback(Family::kIpv4, 0)).ok());
    ASSERT_TRUE(listener.Listen(1).ok());
    ASSERT_TRUE(listener.Accept(1, two.Args()).ok());
    one.socket = *one.context.CreateSocket(Family::kIpv4, SocketType::kStream, options);
    ASSERT_TRUE(one.socket.Connect(listener.local(), one.Args()).ok());
    ASSERT_TRUE(Run(one, 1) && Run(two, 1));
    two.socket = *two.context.TakeAccepted(two.events[0].accepted);
    one.events.clear();
    two.events.clear();
  }

  End one, two;
};

// Nobody has memory for all of what the other sends, so something is always pending.
void Post(End& end) {
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(end.socket.Send(end.region.slice(), SendFlags::kNone, end.Args()).ok());
  }
  ASSERT_TRUE(end.socket.Recv(*end.region.slice(0, 50'000), RecvFlags::kNone, end.Args()).ok());
}

TEST(LostLinkTest, EveryOperationOfBothEndsIsSilencedWithinFourTimesTheIdleTime) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    LostLink link(seed);
    ASSERT_NO_FATAL_FAILURE(link.Connect());
    const absl::Time begun = link.one.context.Now();
    for (End* end : {&link.one, &link.two}) ASSERT_NO_FATAL_FAILURE(Post(*end));
    for (End* end : {&link.one, &link.two}) {
      ASSERT_TRUE(link.Run(*end, 9));
      EXPECT_LE(link.one.context.Now() - begun, 4 * kIdle + kBreakWithin + absl::Milliseconds(2));
      size_t silenced = 0;
      for (const Event& event : end->events) {
        silenced += event.kind == ErrorKind::kPeerSilent ? 1u : 0u;
        EXPECT_TRUE(event.ok() || event.kind == ErrorKind::kPeerSilent) << event.status();
      }
      EXPECT_GT(silenced, 0u);
    }
  }
}

}  // namespace
}  // namespace esdp::simulation
