// A sender that is faster than its peer: posts are refused when the queue or the bounce pool is
// full, and the answer to both is the same: take an event, then post again. Nothing is lost,
// nothing spins, nothing grows.
//
//   back_pressure [--messages N]

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "samples/pair.h"

using samples::Value;

namespace {

constexpr size_t kMessageBytes = 16 * 1024;

// Whether it is worth while to take an event and try again. Every other error would only come back.
bool IsBackPressure(const absl::Status& status) {
  const esdp::ErrorKind kind = esdp::KindOf(status);
  return kind == esdp::ErrorKind::kQueueFull || kind == esdp::ErrorKind::kSocketWindow;
}

// Sends `messages` messages; returns how often it had to wait for one to end.
int SendAll(esdp::Socket& socket, esdp::EventQueue& queue, int messages) {
  const std::vector<std::byte> message(kMessageBytes, std::byte{'x'});
  int sent = 0, ended = 0, waits = 0;
  while (ended < messages) {
    if (sent < messages) {
      const auto op =
          socket.SendCopy(absl::MakeConstSpan(message), esdp::SendFlags::kNone, {queue});
      if (op.ok()) {
        ++sent;
        continue;
      }
      if (!IsBackPressure(op.status())) samples::Check(op.status());
      ++waits;
    }
    samples::Await(queue);  // frees a slot of the queue, and the bounce memory of one send
    ++ended;
  }
  return waits;
}

// Reads slowly: one receive at a time.
void ReceiveAll(esdp::Socket& socket, esdp::EventQueue& queue, const esdp::Region& region,
                uint64_t bytes) {
  while (bytes > 0) {
    Value(socket.Recv(region.slice(), esdp::RecvFlags::kNone, {queue}));
    bytes -= samples::Await(queue).bytes;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int messages = std::atoi(samples::Argument(argc, argv, "--messages", "2000"));
  // Room for four messages in the bounce pool, and for eight operations in the sender's queue.
  esdp::Context context =
      Value(esdp::Context::Open({.fabric = "qpip", .bounce_pool_bytes = 4 * kMessageBytes}));
  esdp::EventQueue queue = Value(context.CreateQueue({.depth = 8}));
  esdp::EventQueue receivers_queue = Value(context.CreateQueue({.depth = 8}));
  std::vector<std::byte> memory(kMessageBytes);
  const esdp::Region region = Value(context.Register(absl::MakeSpan(memory)));
  auto [sender, receiver] = samples::Connect(context, queue);

  std::thread reader([&, &socket = receiver] {
    ReceiveAll(socket, receivers_queue, region, static_cast<uint64_t>(messages) * kMessageBytes);
  });
  const int waits = SendAll(sender, queue, messages);
  reader.join();
  std::printf("%d messages sent and received; %s\n", messages,
              waits > 0 ? "the sender had to wait, and lost none" : "the sender never had to wait");
}
