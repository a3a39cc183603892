#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "esdp/context.h"
#include "gtest/gtest.h"

// A process may fork at any moment: the child has none of the threads that were at work in the
// library just then, and goes on without what they had taken.

namespace esdp::contract {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

// What `body` answers in a child, which may take ten seconds; -1 where it is ended by a signal.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int OpensAContext() { return Context::Open({.fabric = "qpip"}).ok() ? 0 : 1; }

void Spin(microseconds time) {
  const auto until = steady_clock::now() + time;
  while (steady_clock::now() < until) continue;
}

TEST(ForkMomentTest, AChildOpensAContextWhereverItsParentIsInOpeningTheFirst) {
  // Each time in a process that has opened none.
  for (int i = 0; i < 400; ++i) {
    ASSERT_EQ(InChild([i] {
                std::thread opens([] { (void)OpensAContext(); });
                Spin(microseconds(i));
                const int answer = InChild(OpensAContext);
                opens.join();
                return answer;
              }),
              0)
        << "after " << i << " us";
  }
}

// What comes of a connection that nobody takes: an event of a failure, with a text.
absl::StatusOr<Event> Refused(Context& context, EventQueue& queue) {
  absl::StatusOr<Socket> socket = context.CreateSocket(Family::kIpv4);
  if (!socket.ok()) return socket.status();
  const absl::StatusOr<OpId> posted =
      socket->Connect(Address::Loopback(Family::kIpv4, 1), {.queue = queue});
  if (!posted.ok()) return posted.status();
  std::array<Event, 1> events;
  const absl::StatusOr<size_t> taken = queue.Dequeue(absl::MakeSpan(events));
  if (!taken.ok()) return taken.status();
  return events[0];
}

int UsesTextsAndMemory() {
  absl::StatusOr<Context> context = Context::Open({.fabric = "qpip"});
  if (!context.ok()) return 1;
  absl::StatusOr<EventQueue> queue = context->CreateQueue({});
  if (!queue.ok()) return 2;
  std::vector<std::byte> bytes(4096);
  if (!context->Register(absl::MakeSpan(bytes)).ok()) return 3;
  const absl::StatusOr<Event> refused = Refused(*context, *queue);
  return refused.ok() && !refused->status().message().empty() ? 0 : 4;
}

// Forks while two threads do `work` without end.
void ForkBeside(const std::function<void()>& work) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads(2);
  for (std::thread& each : threads) {
    each = std::thread([&] {
      while (!ends) work();
    });
  }
  int forks = 0, answer = 0;
  for (; forks < 300 && answer == 0; ++forks) {
    Spin(microseconds(forks));
    answer = InChild(UsesTextsAndMemory);
  }
  ends = true;
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(answer, 0) << "child " << forks;
}

TEST(ForkMomentTest, AChildHasMemoryWhileThreadsOfItsParentRegisterSome) {
  absl::StatusOr<Context> context = Context::Open({.fabric = "qpip"});
  ASSERT_TRUE(context.ok()) << context.status();
  ForkBeside([&] {
    std::array<std::byte, 4096> bytes;
    EXPECT_TRUE(context->Register(absl::MakeSpan(bytes)).ok());
  });
}

TEST(ForkMomentTest, AChildHasTheTextsOfFailuresWhileThreadsOfItsParentReadSome) {
  absl::StatusOr<Context> context = Context::Open({.fabric = "qpip"});
  ASSERT_TRUE(context.ok()) << context.status();
  absl::StatusOr<EventQueue> queue = context->CreateQueue({});
  ASSERT_TRUE(queue.ok()) << queue.status();
  const absl::StatusOr<Event> refused = Refused(*context, *queue);
  ASSERT_TRUE(refused.ok()) << refused.status();
  ForkBeside([&] { EXPECT_FALSE(refused->status().message().empty()); });
}

}  // namespace
}  // namespace esdp::contract
