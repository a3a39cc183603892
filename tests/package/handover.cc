// Hands memory from thread to thread by events alone; with an argument it does not wait for them,
// and races.

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"

namespace {

constexpr size_t kPieces = 100;
constexpr size_t kBytes = 4096;

// With a bound, since a library for development refuses to wait without end before anything is
// posted.
esdp::Event Next(esdp::Context& context, esdp::EventQueue& queue) {
  std::array<esdp::Event, 1> event;
  queue.Dequeue(std::span(event), {.deadline = context.After(std::chrono::minutes(1))}).value();
  return event[0];
}

}  // namespace

int main(int argc, char**) {
  std::vector<std::byte> from(kPieces * kBytes);
  std::vector<std::byte> to(kPieces * kBytes);
  esdp::Context context = esdp::Context::Open({.fabric = "qpip"}).value();
  esdp::EventQueue sent = context.CreateQueue({}).value();
  esdp::EventQueue received = context.CreateQueue({}).value();
  const esdp::Region source = context.Register(std::span(from)).value();
  const esdp::Region target = context.Register(std::span(to)).value();
  esdp::Socket listener = context.CreateSocket(esdp::Family::kIpv4).value();
  const esdp::Address here = esdp::Address::Loopback(esdp::Family::kIpv4, 0);
  if (!listener.Bind(here).ok() || !listener.Listen(1).ok()) return 1;
  esdp::Socket client = context.CreateSocket(esdp::Family::kIpv4).value();
  client.Connect(listener.local(), {sent}).value();
  listener.Accept(1, {received}).value();
  if (!Next(context, sent).ok()) return 1;
  esdp::Socket server = context.TakeAccepted(Next(context, received).accepted).value();

  const bool waits = argc == 1;
  std::thread poster([&] {
    for (size_t i = 0; i < kPieces; ++i) {
      server.Recv(target.slice(i * kBytes, kBytes).value(), esdp::RecvFlags::kWaitAll, {received})
          .value();
      std::memset(&from[i * kBytes], static_cast<int>(i), kBytes);
      client.Send(source.slice(i * kBytes, kBytes).value(), esdp::SendFlags::kNone, {sent}).value();
    }
  });
  std::thread cleaner([&] {
    for (size_t i = 0; i < kPieces; ++i) {
      if (waits && !Next(context, sent).ok()) return;
      std::memset(&from[i * kBytes], 0, kBytes);
    }
  });
  size_t sum = 0;
  for (size_t i = 0; i < kPieces; ++i) {
    if (waits && !Next(context, received).ok()) return 1;
    sum += static_cast<size_t>(to[i * kBytes]);
    std::memset(&to[i * kBytes], 0, kBytes);
  }
  poster.join();
  cleaner.join();
  if (waits) std::printf("%zu\n", sum);
}
