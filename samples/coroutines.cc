// A server and a client as coroutines: straight code, one thread, any number of connections.
// awaitable.h is all it takes.
//
//   coroutines [--clients N]

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "samples/awaitable.h"
#include "samples/pair.h"

namespace {

using esdp::Event;
using esdp::OpArgs;
using samples::Loop;
using samples::Task;
using samples::Value;

constexpr size_t kBytes = 4096;

// A coroutine's parameters are copied into its frame; references must outlive it.

// Sends back what comes, until the peer has no more.
Task Echo(esdp::Context& context, Loop& loop, esdp::Socket socket) {
  std::vector<std::byte> memory(kBytes);
  const esdp::Region region = Value(context.Register(absl::MakeSpan(memory)));
  for (;;) {
    const Event got = co_await loop.Do(
        [&](OpArgs args) { return socket.Recv(region.slice(), esdp::RecvFlags::kNone, args); });
    if (!got.ok() || got.eof()) break;
    const esdp::Slice bytes = Value(region.slice(0, got.bytes));
    const Event sent = co_await loop.Do(
        [&](OpArgs args) { return socket.Send(bytes, esdp::SendFlags::kNone, args); });
    if (!sent.ok()) break;
  }
  co_await loop.Do([&](OpArgs args) { return socket.Close(esdp::CloseMode::kGraceful, args); });
}

Task Serve(esdp::Context& context, Loop& loop, esdp::Socket listener, int clients) {
  for (int i = 0; i < clients; ++i) {
    const Event event = co_await loop.Do([&](OpArgs args) { return listener.Accept(1, args); });
    if (!event.ok()) co_return;
    Echo(context, loop, Value(context.TakeAccepted(event.accepted)));
  }
}

Task Ask(esdp::Context& context, Loop& loop, esdp::Address server, int number) {
  esdp::Socket socket = Value(context.CreateSocket(server.family()));
  Event event = co_await loop.Do([&](OpArgs args) { return socket.Connect(server, args); });
  samples::Check(event.status());
  for (int round = 1; round <= 2; ++round) {
    std::string text = "client " + std::to_string(number) + ", round " + std::to_string(round);
    const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size());
    event = co_await loop.Do(
        [&](OpArgs args) { return socket.SendCopy(bytes, esdp::SendFlags::kNone, args); });
    samples::Check(event.status());
    text.assign(text.size(), ' ');
    event = co_await loop.Do(
        [&](OpArgs args) { return socket.RecvCopy(bytes, esdp::RecvFlags::kWaitAll, args); });
    samples::Check(event.status());
    std::printf("%s\n", text.c_str());
  }
  co_await loop.Do([&](OpArgs args) { return socket.Shutdown(args); });
}

}  // namespace

int main(int argc, char** argv) {
  const int clients = std::atoi(samples::Argument(argc, argv, "--clients", "1"));
  esdp::Context context = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::EventQueue queue = Value(context.CreateQueue({}));
  Loop loop(queue);
  esdp::Socket listener = samples::Listen(context, clients);
  const esdp::Address server = listener.local();
  Serve(context, loop, std::move(listener), clients);
  for (int i = 1; i <= clients; ++i) Ask(context, loop, server, i);
  samples::Check(loop.Run());
}
