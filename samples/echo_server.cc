// Sends back whatever arrives, on any number of connections at once, from one thread and one queue.
//
//   echo_server [--port PORT] [--listen ADDRESS] [--clients N]   (N: end after so many; 0: never)

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "samples/arguments.h"

namespace {

using samples::Check;
using samples::Value;

constexpr size_t kBufferBytes = 64 * 1024;

// One connection: a buffer of its own, and what it waits for.
struct Client {
  esdp::Socket socket;
  std::vector<std::byte> memory = std::vector<std::byte>(kBufferBytes);
  esdp::Region region;
  uint64_t echoed = 0;
};

class EchoServer {
 public:
  EchoServer(const esdp::Address& address, int clients)
      : context_(Value(esdp::Context::Open({.fabric = "qpip"}))),
        queue_(Value(context_.CreateQueue({}))),
        listener_(Value(context_.CreateSocket(address.family()))) {
    Check(listener_.Bind(address));
    Check(listener_.Listen(16));
    Value(listener_.Accept(clients, {queue_}));
    std::printf("listening on %s\n", listener_.local().ToString().c_str());
    std::fflush(stdout);
  }

  // Until the accept has ended and the last client has gone.
  void Run() {
    std::array<esdp::Event, 32> events;
    while (accepting_ || !clients_.empty()) {
      const size_t count = Value(queue_.Dequeue(absl::MakeSpan(events)));
      for (size_t i = 0; i < count; ++i) OnEvent(events[i]);
    }
  }

 private:
  void OnEvent(const esdp::Event& event) {
    if (event.type == esdp::EventType::kAccept) return OnAccepted(event);
    const auto found = clients_.find(event.socket);
    if (found == clients_.end()) return;  // of a client that has been given up
    Client& client = found->second;
    if (!event.ok()) {
      std::fprintf(stderr, "client lost: %s\n", event.status().ToString().c_str());
      clients_.erase(found);
    } else if (event.type == esdp::EventType::kSend) {
      client.echoed += event.bytes;
      Receive(client);
    } else if (event.type == esdp::EventType::kRecv && event.eof()) {
      Value(client.socket.Close(esdp::CloseMode::kGraceful, {queue_}));
    } else if (event.type == esdp::EventType::kRecv) {
      const esdp::Slice received = Value(client.region.slice(0, event.bytes));
      Value(client.socket.Send(received, esdp::SendFlags::kNone, {queue_}));
    } else if (event.type == esdp::EventType::kClose) {
      std::printf("client served: %zu bytes\n", client.echoed);
      clients_.erase(found);
    }
  }

  void OnAccepted(const esdp::Event& event) {
    if (event.terminal()) accepting_ = false;
    Check(event.status());
    esdp::Socket socket = Value(context_.TakeAccepted(event.accepted));
    Client& client = clients_[socket.id()];
    client.socket = std::move(socket);
    client.region = Value(context_.Register(absl::MakeSpan(client.memory)));
    Receive(client);
  }

  void Receive(Client& client) {
    Value(client.socket.Recv(client.region.slice(), esdp::RecvFlags::kNone, {queue_}));
  }

  esdp::Context context_;
  esdp::EventQueue queue_;
  esdp::Socket listener_;
  std::map<esdp::SocketId, Client> clients_;
  bool accepting_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string host = samples::Argument(argc, argv, "--listen", "127.0.0.1");
  const std::string port = samples::Argument(argc, argv, "--port", "0");
  const int clients = std::atoi(samples::Argument(argc, argv, "--clients", "0"));
  EchoServer(Value(esdp::Address::Parse(host + ":" + port)), clients).Run();
}
