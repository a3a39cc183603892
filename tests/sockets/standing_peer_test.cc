#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// A peer whose process stands still (SIGSTOP, a debugger): it reads nothing, answers nothing and
// does not go away. The peer is this program again, started with another first argument.

namespace esdp::contract {
namespace {

constexpr uint64_t kLarge = 1 << 20;
// When an operation is to end, and how much later it may on a busy machine; keep-alive and linger
// come far behind that.
constexpr absl::Duration kSoon = absl::Seconds(1);
constexpr absl::Duration kBusyMachine = absl::Seconds(9);

// --- The peer ------------------------------------------------------------------------------------

// Connects, sends what it is told to, so often, says so on its standard output and waits.
int RunPeer(uint64_t bytes, int times, uint16_t port, Transport transport) {
  Side side;
  const std::vector<World> worlds = WorldsWithThread();
  const World world = *std::ranges::find(worlds, transport, TransportOf);
  side.context = *Context::Open(OptionsOf(world));
  side.queue = *side.context.CreateQueue({.depth = 64});
  std::vector<std::byte> memory(bytes + 1);
  const Region region = *side.context.Register(absl::MakeSpan(memory));
  side.socket = *side.context.CreateSocket(Family::kIpv4);
  if (!side.socket.Connect(HostOf(world, port), side.Args()).ok()) return 3;
  std::array<Event, 1> connected;
  if (!side.queue.Dequeue(absl::MakeSpan(connected)).ok() || !connected[0].ok()) return 4;
  for (int i = 0; i < times; ++i) {
    if (!side.socket.Send(*region.slice(0, bytes), SendFlags::kNone, side.Args()).ok()) return 5;
  }
  if (write(STDOUT_FILENO, "r", 1) != 1) return 6;
  char word = 0;
  (void)read(STDIN_FILENO, &word, 1);
  return 0;
}

// --- The tests -----------------------------------------------------------------------------------

class StandingPeerTest : public ::testing::TestWithParam<World> {
 protected:
  // The server is connected with a peer that has sent `bytes`, so often, of which nobody has
  // received any.
  void Connect(const SocketOptions& options, uint64_t bytes = 0, int times = 1) {
    ASSERT_NO_FATAL_FAILURE(server_.Open(OptionsOf(GetParam())));
    Socket listener = *server_.context.CreateSocket(Family::kIpv4, SocketType::kStream, options);
    ASSERT_TRUE(listener.Bind(HostOf(GetParam(), 0)).ok());
    ASSERT_TRUE(listener.Listen(4).ok());
    const OpId accept = server_.Accepted(listener.Accept(1, server_.Args()));
    ASSERT_NO_FATAL_FAILURE(Start(bytes, bytes == 0 ? 0 : times, listener.local().port()));
    ASSERT_TRUE(Wait([&] { return server_.Find(accept) != nullptr; }, absl::Seconds(30)));
    server_.socket = *server_.context.TakeAccepted(server_.Find(accept)->accepted);
    ASSERT_TRUE(Wait([&] { return IsReady(); }, absl::Seconds(30)));
  }
  // From now on the peer stands still.
  void StopPeer() {
    ASSERT_EQ(kill(child_, SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child_, &status, WUNTRACED), child_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    for (const int descriptor : {ready_, words_}) {
      if (descriptor >= 0) close(descriptor);
    }
  }

  bool Wait(const std::function<bool()>& done, absl::Duration most) {
    const absl::Time bound = server_.context.Now() + most;
    while (!done()) {
      if (server_.context.Now() > bound) return false;
      pollfd one{server_.queue.fd(), POLLIN, 0};
      (void)poll(&one, 1, 2);
      server_.Collect();
    }
    return true;
  }
  bool AnAdvertIsOut() {
    return Wait([&] { return server_.socket.Stats().source_adverts_sent > 0; }, absl::Seconds(30));
  }
  // Everything that is pending ends, this operation not before `earliest`.
  void ExpectAllEnd(absl::Time earliest) {
    EXPECT_TRUE(Wait([&] { return server_.Outstanding() == 0; },
                     earliest - server_.context.Now() + kBusyMachine));
    EXPECT_GE(server_.context.Now(), earliest);
    server_.ExpectAllEnded();
  }
  Memory& Make(size_t size) {
    memories_.push_back(std::make_unique<Memory>(server_.context, size, RegisterOptions{}));
    return *memories_.back();
  }
  OpArgs Due(absl::Time deadline) {
    OpArgs args = server_.Args();
    args.deadline = deadline;
    return args;
  }

  void ExpectALateSendToEndAll(uint64_t length);
  void ExpectALateReceiveToEnd(uint64_t sent);
  void ExpectALateReceiveThatWasShownToEndAll(uint64_t length);

  std::vector<std::unique_ptr<Memory>> memories_;
  Side server_;

 private:
  void Start(uint64_t bytes, int times, uint16_t port) {
    std::array<int, 2> ready{};
    std::array<int, 2> words{};
    ASSERT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(words.data(), O_CLOEXEC), 0);
    const std::string sent = std::to_string(bytes);
    const std::string often = std::to_string(times);
    const std::string where = std::to_string(port);
    const std::string by = std::to_string(static_cast<int>(TransportOf(GetParam())));
    child_ = fork();
    if (child_ == 0) {
      dup2(words[0], STDIN_FILENO);
      dup2(ready[1], STDOUT_FILENO);
      execl("/proc/self/exe", "peer", "--peer", sent.c_str(), often.c_str(), where.c_str(),
            by.c_str(), nullptr);
      _exit(127);
    }
    close(ready[1]);
    close(words[0]);
    ready_ = ready[0];
    words_ = words[1];
  }
  bool IsReady() {
    pollfd one{ready_, POLLIN, 0};
    char byte = 0;
    return poll(&one, 1, 0) == 1 && read(ready_, &byte, 1) == 1;
  }

