#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

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

// A failure with a text, and memory that comes and goes.
int UsesTheLibrarysMutexes(Context& context, EventQueue& queue) {
  std::vector<std::byte> bytes(4096);
  if (!context.Register(absl::MakeSpan(bytes)).ok()) return 2;
  absl::StatusOr<Socket> socket = context.CreateSocket(Family::kIpv4);
  if (!socket.ok()) return 3;
  const Address nobody = *Address::Parse("127.0.0.1:1");
  if (!socket->Connect(nobody, {.queue = queue}).ok()) return 4;
  std::array<Event, 1> events;
  if (queue.Dequeue(absl::MakeSpan(events)).value_or(0) != 1) return 5;
  return events[0].status().message().empty() ? 6 : 0;
}

int UsesTheLibrarysMutexesOnce() {
  absl::StatusOr<Context> context = Context::Open({.fabric = "qpip"});
  if (!context.ok()) return 1;
  absl::StatusOr<EventQueue> queue = context->CreateQueue({});
  return queue.ok() ? UsesTheLibrarysMutexes(*context, *queue) : 1;
}

TEST(ForkMomentTest, AChildHasTextsAndMemoryWhateverItsParentsThreadsAreAt) {
  std::atomic<bool> ends{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      absl::StatusOr<Context> context = Context::Open({.fabric = "qpip"});
      std::vector<std::byte> bytes(4096);
      while (!ends) {
        if (!context->Register(absl::MakeSpan(bytes)).ok()) ++failed;
      }
    });
  }
  int ended = 0, answer = 0;
  for (; ended < 300 && answer == 0; ++ended) {
    Spin(microseconds(ended));
    answer = InChild(UsesTheLibrarysMutexesOnce);
  }
  ends = true;
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(answer, 0) << "child " << ended;
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace esdp::contract
