#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"

// The sample stops as a server should: what its clients see of it, and when it ends.

namespace esdp {
namespace {

using std::chrono::seconds;

constexpr seconds kBound(30);  // for anything here, on a slow machine and under a sanitizer

std::string ServerPath() {
  const auto of = [](const char* name) { return std::string(std::getenv(name)); };
  return of("TEST_SRCDIR") + "/" + of("TEST_WORKSPACE") + "/samples/graceful_server";
}

// The process, and what it prints.
class Server {
 public:
  explicit Server(const std::string& grace) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    std::string path = ServerPath(), name = "--grace", value = grace;
    std::array<char*, 4> arguments = {path.data(), name.data(), value.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    EXPECT_EQ(posix_spawn(&process_, path.c_str(), &actions, nullptr, arguments.data(), environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_.reset(fdopen(ends[0], "r"));
    const std::string up = Line();
    address_ = *Address::Parse(up.substr(std::strlen("listening on ")));
  }
  ~Server() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    (void)End();
  }

  const Address& address() const { return address_; }
  void Signal(int signal) const { EXPECT_EQ(kill(process_, signal), 0); }
  // The next line of its output; empty when there is none any more.
  std::string Line() {
    std::array<char, 256> line{};
    if (fgets(line.data(), line.size(), output_.get()) == nullptr) return "";
    return std::string(line.data(), std::strcspn(line.data(), "\n"));
  }
  // Waits for it; what waitpid tells.
  int End() {
    int status = 0;
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    process_ = 0;
    return status;
  }

 private:
  struct Closer {
    void operator()(FILE* file) const { (void)fclose(file); }
  };
  pid_t process_ = 0;
  std::unique_ptr<FILE, Closer> output_;
  Address address_;
};

class GracefulServerTest : public ::testing::Test {
 protected:
  Event Next() {
    std::array<Event, 1> event;
    EXPECT_TRUE(queue_.Dequeue(std::span(event), {.deadline = context_.After(kBound)}).ok());
    return event[0];
  }
  ErrorKind Connect(Socket& socket, const Server& server) {
    socket = *context_.CreateSocket(Family::kIpv4);
    EXPECT_TRUE(socket.Connect(server.address(), {queue_}).ok());
    return Next().kind;
  }
  void Send(Socket& socket, std::string_view text) {
    const OpArgs args = {.queue = queue_, .complete_at = CompleteAt::kDelivered};
    const auto bytes = std::as_bytes(std::span(text));
    ASSERT_TRUE(socket.SendCopy(bytes, SendFlags::kNone, args).ok());
    const Event event = Next();
    ASSERT_TRUE(event.ok() && event.type == EventType::kSend) << event.status();
  }
  // Into memory_; to be posted before what is answered, so that nobody waits for the other.
  void PostReceive(Socket& socket, size_t length) {
    memory_.assign(length, std::byte{0});
    const auto posted = socket.RecvCopy(std::span(memory_), RecvFlags::kWaitAll, {queue_});
    ASSERT_TRUE(posted.ok()) << posted.status();
  }
  // What has come; less than was asked for at the end of the stream.
  std::string Received() {
    const Event event = Next();
    EXPECT_TRUE(event.ok() && event.type == EventType::kRecv) << event.status();
    return std::string(reinterpret_cast<const char*>(memory_.data()), event.bytes);
  }
  std::string Receive(Socket& socket, size_t length) {
    PostReceive(socket, length);
    return Received();
  }
  void CloseWell(Socket& socket) {
    ASSERT_TRUE(socket.Close(CloseMode::kGraceful, {queue_}).ok());
    const Event event = Next();
    EXPECT_TRUE(event.ok() && event.type == EventType::kClose) << event.status();
  }

  std::vector<std::byte> memory_;  // outlives the Context, and so whatever was posted
  Context context_ = *Context::Open({.fabric = "qpip"});
  EventQueue queue_ = *context_.CreateQueue({});
};

TEST_F(GracefulServerTest, ItAnswersWhatWasSentSaysGoodbyeAndWaitsForTheClient) {
  Server server("60");
  Socket talks;
  Socket silent;
  ASSERT_EQ(Connect(talks, server), ErrorKind::kNone);
  ASSERT_EQ(Connect(silent, server), ErrorKind::kNone);
  Send(talks, "before");
  EXPECT_EQ(Receive(talks, 6), "before");
  const std::string much(300'000, 'x');
  PostReceive(talks, much.size() + 1);
  Send(talks, much);
  server.Signal(SIGTERM);
  EXPECT_TRUE(server.Line().starts_with("stopping, with ")) << "silent may wait to be accepted";
  EXPECT_EQ(Received(), much) << "and then the end of the stream";
  Send(talks, "too late to be answered");
  CloseWell(talks);
  EXPECT_EQ(server.Line(), "client served: 300006 bytes");
  EXPECT_EQ(Receive(silent, 1), "");
  Socket late;
  EXPECT_EQ(Connect(late, server), ErrorKind::kRefused);
  CloseWell(silent);
  EXPECT_EQ(server.Line(), "client served: 0 bytes");
  EXPECT_EQ(server.Line(), "stopped; 0 clients were cut off");
  const int status = server.End();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(GracefulServerTest, AClientThatDoesNotLeaveIsCutOffAtTheDeadline) {
  Server server("1");
  Socket stays;
  ASSERT_EQ(Connect(stays, server), ErrorKind::kNone);
  Send(stays, "hello");
  EXPECT_EQ(Receive(stays, 5), "hello");
  server.Signal(SIGINT);
  EXPECT_EQ(server.Line(), "stopping, with 1 clients");
  EXPECT_EQ(Receive(stays, 1), "") << "it was told";
  EXPECT_EQ(server.Line(), "stopped; 1 clients were cut off");
  const int status = server.End();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST_F(GracefulServerTest, WithoutClientsItEndsAtOnce) {
  Server server("60");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Line(), "stopping, with 0 clients");
  EXPECT_EQ(server.Line(), "stopped; 0 clients were cut off");
  EXPECT_EQ(server.End(), 0);
}

TEST_F(GracefulServerTest, ASecondSignalEndsItAtOnce) {
  Server server("60");
  Socket stays;
  ASSERT_EQ(Connect(stays, server), ErrorKind::kNone);
  Send(stays, "hello");
  EXPECT_EQ(Receive(stays, 5), "hello");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Line(), "stopping, with 1 clients");
  server.Signal(SIGTERM);
  const int status = server.End();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST_F(GracefulServerTest, AClientThatDiesIsNotWaitedFor) {
  Server server("60");
  {
    Socket dies;
    ASSERT_EQ(Connect(dies, server), ErrorKind::kNone);
    Send(dies, "hello");
    EXPECT_EQ(Receive(dies, 5), "hello");
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Line(), "stopping, with 1 clients");
    ASSERT_TRUE(dies.Close(CloseMode::kAbort, {queue_}).ok());
    EXPECT_TRUE(Next().ok());
  }
  EXPECT_EQ(server.Line(), "stopped; 1 clients were cut off");
  EXPECT_NE(server.End(), 0);
}

}  // namespace
}  // namespace esdp