  pid_t child_ = -1;
  int ready_ = -1;
  int words_ = -1;
};
ESDP_ON_REAL_WORLDS(StandingPeerTest);

void StandingPeerTest::ExpectALateSendToEndAll(uint64_t length) {
  ASSERT_NO_FATAL_FAILURE(Connect({.deadline_policy = DeadlinePolicy::kAbortConnection}));
  ASSERT_NO_FATAL_FAILURE(StopPeer());
  Memory& from = Make(length);
  const absl::Time deadline = server_.context.Now() + kSoon;
  const OpId receive = server_.Recv(Make(100).All());
  const OpId late = server_.Send(from.All(), Due(deadline));
  const OpId behind = server_.Send(from.All());
  ExpectAllEnd(deadline);
  for (const OpId op : {late, behind, receive}) {
    ASSERT_NE(server_.Find(op), nullptr);
    EXPECT_TRUE(
        Refuses(server_.Find(op)->status(), ErrorKind::kLocalAbort, absl::StatusCode::kAborted));
  }
  for (const auto& memory : memories_) EXPECT_EQ(memory->region.info().operations, 0u);
}

// Rule 9.
TEST_P(StandingPeerTest, ASendOf64KiBThatIsLateEndsTheConnection) {
  ExpectALateSendToEndAll(uint64_t{64} << 10);
}

// Rule 9.
TEST_P(StandingPeerTest, ASendOf1MiBThatIsLateEndsTheConnection) {
  ExpectALateSendToEndAll(kLarge);
}

void StandingPeerTest::ExpectALateReceiveToEnd(uint64_t sent) {
  ASSERT_NO_FATAL_FAILURE(Connect({.deadline_policy = DeadlinePolicy::kAbortConnection}, sent));
  ASSERT_NO_FATAL_FAILURE(StopPeer());
  const absl::Time deadline = server_.context.Now() + kSoon;
  Memory& to = Make(4 * kLarge);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll, Due(deadline));
  ASSERT_TRUE(Wait([&] { return server_.Find(receive) != nullptr; }, kSoon + kBusyMachine));
  EXPECT_GE(server_.context.Now(), deadline);
  EXPECT_FALSE(server_.Find(receive)->ok());
  EXPECT_EQ(to.region.info().operations, 0u);
}

// Rule 9.
TEST_P(StandingPeerTest, AReceiveOfNothingThatIsLateEnds) { ExpectALateReceiveToEnd(0); }

// Rule 9.
TEST_P(StandingPeerTest, AReceiveThatReadsWhatThePeerHasAdvertisedEndsWhenItIsLate) {
  ExpectALateReceiveToEnd(kLarge);
}

void StandingPeerTest::ExpectALateReceiveThatWasShownToEndAll(uint64_t length) {
  constexpr absl::Duration kPrompt = absl::Seconds(3);  // far below the grace of a cancel
  // Two large sends at once make the half Pipelined, in which receives are shown.
  ASSERT_NO_FATAL_FAILURE(
      Connect({.deadline_policy = DeadlinePolicy::kAbortConnection}, kLarge, 2));
  Memory& warm = Make(kLarge);
  for (int i = 0; i < 2; ++i) {
    const OpId op = server_.Recv(warm.All(), RecvFlags::kWaitAll);
    ASSERT_TRUE(Wait([&] { return server_.Find(op) != nullptr; }, kBusyMachine));
    ASSERT_TRUE(server_.Find(op)->ok()) << server_.Find(op)->status();
  }
  // What the second one's end takes is on its way yet.
  (void)Wait([] { return false; }, absl::Milliseconds(200));
  ASSERT_NO_FATAL_FAILURE(StopPeer());
  Memory& to = Make(length);
  const absl::Time deadline = server_.context.Now() + kSoon;
  const OpId late = server_.Recv(to.All(), RecvFlags::kWaitAll, Due(deadline));
  const OpId behind = server_.Recv(Make(100).All());
  ASSERT_TRUE(Wait([&] { return server_.socket.Stats().sink_adverts_sent > 0; }, kBusyMachine));
  EXPECT_LT(server_.context.Now(), deadline) << "shown too late for this test";
  EXPECT_TRUE(
      Wait([&] { return server_.Outstanding() == 0; }, deadline - server_.context.Now() + kPrompt));
  EXPECT_GE(server_.context.Now(), deadline);
  for (const OpId op : {late, behind}) {
    ASSERT_NE(server_.Find(op), nullptr);
    EXPECT_FALSE(server_.Find(op)->ok());
  }
  EXPECT_EQ(to.region.info().operations, 0u);
}

// Rule 9.
TEST_P(StandingPeerTest, AReceiveThatWasShownAndIsLateEndsTheConnection) {
  ExpectALateReceiveThatWasShownToEndAll(kLarge / 2);
}

// Rule 9. It is shown piece by piece, and no peer fills the first.
TEST_P(StandingPeerTest, AReceiveOfSeveralAdvertsThatIsLateEndsTheConnection) {
  ExpectALateReceiveThatWasShownToEndAll(64 * kLarge);
}

// Rule 8.
TEST_P(StandingPeerTest, ACancelThatMayAbortEndsASendAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Connect({}));
  ASSERT_NO_FATAL_FAILURE(StopPeer());
  Memory& from = Make(kLarge);
  const OpId first = server_.Send(from.All());
  const OpId second = server_.Send(from.All());
  ASSERT_TRUE(AnAdvertIsOut());
  EXPECT_TRUE(server_.socket.Cancel(first).ok()) << "asks the peer, which does not answer";
  EXPECT_TRUE(server_.socket.Cancel(first, CancelMode::kAbortConnection).ok());
  ExpectAllEnd(server_.context.Now());
  EXPECT_EQ(server_.Find(first)->kind, ErrorKind::kLocalAbort);
  EXPECT_EQ(server_.Find(second)->kind, ErrorKind::kLocalAbort);
}

