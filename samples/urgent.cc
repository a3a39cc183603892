// One urgent byte overtakes what waits in the stream: the receiver hears of it before it has read
// anything, and finds it at its place in the stream.

#include <cstdio>
#include <vector>

#include "samples/pair.h"

using samples::Value;

int main() {
  constexpr size_t kText = 1 << 20;
  esdp::Context context = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::EventQueue queue = Value(context.CreateQueue({}));
  std::vector<std::byte> memory(2 * (kText + 1));
  const esdp::Region region = Value(context.Register(absl::MakeSpan(memory)));
  auto [sender, receiver] = samples::Connect(context, queue);

  // A megabyte that nobody reads, and behind it one urgent byte.
  memory[kText] = std::byte{'!'};
  Value(sender.Send(Value(region.slice(0, kText)), esdp::SendFlags::kNone, {queue}));
  Value(sender.Send(Value(region.slice(kText, 1)), esdp::SendFlags::kUrgent, {queue}));

  // The announcement does not wait for the bytes before it.
  Value(receiver.AwaitUrgent({queue}));
  samples::Await(queue);
  std::printf("an urgent byte is announced; %ju bytes have been received\n",
              static_cast<uintmax_t>(receiver.Stats().bytes_received_copied +
                                     receiver.Stats().bytes_received_zero_copy));

  // Read up to it: a receive ends with the urgent byte, however much room there is.
  size_t received = 0;
  bool urgent = false;
  while (!urgent) {
    const uint64_t offset = kText + 1 + received;
    Value(receiver.Recv(Value(region.slice(offset, memory.size() - offset)), esdp::RecvFlags::kNone,
                        {queue}));
    esdp::Event event = samples::Await(queue);
    while (event.type != esdp::EventType::kRecv) event = samples::Await(queue);  // the two sends
    received += event.bytes;
    urgent = (event.flags & esdp::kUrgent) != 0;
  }
  std::printf("received %zu bytes; the last one is urgent: %c\n", received,
              static_cast<char>(memory[kText + received]));
}
