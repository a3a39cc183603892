// The smallest whole program: client and server in one process. A megabyte goes from registered
// memory to registered memory, and nobody copies it.

#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"

int main() {
  esdp::Context context = esdp::Context::Open({.fabric = "qpip"}).value();
  esdp::EventQueue queue = context.CreateQueue({.depth = 16}).value();
  std::array<esdp::Event, 2> events;

  // All memory that sends and receives name is registered first, once.
  std::vector<std::byte> memory(2 << 20);
  esdp::Region region = context.Register(absl::MakeSpan(memory)).value();
  const esdp::Slice source = region.slice(0, 1 << 20).value();
  const esdp::Slice target = region.slice(1 << 20, 1 << 20).value();

  // Every operation is accepted at once and ends with an event.
  esdp::Socket listener = context.CreateSocket(esdp::Family::kIpv4).value();
  if (!listener.Listen(1).ok()) return 1;
  listener.Accept(1, {queue}).value();
  esdp::Socket client = context.CreateSocket(esdp::Family::kIpv4).value();
  client.Connect(esdp::Address::Loopback(esdp::Family::kIpv4, listener.local().port()), {queue})
      .value();
  queue.Dequeue(absl::MakeSpan(events), {.min_events = 2}).value();
  const bool first = events[0].type == esdp::EventType::kAccept;
  esdp::Socket server = context.TakeAccepted(events[first ? 0 : 1].accepted).value();

  std::strcpy(reinterpret_cast<char*>(memory.data()), "hello, registered memory");
  server.Recv(target, esdp::RecvFlags::kWaitAll, {queue}).value();
  client.Send(source, esdp::SendFlags::kNone, {queue}).value();
  queue.Dequeue(absl::MakeSpan(events), {.min_events = 2}).value();
  for (const esdp::Event& event : events) {
    std::printf("%s: %s, %zu bytes, %zu of them zero-copy\n", esdp::ToString(event.type),
                event.status().ToString().c_str(), event.bytes, event.bytes_zero_copy);
  }
  std::printf("%s\n", reinterpret_cast<const char*>(&memory[1 << 20]));
}
