// The server that the attacks of this folder are made on: it sends back whatever arrives, from
// buffers that go from client to client and are never cleared. It says how things are on standard
// output, and how each connection ended on standard error.
//
//   victim [--peer-moves refused|guarded|unguarded] [--backlog N] [--half-open-max N] [--moves-max
//   N]
//          [--moves-at-once-max N] [--accept 0|1]
//
// Standard input: "accept" begins to take connections (from the start, unless told not to),
// "suspend" moves every connection to a new queue pair, "stats" tells counters, and its end ends
// the server. What a client sends is sent back within a second, or its connection aborted, if
// the first byte is a 'D'.

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "samples/arguments.h"

namespace {

using samples::Argument;
using samples::Check;
using samples::Value;

constexpr size_t kBufferBytes = 256 * 1024;
constexpr std::byte kWithDeadlines{'D'};
constexpr std::chrono::seconds kDeadline(1);
constexpr std::chrono::seconds kGoodbye(10);
constexpr std::chrono::hours kLong(1);

#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kBuild = "asan";
#elif defined(__SANITIZE_THREAD__)
constexpr const char* kBuild = "tsan";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr const char* kBuild = "asan";
#elif __has_feature(thread_sanitizer)
constexpr const char* kBuild = "tsan";
#else
constexpr const char* kBuild = "plain";
#endif
#else
constexpr const char* kBuild = "plain";
#endif

esdp::PeerMoves MovesNamed(std::string_view name) {
  if (name == "guarded") return esdp::PeerMoves::kGuarded;
  return name == "unguarded" ? esdp::PeerMoves::kUnguarded : esdp::PeerMoves::kRefused;
}

uint32_t NumberOf(const char* text) {
  return static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

struct Buffer {
  std::vector<std::byte> memory = std::vector<std::byte>(kBufferBytes, std::byte{'V'});
  esdp::Region region;
};

struct Client {
  esdp::Socket socket;
  std::unique_ptr<Buffer> buffer;
  std::string peer;
  uint64_t echoed = 0;
  bool with_deadlines = false;
  bool receiving = false;
};

// Lines of standard input, for a thread that waits for events of a queue.
class Commands {
 public:
  explicit Commands(esdp::EventQueue& queue) : thread_([this, &queue] { Read(queue); }) {}
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  void Read(esdp::EventQueue& queue) {
    std::string line;
    while (std::getline(std::cin, line)) Add(queue, line);
    Add(queue, "end");
  }
  void Add(esdp::EventQueue& queue, const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    }
    queue.Wake();
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::jthread thread_;
};

class Victim {
 public:
  Victim(int argc, char** argv)
      : context_(Value(esdp::Context::Open(
            {.fabric = "qpip",
             .peer_moves = MovesNamed(Argument(argc, argv, "--peer-moves", "refused")),
             .moves_max = NumberOf(Argument(argc, argv, "--moves-max", "16")),
             .moves_at_once_max = NumberOf(Argument(argc, argv, "--moves-at-once-max", "64")),
             .half_open_max = NumberOf(Argument(argc, argv, "--half-open-max", "256")),
             .log =
                 [](std::string_view line) {
                   std::fprintf(stderr, "log: %.*s\n", static_cast<int>(line.size()), line.data());
                 }}))),
        queue_(Value(context_.CreateQueue({.depth = 8192, .wait = esdp::WaitMode::kNotify}))),
        listener_(Value(
            context_.CreateSocket(esdp::Family::kIpv4, esdp::SocketType::kStream,
                                  {.cancel_grace = absl::InfiniteDuration(),
                                   .deadline_policy = esdp::DeadlinePolicy::kAbortConnection}))),
        commands_(queue_) {
    Check(listener_.Bind(Value(esdp::Address::Parse("0.0.0.0:0"))));
    Check(listener_.Listen(static_cast<int>(NumberOf(Argument(argc, argv, "--backlog", "64")))));
    if (std::string_view(Argument(argc, argv, "--accept", "1")) == "1") Accept();
    std::printf("listening on port %d, %s\n", listener_.local().port(), kBuild);
  }

  void Run() {
    std::array<esdp::Event, 64> events;
    while (!ended_) {
      // While it takes no connections there may be nothing to wait for but a command.
      const auto count = queue_.Dequeue(std::span(events), {.deadline = context_.After(kLong)});
      const esdp::ErrorKind kind = esdp::KindOf(count.status());
      if (kind != esdp::ErrorKind::kCancelled && kind != esdp::ErrorKind::kDeadlineExceeded) {
        Check(count.status());
      }
      for (size_t i = 0; count.ok() && i < *count; ++i) OnEvent(events[i]);
      for (const std::string& line : commands_.Take()) Obey(line);
    }
    (void)context_.Close(context_.Now());
  }

 private:
  void Accept() { Value(listener_.Accept(0, {queue_})); }

  void Obey(const std::string& line) {
    if (line == "accept") return Accept();
    if (line == "stats") return Tell();
    ended_ = ended_ || line == "end";
    if (line != "suspend") return;
    for (auto& [id, client] : clients_) {
      const absl::Status status = client.socket.Suspend({queue_}).status();
      if (!status.ok()) std::fprintf(stderr, "not moved: %s\n", status.ToString().c_str());
    }
  }

  void Tell() {
    esdp::SocketStats sum = gone_;
    for (const auto& [id, client] : clients_) Add(client.socket.Stats(), sum);
    const esdp::ContextStats stats = context_.Stats();
    std::printf(
        "{\"accepted\": %zu, \"clients\": %zu, \"served\": %zu, \"ended\": %zu, \"unheard\": %zu, "
        "\"moves\": %zu, \"buffers\": %zu, \"returns_rejected\": %zu, \"sink_adverts\": %zu, "
        "\"sockets\": %u, \"operations\": %u}\n",
        accepted_, clients_.size(), served_, lost_, unheard_, static_cast<size_t>(sum.resumptions),
        buffers_, static_cast<size_t>(sum.returns_rejected),
        static_cast<size_t>(sum.sink_adverts_sent), stats.sockets, stats.operations);
  }

  static void Add(const esdp::SocketStats& one, esdp::SocketStats& sum) {
    sum.resumptions += one.resumptions;
    sum.returns_rejected += one.returns_rejected;
    sum.sink_adverts_sent += one.sink_adverts_sent;
  }

  void OnEvent(const esdp::Event& event) {
    if (event.type == esdp::EventType::kAccept) return OnAccept(event);
    const auto found = clients_.find(event.socket);
    if (found == clients_.end()) return;
    Client& client = found->second;
    if (event.type == esdp::EventType::kSuspend) {
      std::fprintf(stderr, "suspended %s: %s\n", client.peer.c_str(),
                   event.status().ToString().c_str());
      return;  // an error is not always the connection's end, and a receive hears of that
    }
    const absl::Status status = event.ok() ? Advance(client, event) : event.status();
    if (event.type == esdp::EventType::kClose) {
      ++served_;
      return Drop(found, event.status());
    }
    if (status.ok()) return;
    ++lost_;
    if (client.echoed == 0 && client.receiving) ++unheard_;
    Drop(found, status);
  }

  void OnAccept(const esdp::Event& event) {
    Check(event.status());
    auto taken = context_.TakeAccepted(event.accepted);
    if (!taken.ok()) return;
    ++accepted_;
    const esdp::SocketId id = taken->id();
    Client& client = clients_[id];
    client.socket = *std::move(taken);
    client.peer = client.socket.peer().ToString();
    client.buffer = TakeBuffer();
    const absl::Status status = Receive(client);
    if (status.ok()) return;
    ++unheard_;
    Drop(clients_.find(id), status);
  }

  absl::Status Advance(Client& client, const esdp::Event& event) {
    if (event.type == esdp::EventType::kSend) {
      client.echoed += event.bytes;
      return Receive(client);
    }
    if (event.type != esdp::EventType::kRecv) return absl::OkStatus();
    client.receiving = false;
    if (event.eof()) {
      return client.socket
          .Close(esdp::CloseMode::kGraceful,
                 {.queue = queue_, .deadline = context_.After(kGoodbye)})
          .status();
    }
    if (client.buffer->memory[0] == kWithDeadlines) client.with_deadlines = true;
    const esdp::Slice received = Value(client.buffer->region.slice(0, event.bytes));
    return client.socket.Send(received, esdp::SendFlags::kNone, Args(client)).status();
  }

  absl::Status Receive(Client& client) {
    client.receiving = true;
    return client.socket.Recv(client.buffer->region.slice(), esdp::RecvFlags::kNone, Args(client))
        .status();
  }

  esdp::OpArgs Args(const Client& client) {
    esdp::OpArgs args{queue_};
    if (client.with_deadlines) args.deadline = context_.After(kDeadline);
    return args;
  }

  // With its last operation ended nobody uses the client's buffer any more.
  void Drop(std::map<esdp::SocketId, Client>::iterator client, const absl::Status& status) {
    std::fprintf(stderr, "ended %s: %s\n", client->second.peer.c_str(), status.ToString().c_str());
    Add(client->second.socket.Stats(), gone_);
    pool_.push_back(std::move(client->second.buffer));
    clients_.erase(client);
  }

  std::unique_ptr<Buffer> TakeBuffer() {
    if (!pool_.empty()) {
      auto buffer = std::move(pool_.back());
      pool_.pop_back();
      return buffer;
    }
    ++buffers_;
    auto buffer = std::make_unique<Buffer>();
    buffer->region = Value(context_.Register(std::span(buffer->memory)));
    return buffer;
  }

  std::vector<std::unique_ptr<Buffer>> pool_;  // before the Context: it may be at work in them
  std::map<esdp::SocketId, Client> clients_;
  esdp::Context context_;
  esdp::EventQueue queue_;
  esdp::Socket listener_;
  esdp::SocketStats gone_;
  size_t accepted_ = 0;
  size_t served_ = 0;
  size_t lost_ = 0;
  size_t unheard_ = 0;
  size_t buffers_ = 0;
  bool ended_ = false;
  Commands commands_;
};

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // each line at once, also into a pipe
  Victim(argc, argv).Run();
}
