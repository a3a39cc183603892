// Operations that are to end before they have done their work: by a deadline, and by Cancel.
// Neither closes the connection, and the event always tells what became of it.

#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/time/time.h"
#include "samples/pair.h"

using samples::Value;

namespace {

void Tell(const char* what, const esdp::Event& event) {
  std::printf("%-31s %s, %ju bytes\n", what, event.ok() ? "ok" : esdp::ToString(event.kind),
              static_cast<uintmax_t>(event.bytes));
}

}  // namespace

int main() {
  esdp::Context context = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::EventQueue queue = Value(context.CreateQueue({}));
  std::vector<std::byte> memory(4096);
  const esdp::Region region = Value(context.Register(absl::MakeSpan(memory)));
  const esdp::Slice first = Value(region.slice(0, 1024));
  const esdp::Slice second = Value(region.slice(1024, 1024));
  auto [client, server] = samples::Connect(context, queue);

  // Times are on the Context's clock, which may be a simulated one.
  const absl::Time soon = context.Now() + absl::Milliseconds(20);
  Value(client.Recv(first, esdp::RecvFlags::kNone, {.queue = queue, .deadline = soon}));
  Tell("a receive with a deadline:", samples::Next(queue));

  // Cancel asks; only the event gives the memory back.
  const esdp::OpId op = Value(client.Recv(first, esdp::RecvFlags::kNone, {queue}));
  samples::Check(client.Cancel(op));
  Tell("a receive, cancelled:", samples::Next(queue));

  // Too late: what has ended stays ended, and its bytes are not lost.
  const esdp::OpId late = Value(client.Recv(first, esdp::RecvFlags::kNone, {queue}));
  std::strcpy(reinterpret_cast<char*>(&memory[1024]), "still connected");
  Value(server.Send(second, esdp::SendFlags::kNone, {queue}));
  esdp::Event event = samples::Next(queue);
  while (event.op != late) event = samples::Next(queue);
  const absl::Status refused = client.Cancel(late);
  Tell("a receive, cancelled too late:", event);
  std::printf("%-31s %s\n", "what Cancel said to that:", esdp::ToString(esdp::KindOf(refused)));
  std::printf("%s\n", reinterpret_cast<const char*>(memory.data()));
}
