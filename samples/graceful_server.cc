// An echo server that ends well. On SIGTERM or SIGINT it takes no more connections, answers what
// its clients have sent, tells them that no more will come, and waits for them to leave, but only
// for so long. A second signal ends it at once.
//
//   graceful_server [--port PORT] [--listen ADDRESS] [--grace SECONDS]
//
// Ends with 0 when every client was served to its end, and with 1 when some were cut off.

#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "esdp/context.h"
#include "samples/arguments.h"

namespace {

using samples::Check;
using samples::Value;

constexpr size_t kBufferBytes = 64 * 1024;
constexpr std::chrono::milliseconds kQuiet(200);  // who sends nothing for so long has sent all

// Nothing of the library may be called in a signal handler. A thread that waits for signals may
// call anything.
class StopSignals {
 public:
  // Threads that are started later have them blocked too.
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void Watch(esdp::EventQueue& queue) {
    thread_ = std::jthread([this, &queue] {
      int signal = 0;
      sigwait(&set_, &signal);
      came_ = true;
      queue.Wake();  // ends the wait that runs, or the next one
    });
  }
  // Once. The next signal does what it does to any program.
  bool TakeFirst() {
    if (!came_.exchange(false)) return false;
    pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
    return true;
  }

 private:
  sigset_t set_;
  std::atomic<bool> came_{false};
  std::jthread thread_;
};

struct Client {
  esdp::Socket socket;
  std::vector<std::byte> memory = std::vector<std::byte>(kBufferBytes);
  esdp::Region region;
  uint64_t echoed = 0;
  bool told = false;  // that no more will come
};

class GracefulServer {
 public:
  GracefulServer(const esdp::Address& address, std::chrono::seconds grace)
      : grace_(grace),
        context_(Value(esdp::Context::Open({.fabric = "qpip"}))),
        queue_(Value(context_.CreateQueue({}))),
        listener_(Value(context_.CreateSocket(address.family()))) {
    Check(listener_.Bind(address));
    Check(listener_.Listen(16));
    accept_ = Value(listener_.Accept(0, {queue_}));
    signals_.Watch(queue_);
    std::printf("listening on %s\n", listener_.local().ToString().c_str());
  }

  // Until a signal has come and all clients have left, or the deadline. False: some were cut off.
  bool Run() {
    std::array<esdp::Event, 32> events;
    while (listening_ || !clients_.empty()) {
      // Asked each time: a busy queue may always have events, and then no wait that Wake could end.
      if (signals_.TakeFirst()) Stop();
      const auto count = queue_.Dequeue(std::span(events), {.deadline = last_});
      if (esdp::KindOf(count.status()) == esdp::ErrorKind::kDeadlineExceeded) break;
      if (esdp::KindOf(count.status()) == esdp::ErrorKind::kCancelled) continue;
      Check(count.status());
      for (size_t i = 0; i < *count; ++i) OnEvent(events[i]);
    }
    // Aborts what is left; afterwards nothing uses the clients' memory any more.
    lost_ += clients_.size();
    (void)context_.Close(context_.Now());
    std::printf("stopped; %zu clients were cut off\n", lost_);
    return lost_ == 0;
  }

 private:
  void Stop() {
    std::printf("stopping, with %zu clients\n", clients_.size());
    last_ = context_.After(grace_);
    Check(listener_.Cancel(accept_));
    for (auto& [id, client] : clients_) (void)client.socket.CancelAll(esdp::Direction::kReceive);
  }
  bool stopping() const { return last_ != absl::InfiniteFuture(); }

  void OnEvent(const esdp::Event& event) {
    if (event.type == esdp::EventType::kAccept) return OnAccept(event);
    if (event.socket == listener_.id()) {
      listening_ = false;
      return;
    }
    const auto found = clients_.find(event.socket);
    if (found == clients_.end()) return;  // what is left of one that was lost
    if (event.type == esdp::EventType::kClose && event.ok()) {
      std::printf("client served: %zu bytes\n", found->second.echoed);
      clients_.erase(found);
      return;
    }
    // A post that is refused has no event: whatever comes next has to know of it here.
    const absl::Status status = Advance(found->second, event);
    if (status.ok()) return;
    std::fprintf(stderr, "client lost: %s\n", status.ToString().c_str());
    clients_.erase(found);
    ++lost_;
  }

