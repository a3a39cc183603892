// A server and a client as coroutines: straight code, one thread, any number of connections.
// esdp/coroutine.h is all it takes.
//
//   coroutines [--clients N]

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "esdp/coroutine.h"
#include "samples/pair.h"

namespace {

using esdp::Dispatcher;
using esdp::OpArgs;
using esdp::Outcome;
using esdp::Task;
using samples::Value;

constexpr size_t kBytes = 4096;

// A coroutine's parameters are copied into its frame; references must outlive it.

// Sends back what comes, until the peer has no more.
Task<void> Echo(esdp::Context& context, Dispatcher& loop, esdp::Socket socket) {
  std::vector<std::byte> memory(kBytes);
  const esdp::Region region = Value(context.Register(absl::MakeSpan(memory)));
  for (;;) {
    const Outcome got = co_await loop.Do(socket, [&](OpArgs args) {
      return socket.Recv(region.slice(), esdp::RecvFlags::kNone, args);
    });
    if (!got.ok() || got.event.eof()) break;
    const esdp::Slice bytes = Value(region.slice(0, got.event.bytes));
    const Outcome sent = co_await loop.Do(
        socket, [&](OpArgs args) { return socket.Send(bytes, esdp::SendFlags::kNone, args); });
    if (!sent.ok()) break;
  }
  co_await loop.Finish(socket,
                       [&](OpArgs args) { return socket.Close(esdp::CloseMode::kGraceful, args); });
}

Task<void> Serve(esdp::Context& context, Dispatcher& loop, esdp::Socket listener, int clients) {
  for (int i = 0; i < clients; ++i) {
    const Outcome outcome =
        co_await loop.Do(listener, [&](OpArgs args) { return listener.Accept(1, args); });
    if (!outcome.ok()) co_return;
    loop.Spawn(Echo(context, loop, Value(context.TakeAccepted(outcome.event.accepted))));
  }
}

Task<void> Ask(esdp::Context& context, Dispatcher& loop, esdp::Address server, int number) {
  esdp::Socket socket = Value(context.CreateSocket(server.family()));
  Outcome outcome =
      co_await loop.Do(socket, [&](OpArgs args) { return socket.Connect(server, args); });
  samples::Check(outcome.status);
  for (int round = 1; round <= 2; ++round) {
    std::string text = "client " + std::to_string(number) + ", round " + std::to_string(round);
    const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size());
    outcome = co_await loop.Do(
        socket, [&](OpArgs args) { return socket.SendCopy(bytes, esdp::SendFlags::kNone, args); });
    samples::Check(outcome.status);
    text.assign(text.size(), ' ');
    outcome = co_await loop.Do(socket, [&](OpArgs args) {
      return socket.RecvCopy(bytes, esdp::RecvFlags::kWaitAll, args);
    });
    samples::Check(outcome.status);
    std::printf("%s\n", text.c_str());
  }
  co_await loop.Do(socket, [&](OpArgs args) { return socket.Shutdown(args); });
}

}  // namespace

int main(int argc, char** argv) {
  const int clients = std::atoi(samples::Argument(argc, argv, "--clients", "1"));
  esdp::Context context = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::EventQueue queue = Value(context.CreateQueue({}));
  Dispatcher loop(queue);
  esdp::Socket listener = samples::Listen(context, clients);
  const esdp::Address server = listener.local();
  loop.Spawn(Serve(context, loop, std::move(listener), clients));
  for (int i = 1; i <= clients; ++i) loop.Spawn(Ask(context, loop, server, i));
  samples::Check(loop.Run());
}
