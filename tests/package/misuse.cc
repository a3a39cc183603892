// Posts two receives into the same bytes, as no program should, and prints what the library says to
// the second.

#include <array>
#include <cstdio>
#include <span>

#include "absl/types/span.h"
#include "esdp/context.h"

int main() {
  std::array<std::byte, 100> memory{};
  esdp::Context context = esdp::Context::Open({.fabric = "qpip"}).value();
  esdp::EventQueue queue = context.CreateQueue({}).value();
  esdp::Region region = context.Register(std::span(memory)).value();
  esdp::Socket listener = context.CreateSocket(esdp::Family::kIpv4).value();
  const esdp::Address here = esdp::Address::Loopback(esdp::Family::kIpv4, 0);
  if (!listener.Bind(here).ok() || !listener.Listen(1).ok()) return 1;
  esdp::Socket client = context.CreateSocket(esdp::Family::kIpv4).value();
  client.Connect(listener.local(), {queue}).value();
  std::array<esdp::Event, 1> events;
  queue.Dequeue(std::span(events)).value();

  client.Recv(region.slice(), esdp::RecvFlags::kNone, {queue}).value();
  const auto second = client.Recv(region.slice(50, 1).value(), esdp::RecvFlags::kNone, {queue});
  std::printf("%s\n", second.ok() ? "accepted" : second.status().ToString().c_str());
}