  void OnAccept(const esdp::Event& event) {
    if (event.terminal()) return OnAcceptEnd(event);
    esdp::Socket socket = Value(context_.TakeAccepted(event.accepted));
    Client& client = clients_[socket.id()];
    client.socket = std::move(socket);
    client.region = Value(context_.Register(std::span(client.memory)));
    if (!Receive(client).ok()) clients_.erase(client.socket.id());
  }

  // What connected before the listener closes is served: a client may have been told already that
  // it is connected. What comes later is refused.
  void OnAcceptEnd(const esdp::Event& event) {
    if (event.kind == esdp::ErrorKind::kCancelled) {
      Value(listener_.Accept(0, {.queue = queue_, .deadline = context_.After(kQuiet)}));
    } else if (event.kind == esdp::ErrorKind::kDeadlineExceeded) {
      Value(listener_.Close(esdp::CloseMode::kGraceful, {queue_}));
    } else {
      Check(event.status());
    }
  }

  absl::Status Advance(Client& client, const esdp::Event& event) {
    // The client has been told, and a receive waits for its answer. What ends the one with an error
    // ends the other too, and until that has its event the memory has to stay.
    if (event.type == esdp::EventType::kShutdown) return absl::OkStatus();
    if (event.type == esdp::EventType::kRecv) return OnReceive(client, event);
    if (!event.ok()) return event.status();
    client.echoed += event.bytes;
    return Receive(client);
  }

  absl::Status OnReceive(Client& client, const esdp::Event& event) {
    if (event.kind == esdp::ErrorKind::kCancelled) return Receive(client);
    if (event.kind == esdp::ErrorKind::kDeadlineExceeded) return SayGoodbye(client);
    if (!event.ok()) return event.status();
    if (event.eof()) {
      return client.socket.Close(esdp::CloseMode::kGraceful, {queue_, 0, last_}).status();
    }
    if (client.told) return Receive(client);  // too late to be answered
    const esdp::Slice received = Value(client.region.slice(0, event.bytes));
    return client.socket.Send(received, esdp::SendFlags::kNone, {queue_}).status();
  }

  // Half of the connection stays open: the client may be sending, and leaves when it is done.
  absl::Status SayGoodbye(Client& client) {
    client.told = true;
    const absl::Status status = client.socket.Shutdown({queue_}).status();
    return status.ok() ? Receive(client) : status;
  }

  absl::Status Receive(Client& client) {
    esdp::OpArgs args = {queue_};
    if (stopping() && !client.told) args.deadline = context_.After(kQuiet);
    return client.socket.Recv(client.region.slice(), esdp::RecvFlags::kNone, args).status();
  }

  const std::chrono::seconds grace_;
  StopSignals signals_;  // before the Context: whatever thread there is has them blocked
  esdp::Context context_;
  esdp::EventQueue queue_;
  esdp::Socket listener_;
  esdp::OpId accept_ = esdp::OpId::kNone;
  std::map<esdp::SocketId, Client> clients_;
  absl::Time last_ = absl::InfiniteFuture();  // of everything, once it stops
  bool listening_ = true;
  size_t lost_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // each line at once, also into a pipe
  const std::string host = samples::Argument(argc, argv, "--listen", "127.0.0.1");
  const std::string port = samples::Argument(argc, argv, "--port", "0");
  const int grace = std::atoi(samples::Argument(argc, argv, "--grace", "10"));
  GracefulServer server(Value(esdp::Address::Parse(host + ":" + port)),
                        std::chrono::seconds(grace));
  return server.Run() ? 0 : 1;
}