// Rule 8.
TEST_P(StandingPeerTest, ACancelThatIsNotAnsweredAbortsAfterItsGrace) {
  ASSERT_NO_FATAL_FAILURE(Connect({.cancel_grace = kSoon}));
  ASSERT_NO_FATAL_FAILURE(StopPeer());
  const OpId send = server_.Send(Make(kLarge).All());
  ASSERT_TRUE(AnAdvertIsOut());
  const absl::Time earliest = server_.context.Now() + kSoon;
  EXPECT_TRUE(server_.socket.Cancel(send).ok());
  ExpectAllEnd(earliest);
  EXPECT_EQ(server_.Find(send)->kind, ErrorKind::kLocalAbort);
}

// Rule 9.
TEST_P(StandingPeerTest, AReceiveThatIsLateAndIsBeingReadAbortsAfterItsGrace) {
  ASSERT_NO_FATAL_FAILURE(Connect({.cancel_grace = kSoon}, kLarge));
  ASSERT_NO_FATAL_FAILURE(StopPeer());
  const absl::Time deadline = server_.context.Now() + kSoon;
  const OpId receive = server_.Recv(Make(4 * kLarge).All(), RecvFlags::kWaitAll, Due(deadline));
  ExpectAllEnd(deadline);
  EXPECT_FALSE(server_.Find(receive)->ok());
}

