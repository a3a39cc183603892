// Sends a text and prints what comes back.
//
//   echo_client --port PORT [--connect ADDRESS] [--text TEXT]

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "samples/arguments.h"

using samples::Value;

namespace {

// Waits for the next event and ends the program if it tells of an error.
esdp::Event Await(esdp::EventQueue& queue) {
  esdp::Event event;
  Value(queue.Dequeue(absl::MakeSpan(&event, 1)));
  samples::Check(event.status());
  return event;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string host = samples::Argument(argc, argv, "--connect", "127.0.0.1");
  const std::string port = samples::Argument(argc, argv, "--port", "7471");
  const std::string text = samples::Argument(argc, argv, "--text", "hello");

  esdp::Context context = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::EventQueue queue = Value(context.CreateQueue({}));
  std::vector<std::byte> memory(std::max<size_t>(text.size(), 1));
  const esdp::Region region = Value(context.Register(absl::MakeSpan(memory)));

  const esdp::Address server = Value(esdp::Address::Parse(host + ":" + port));
  esdp::Socket socket = Value(context.CreateSocket(server.family()));
  Value(socket.Connect(server, {queue}));
  Await(queue);

  std::memcpy(memory.data(), text.data(), text.size());
  Value(socket.Send(region.slice(), esdp::SendFlags::kNone, {queue}));
  Await(queue);  // the memory is ours again

  Value(socket.Recv(region.slice(), esdp::RecvFlags::kWaitAll, {queue}));
  const esdp::Event answer = Await(queue);
  std::printf("%.*s\n", static_cast<int>(answer.bytes), reinterpret_cast<char*>(memory.data()));

  Value(socket.Close(esdp::CloseMode::kGraceful, {queue}));
  Await(queue);
}
