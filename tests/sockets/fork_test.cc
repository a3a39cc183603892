#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// After fork() a child may not use what its parent opened: every call says so, nothing of the
// parent's is disturbed, and the child may open a context of its own.

namespace esdp::contract {
namespace {

class ForkTest : public PairTest {
 protected:
  // Runs in a child; its answer is the number of the first thing that was wrong, or 0.
  int InChild(const std::function<int()>& body) {
    Settle();  // a thread that allocates at this moment would leave the allocator locked in the
               // child
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);  // a child that hangs is a failure, not a wait
      _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  static bool IsAfterFork(const absl::Status& status) {
    return static_cast<bool>(
        Refuses(status, ErrorKind::kAfterFork, absl::StatusCode::kFailedPrecondition));
  }
  template <typename T>
  static bool IsAfterFork(const absl::StatusOr<T>& answer) {
    return IsAfterFork(answer.status());
  }
  // The first call that does not answer as it has to, from 1.
  int TryEverything(Memory& memory) {
    const Slice slice = memory.All();
    Socket& socket = client_.socket;
    std::array<Event, 1> one;
    const std::vector<bool> answers = {
        IsAfterFork(socket.Send(slice, SendFlags::kNone, client_.Args())),
        IsAfterFork(socket.Recv(slice, RecvFlags::kNone, client_.Args())),
        IsAfterFork(socket.SendCopy(memory.bytes, SendFlags::kNone, client_.Args())),
        IsAfterFork(socket.Shutdown(client_.Args())),
        IsAfterFork(socket.Close(CloseMode::kGraceful, client_.Args())),
        IsAfterFork(socket.Cancel(OpId{1})),
        IsAfterFork(client_.queue.Dequeue(absl::MakeSpan(one))),
        IsAfterFork(client_.queue.TryDequeue(absl::MakeSpan(one))),
        IsAfterFork(client_.context.CreateSocket(Family::kIpv4)),
        IsAfterFork(client_.context.CreateQueue({})),
        IsAfterFork(client_.context.Register(absl::MakeSpan(memory.bytes))),
        IsAfterFork(client_.context.Progress()),
        IsAfterFork(client_.context.Close(absl::InfiniteFuture())),
        IsAfterFork(listener_.Accept(1, server_.Args())),
    };
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i]) return static_cast<int>(i) + 1;
    }
    return 0;
  }
  void ExpectStillWorks() {
    Memory& from = Make(client_, 200'000);
    from.Fill(3);
    Carry(client_, from, server_, Make(server_, 200'000), 200'000);
  }
};
ESDP_ON_EVERY_WORLD(ForkTest);

TEST_P(ForkTest, EveryCallInTheChildSaysUsedAfterFork) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& memory = Make(client_, 100);
  EXPECT_EQ(InChild([&] { return TryEverything(memory); }), 0) << "the number of the call";
  ExpectStillWorks();
}

TEST_P(ForkTest, DestroyingEverythingInTheChildDisturbsNothingOfTheParent) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId receive = server_.Recv(Make(server_, 100).All(), RecvFlags::kWaitAll);
  Memory& from = Make(client_, 100);
  EXPECT_EQ(InChild([&] {
              memories_.clear();
              client_ = {};
              listener_ = {};
              server_ = {};
              return 0;
            }),
            0);
  (void)client_.Send(from.All());
  EndWell(server_, receive, 100);
  ExpectStillWorks();
}

// At any moment, also while one of them has its lock.
TEST_P(ForkTest, AChildWaitsForNoThreadThatMovesFiles) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const int source = memfd_create("source", MFD_CLOEXEC);
  const int target = memfd_create("target", MFD_CLOEXEC);
  constexpr uint64_t kLength = 8 << 20;
  ASSERT_EQ(ftruncate(source, kLength), 0);
  const std::array<FileRange, 1> range = {FileRange{source, 0, kLength}};
  for (int round = 0; round < 10; ++round) {
    const OpId receive = server_.Accepted(
        server_.socket.RecvFile({.fd = target, .length = kLength}, server_.Args()));
    const OpId send = client_.Accepted(client_.socket.SendFile({.ranges = range}, client_.Args()));
    EXPECT_EQ(InChild([&] {
                client_ = {};
                server_ = {};
                return 0;
              }),
              0);
    EndWell(client_, send, kLength);
    EndWell(server_, receive, kLength);
  }
  close(source);
  close(target);
}

// Where it is shared the child has no memory there, and may come to have some of its own.
TEST_P(ForkTest, ARegionThatTheChildDropsTakesNoMemoryOfTheChild) {
  constexpr size_t kBytes = 1 << 20;
  Region region = *client_.context.Allocate(kBytes);
  void* const base = region.info().base;
  EXPECT_EQ(InChild([&] {
              void* const own = mmap(base, kBytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
              if (own != base) return 0;  // it has a copy of the parent's
              region = Region();
              return msync(own, kBytes, MS_ASYNC) == 0 ? 0 : 1;
            }),
            0);
}

TEST_P(ForkTest, AChildThatEndsDoesNotEndTheConnection) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(InChild([] { return 0; }), 0);
  ExpectStillWorks();
}

TEST_P(ForkTest, TheChildMayOpenAContextOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const auto body = [&] {
    auto context = Context::Open(OptionsOf(world()));
    if (!context.ok()) return 1;
    auto queue = context->CreateQueue({});
    auto listener = context->CreateSocket(Family::kIpv4);
    if (!queue.ok() || !listener.ok()) return 2;
    if (!listener->Bind(HostOf(world(), 0)).ok()) return 3;
    if (!listener->Listen(1).ok()) return 4;
    auto socket = context->CreateSocket(Family::kIpv4);
    if (!listener->Accept(1, {.queue = *queue}).ok()) return 5;
    if (!socket->Connect(listener->local(), {.queue = *queue}).ok()) return 6;
    std::array<Event, 2> both;
    const auto taken = queue->Dequeue(absl::MakeSpan(both), {.min_events = 2});
    return taken.ok() && both[0].ok() && both[1].ok() ? 0 : 7;
  };
  EXPECT_EQ(InChild(body), 0) << "the number of the step";
  ExpectStillWorks();
}

// R14.2
TEST_P(ForkTest, AChildThatLivesOnDoesNotHideAnAbortFromThePeer) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId receive = server_.Recv(Make(server_, 100).All());
  Settle();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    pause();
    _exit(0);
  }
  client_.socket = {};
  EXPECT_EQ(End(server_, receive).kind, ErrorKind::kPeerReset);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace esdp::contract