// Rules 9 and 10.
TEST_P(StandingPeerTest, ACloseAndAShutdownBehindASendThatDoesNotEndKeepTheirDeadlines) {
  ASSERT_NO_FATAL_FAILURE(Connect({}));
  ASSERT_NO_FATAL_FAILURE(StopPeer());
  Memory& from = Make(kLarge);
  const OpId send = server_.Send(from.All());
  const absl::Time deadline = server_.context.Now() + kSoon;
  const OpId shutdown = server_.Accepted(server_.socket.Shutdown(Due(deadline)));
  ASSERT_TRUE(Wait([&] { return server_.Find(shutdown) != nullptr; }, kSoon + kBusyMachine));
  EXPECT_EQ(server_.Find(shutdown)->kind, ErrorKind::kDeadlineExceeded);
  EXPECT_EQ(server_.Find(send), nullptr);
  const absl::Time later = server_.context.Now() + kSoon;
  const OpId close = server_.Accepted(server_.socket.Close(CloseMode::kGraceful, Due(later)));
  ExpectAllEnd(later);
  EXPECT_EQ(server_.Find(close)->kind, ErrorKind::kDeadlineExceeded);
  EXPECT_EQ(server_.Find(send)->kind, ErrorKind::kLocalAbort);
}

// Rule 10.
TEST_P(StandingPeerTest, AnAbortBehindAGracefulCloseEndsEverythingAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Connect({}));
  ASSERT_NO_FATAL_FAILURE(StopPeer());
  (void)server_.Send(Make(kLarge).All());
  const OpId graceful = server_.Close();
  const OpId abort = server_.Close(CloseMode::kAbort);
  ExpectAllEnd(server_.context.Now());
  EXPECT_EQ(server_.Find(graceful)->kind, ErrorKind::kLocalAbort);
  EXPECT_TRUE(server_.Find(abort)->ok());
}

}  // namespace
}  // namespace esdp::contract

int main(int count, char** arguments) {
  if (count == 6 && std::strcmp(arguments[1], "--peer") == 0) {
    return esdp::contract::RunPeer(std::stoull(arguments[2]), std::stoi(arguments[3]),
                                   static_cast<uint16_t>(std::stoul(arguments[4])),
                                   static_cast<esdp::Transport>(std::stoi(arguments[5])));
  }
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
