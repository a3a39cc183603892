// Many connections in one process, on one queue, in one thread: each event names its operation by
// the cookie, so what a connection is at is found without a search.
//
//   many_connections [--connections N]

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "samples/pair.h"

using samples::Value;

namespace {

constexpr uint64_t kBytes = 64;

// A connection is a descriptor at each end. Without them, peers would wait for an accept in vain.
void NeedDescriptors(rlim_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min(count, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == count) return;
  std::fprintf(stderr, "%ju descriptors are needed: raise the limit (ulimit -Hn)\n",
               static_cast<uintmax_t>(count));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const auto count =
      static_cast<size_t>(std::atoi(samples::Argument(argc, argv, "--connections", "1000")));
  NeedDescriptors(2 * count + 100);

  esdp::Context context = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::EventQueue queue = Value(context.CreateQueue({.depth = static_cast<uint32_t>(4 * count)}));
  // Small private buffers: 4 of 1 KiB at each end in place of 16 of 16 KiB.
  const esdp::SocketOptions small = {.receive_buffers = 4, .receive_buffer_bytes = 1024};
  // One region for all of them; each connection has a slice for each of its ends, to receive in.
  // What the clients send is shared by all.
  std::vector<std::byte> memory((2 * count + 1) * kBytes);
  const esdp::Region region = Value(context.Register(absl::MakeSpan(memory)));
  const auto slice = [&](size_t end) { return Value(region.slice(end * kBytes, kBytes)); };

  esdp::Socket listener = samples::Listen(context, 64, small);
  std::vector<samples::Pair> pairs;
  while (pairs.size() < count) pairs.push_back(samples::Connect(context, queue, listener, small));

  // The server's end of connection i waits under cookie 2i, the client's under 2i + 1.
  for (size_t i = 0; i < count; ++i) {
    Value(pairs[i].server.Recv(slice(2 * i), esdp::RecvFlags::kWaitAll, {queue, 2 * i}));
    Value(pairs[i].client.Recv(slice(2 * i + 1), esdp::RecvFlags::kWaitAll, {queue, 2 * i + 1}));
  }
  for (samples::Pair& pair : pairs) {
    Value(pair.client.Send(slice(2 * count), esdp::SendFlags::kNone, {queue}));
  }

  // Each server sends back what it got; each client is done when it has its own.
  size_t answered = 0;
  while (answered < count) {
    const esdp::Event event = samples::Await(queue);
    if (event.type != esdp::EventType::kRecv) continue;
    if (event.cookie % 2 == 1) {
      ++answered;
      continue;
    }
    Value(
        pairs[event.cookie / 2].server.Send(slice(event.cookie), esdp::SendFlags::kNone, {queue}));
  }
  std::printf("%zu connections, %zu answers of %ju bytes, one queue, one thread\n", count, answered,
              static_cast<uintmax_t>(kBytes));
}
