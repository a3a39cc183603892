// How many SDP messages the simulator carries in a second of one processor: two Contexts in one
// world, a stream of sends that fill one message each, all of the stack below the public interface.
//
//   simulator_messages [seconds]

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "esdp/context.h"

namespace {

constexpr size_t kBytes = 1024;
constexpr size_t kOutstanding = 32;

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// One end: a context, a queue, a socket, and memory for what is outstanding.
struct End {
  explicit End(esdp::Context* world_of)
      : context(*esdp::Context::Open({.fabric = "sim", .world_of = world_of})),
        queue(*context.CreateQueue({.depth = 256})),
        region(*context.Allocate(kBytes * kOutstanding)) {}

  void Send() { (void)*socket.Send(*region.slice(0, kBytes), {}, {.queue = queue}); }
  // Receives end in their order.
  void Receive() {
    const uint64_t at = receives++ % kOutstanding * kBytes;
    (void)*socket.Recv(*region.slice(at, kBytes), {}, {.queue = queue});
  }

  esdp::Context context;
  esdp::EventQueue queue;
  esdp::Region region;
  esdp::Socket socket;
  uint64_t receives = 0;
};

void Connect(End& client, End& server) {
  const esdp::SocketOptions options{.coalesce_max = 0};
  esdp::Socket listener =
      *server.context.CreateSocket(esdp::Family::kIpv4, esdp::SocketType::kStream, options);
  (void)listener.Bind(esdp::Address::Loopback(esdp::Family::kIpv4, 0));
  (void)listener.Listen(1);
  (void)*listener.Accept(1, {.queue = server.queue});
  client.socket =
      *client.context.CreateSocket(esdp::Family::kIpv4, esdp::SocketType::kStream, options);
  (void)*client.socket.Connect(listener.local(), {.queue = client.queue});
  esdp::Event event;
  (void)*server.queue.Dequeue(absl::MakeSpan(&event, 1));
  server.socket = *server.context.TakeAccepted(event.accepted);
  (void)*client.queue.Dequeue(absl::MakeSpan(&event, 1));
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  End server(nullptr);
  End client(&server.context);
  Connect(client, server);
  for (size_t i = 0; i < kOutstanding; ++i) {
    client.Send();
    server.Receive();
  }
  const double begin = CpuSeconds();
  std::vector<esdp::Event> events(64);
  while (CpuSeconds() - begin < seconds) {
    for (size_t i = *server.queue.Dequeue(absl::MakeSpan(events)); i > 0; --i) {
      server.Receive();
    }
    for (size_t i = *client.queue.TryDequeue(absl::MakeSpan(events)); i > 0; --i) {
      client.Send();
    }
  }
  const double spent = CpuSeconds() - begin;
  const esdp::SocketStats stats = client.socket.Stats();
  const auto messages = static_cast<double>(stats.messages_sent + stats.messages_received);
  std::printf("%.0f messages a second of one processor\n", messages / spent);
  return 0;
}
