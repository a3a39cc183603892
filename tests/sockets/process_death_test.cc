#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Processes that end in the middle of transfers, and processes that fork. The peer is this program
// again, started with another first argument.

namespace esdp::contract {
namespace {

constexpr uint64_t kLarge = 1 << 20;

// --- The peer ------------------------------------------------------------------------------------

// Connects, posts sends and receives that stay outstanding, says so on its standard output, and
// ends in the manner asked for.
int RunPeer(const std::string& manner, uint16_t port, bool manual) {
  // Never destroyed by exit() in the middle of its use: these are on the stack, which exit() leaves
  // alone, or static, which it does not.
  static Side kept;
  Side here;
  Side& side = manner == "static" ? kept : here;
  const World world = WorldsInRealTime()[manual ? 1 : 0];
  const ContextOptions options = OptionsOf(world);
  side.context = *Context::Open(options);
  side.queue = *side.context.CreateQueue({.depth = 64});
  static std::vector<std::byte>& bytes = *new std::vector<std::byte>(2 * kLarge);
  Region region = *side.context.Register(absl::MakeSpan(bytes));
  side.socket = *side.context.CreateSocket(Family::kIpv4);
  if (!side.socket.Connect(HostOf(world, port), side.Args()).ok()) return 3;
  std::array<Event, 1> connected;
  if (!side.queue.Dequeue(absl::MakeSpan(connected)).ok() || !connected[0].ok()) return 4;
  for (int i = 0; i < 16; ++i) {
    const Slice slice = *region.slice(0, kLarge);
    if (!side.socket.Send(slice, SendFlags::kNone, side.Args()).ok()) return 5;
  }
  const Slice sink = *region.slice(kLarge, kLarge);
  if (!side.socket.Recv(sink, RecvFlags::kWaitAll, side.Args()).ok()) return 6;
  std::array<Event, 8> some;
  (void)side.queue.Dequeue(absl::MakeSpan(some),
                           {.deadline = side.context.Now() + absl::Milliseconds(20)});
  if (write(STDOUT_FILENO, "r", 1) != 1) return 7;
  char word = 0;
  pollfd heard{STDIN_FILENO, POLLIN, 0};
  while (poll(&heard, 1, 1) == 0) (void)side.queue.TryDequeue(absl::MakeSpan(some));
  if (read(STDIN_FILENO, &word, 1) != 1) return 8;
  if (manner == "killed") {
    for (;;) {
      (void)side.queue.Dequeue(absl::MakeSpan(some));
      pause();
    }
  }
  if (manner == "_exit") _exit(0);
  if (manner == "exit" || manner == "static") exit(0);
  return 0;  // "return": the destructors run
}

// --- The tests -----------------------------------------------------------------------------------

struct EndReason {
  std::string manner;
  World world;
};
void PrintTo(const EndReason& ending, std::ostream* out) { *out << ending.manner; }

class ProcessDeathTest : public ::testing::TestWithParam<EndReason> {
 protected:
  pid_t Start(uint16_t port) {
    std::array<int, 2> pipes{};
    std::array<int, 2> words{};
    EXPECT_EQ(pipe2(pipes.data(), O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(words.data(), O_CLOEXEC), 0);
    const std::string text = std::to_string(port);
    const bool manual = !HasThread(GetParam().world);
    const pid_t child = fork();
    if (child == 0) {
      dup2(words[0], STDIN_FILENO);
      dup2(pipes[1], STDOUT_FILENO);
      execl("/proc/self/exe", "peer", "--peer", GetParam().manner.c_str(), text.c_str(),
            manual ? "manual" : "thread", nullptr);
      _exit(127);
    }
    close(pipes[1]);
    close(words[0]);
    ready_ = pipes[0];
    words_ = words[1];
    return child;
  }
  bool IsReady() {
    pollfd one{ready_, POLLIN, 0};
    char byte = 0;
    return poll(&one, 1, 0) == 1 && read(ready_, &byte, 1) >= 0;
  }
  void TearDown() override {
    if (ready_ >= 0) close(ready_);
    if (words_ >= 0) close(words_);
  }

  int ready_ = -1;
  int words_ = -1;
};

std::vector<EndReason> Endings() {
  std::vector<EndReason> all;
  for (const World world : WorldsInRealTime()) {
    for (const char* manner : {"killed", "_exit", "exit", "static", "return"}) {
      all.push_back({manner, world});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(On, ProcessDeathTest, ::testing::ValuesIn(Endings()),
                         [](const auto& tested) {
                           std::string name =
                               tested.param.manner + "_" + NameOf(tested.param.world);
                           return name[0] == '_' ? "immediate" + name : name;
                         });

// R14.2
TEST_P(ProcessDeathTest, EveryOperationOfTheOtherSideEndsOnceInABoundedTime) {
  Side server;
  ASSERT_NO_FATAL_FAILURE(server.Open(OptionsOf(WorldsWithThread()[0])));
  Memory mine(server.context, 4 * kLarge, {});
  Memory small(server.context, 100, {});
  Memory large(server.context, 40 * kLarge, {});
  Socket listener = *server.context.CreateSocket(Family::kIpv4);
  ASSERT_TRUE(listener.Bind(HostOf(WorldsWithThread()[0], 0)).ok());
  ASSERT_TRUE(listener.Listen(4).ok());
  const OpId accept = server.Accepted(listener.Accept(1, server.Args()));
  const pid_t child = Start(listener.local().port());
  ASSERT_GT(child, 0);
  const auto wait = [&](const std::function<bool()>& done, absl::Duration most) {
    const absl::Time bound = server.context.Now() + most;
    while (!done()) {
      if (server.context.Now() > bound) return false;
      pollfd one{server.queue.fd(), POLLIN, 0};
      (void)poll(&one, 1, 2);
      server.Collect();
    }
    return true;
  };
  ASSERT_TRUE(wait([&] { return server.Find(accept) != nullptr; }, absl::Seconds(30)));
  server.socket = *server.context.TakeAccepted(server.Find(accept)->accepted);
  (void)server.Recv(mine.At(0, 2 * kLarge), RecvFlags::kWaitAll);
  ASSERT_TRUE(wait([&] { return IsReady(); }, absl::Seconds(30)));
  std::vector<OpId> pending;
  pending.push_back(server.Recv(small.All()));
  for (uint64_t i = 0; i < 40; ++i) {
    pending.push_back(server.Recv(large.At(i * kLarge, kLarge), RecvFlags::kWaitAll));
  }
  for (int i = 0; i < 8; ++i) pending.push_back(server.Send(mine.All()));
  if (GetParam().manner == "killed") {
    kill(child, SIGKILL);
  } else {
    EXPECT_EQ(write(words_, "e", 1), 1);
  }
  int status = 0;
  bool ended = false;
  EXPECT_TRUE(wait([&] { return ended = ended || waitpid(child, &status, WNOHANG) == child; },
                   absl::Seconds(20)))
      << "the process does not end";
  if (!ended) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  if (GetParam().manner != "killed") {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_TRUE(wait([&] { return server.Outstanding() == 0; }, absl::Seconds(30)));
  server.ExpectAllEnded();
  const Event* last = server.Find(pending.back());
  ASSERT_NE(last, nullptr);
  EXPECT_TRUE(Refuses(last->status(), ErrorKind::kPeerReset, absl::StatusCode::kAborted));
  for (const Memory* memory : {&mine, &small, &large}) {
    EXPECT_EQ(memory->region.info().operations, 0u);
  }
}

}  // namespace
}  // namespace esdp::contract

int main(int count, char** arguments) {
  if (count == 5 && std::strcmp(arguments[1], "--peer") == 0) {
    return esdp::contract::RunPeer(arguments[2], static_cast<uint16_t>(std::stoul(arguments[3])),
                                   std::strcmp(arguments[4], "manual") == 0);
  }
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
