// One region, sent to many sockets at once without a copy: sends only read, so any number of them
// may share a slice.
//
//   fan_out [--receivers N] [--bytes N]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "samples/pair.h"

using samples::Value;

int main(int argc, char** argv) {
  const auto receivers =
      static_cast<size_t>(std::atoi(samples::Argument(argc, argv, "--receivers", "8")));
  const auto bytes =
      static_cast<size_t>(std::atoll(samples::Argument(argc, argv, "--bytes", "4194304")));

  esdp::Context context = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::EventQueue queue = Value(context.CreateQueue({}));
  std::vector<std::byte> source(bytes);
  for (size_t i = 0; i < bytes; ++i) source[i] = static_cast<std::byte>(i * 31 >> 8);
  std::vector<std::byte> targets(receivers * bytes);

  // Registered once for all sockets; the source cannot be written to by anybody.
  const esdp::Region from = Value(context.RegisterReadOnly(absl::MakeConstSpan(source)));
  const esdp::Region to = Value(context.Register(absl::MakeSpan(targets)));

  std::vector<samples::Pair> pairs;
  for (size_t i = 0; i < receivers; ++i) pairs.push_back(samples::Connect(context, queue));
  for (size_t i = 0; i < receivers; ++i) {
    const esdp::Slice target = Value(to.slice(i * bytes, bytes));
    Value(pairs[i].server.Recv(target, esdp::RecvFlags::kWaitAll, {queue}));
  }
  for (samples::Pair& pair : pairs) {
    Value(pair.client.Send(from.slice(), esdp::SendFlags::kNone, {queue}));
  }
  // Now `from` is busy: Close would be refused until the last send has ended.
  for (size_t i = 0; i < 2 * receivers; ++i) samples::Await(queue);

  uint64_t copies = 0;
  for (const samples::Pair& pair : pairs) {
    copies += pair.client.Stats().payload_copies + pair.server.Stats().payload_copies;
  }
  const bool equal =
      std::all_of(pairs.begin(), pairs.end(), [&, i = size_t{0}](const auto&) mutable {
        return std::equal(source.begin(), source.end(), &targets[i++ * bytes]);
      });
  std::printf("%zu receivers have %zu bytes each from one region, %s; copies of payload: %ju\n",
              receivers, bytes, equal ? "all equal" : "NOT EQUAL", static_cast<uintmax_t>(copies));
  return equal ? 0 : 1;
}
