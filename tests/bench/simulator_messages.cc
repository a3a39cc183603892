// How many SDP messages the simulator carries in a second of one processor: two Contexts in one
// world, a stream of sends that fill one message each, all of the stack below the public interface.
//
//   simulator_messages [seconds]      tells the rate
//   simulator_messages count N        carries N sends and no more: for who counts instructions

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
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

// Keeps sends outstanding while `goes_on`, which is asked with how many have ended.
void Stream(End& client, End& server, const std::function<bool(uint64_t)>& goes_on) {
  for (size_t i = 0; i < kOutstanding; ++i) {
    client.Send();
    server.Receive();
  }
  std::vector<esdp::Event> events(64);
  for (uint64_t ended = 0; goes_on(ended);) {
    for (size_t i = *server.queue.Dequeue(absl::MakeSpan(events)); i > 0; --i) {
      server.Receive();
    }
    for (size_t i = *client.queue.TryDequeue(absl::MakeSpan(events)); i > 0; --i, ++ended) {
      client.Send();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  End server(nullptr);
  End client(&server.context);
  Connect(client, server);
  if (argc == 3 && std::strcmp(argv[1], "count") == 0) {
    const uint64_t wanted = std::strtoull(argv[2], nullptr, 10);
    Stream(client, server, [wanted](uint64_t ended) { return ended < wanted; });
    return 0;
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  const double begin = CpuSeconds();
  Stream(client, server, [=](uint64_t) { return CpuSeconds() - begin < seconds; });
  const double spent = CpuSeconds() - begin;
  const esdp::SocketStats stats = client.socket.Stats();
  const auto messages = static_cast<double>(stats.messages_sent + stats.messages_received);
  std::printf("%.0f messages a second of one processor\n", messages / spent);
  return 0;
}
