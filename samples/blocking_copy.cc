// Blocking calls, as over TCP: a file, or so many MiB, goes through a Stream from memory that nobody
// registered, and a thread at the other end compares what it reads. What is large goes zero-copy all
// the same: each call registers what it needs, and has let go of it when it returns.
//
//   blocking_copy [--file PATH] [--mib N]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "esdp/stream.h"
#include "samples/arguments.h"

using samples::Check;
using samples::Value;

namespace {

constexpr size_t kPieceBytes = 4 << 20;

std::vector<std::byte> FromFile(const char* path) {
  std::FILE* const file = std::fopen(path, "rb");
  if (file == nullptr) {
    std::perror(path);
    std::exit(1);
  }
  std::vector<std::byte> bytes, piece(kPieceBytes);
  while (const size_t size = std::fread(piece.data(), 1, piece.size(), file)) {
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(size));
  }
  std::fclose(file);
  return bytes;
}

std::vector<std::byte> MadeUp(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i ^ i >> 8) * 31 >> 4);
  return bytes;
}

void Write(esdp::Stream& stream, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    // All of it, unless there is a deadline or a signal.
    bytes = bytes.subspan(Value(stream.Write(piece)));
  }
}

// How many bytes came; whether they are `wanted`.
struct Arrived {
  size_t bytes = 0;
  bool equal = true;
  esdp::StreamStats stats;
};

Arrived Read(esdp::Stream& stream, std::span<const std::byte> wanted) {
  Arrived arrived;
  std::vector<std::byte> piece(kPieceBytes);
  while (const size_t size = Value(stream.Read(absl::MakeSpan(piece)))) {
    arrived.equal = arrived.equal && size <= wanted.size() - arrived.bytes &&
                    std::equal(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(size),
                               wanted.begin() + static_cast<ptrdiff_t>(arrived.bytes));
    arrived.bytes += size;
  }
  arrived.equal = arrived.equal && arrived.bytes == wanted.size();
  arrived.stats = stream.Stats();
  return arrived;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const path = samples::Argument(argc, argv, "--file", nullptr);
  const auto mib = static_cast<size_t>(std::atoi(samples::Argument(argc, argv, "--mib", "64")));
  const std::vector<std::byte> source = path != nullptr ? FromFile(path) : MadeUp(mib << 20);

  esdp::Context context = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::StreamListener listener =
      Value(esdp::StreamListener::Listen(context, esdp::Address::Loopback(esdp::Family::kIpv4, 0)));
  Arrived arrived;
  std::thread reader([&] {
    esdp::Stream stream = Value(listener.Accept());
    arrived = Read(stream, source);
    Check(stream.Close());
  });

  esdp::Stream stream = Value(esdp::Stream::Connect(context, listener.local()));
  const auto begin = std::chrono::steady_clock::now();
  Write(stream, source);
  const esdp::StreamStats sent = stream.Stats();
  Check(stream.Close());  // waits until the peer has everything
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  reader.join();

  std::printf("%zu bytes have arrived, %s: %.0f MB/s\n", arrived.bytes,
              arrived.equal ? "all equal" : "NOT EQUAL",
              static_cast<double>(arrived.bytes) / 1e6 / took.count());
  std::printf("%ju of them were sent zero-copy, %ju received so\n",
              static_cast<uintmax_t>(sent.socket.bytes_sent_zero_copy),
              static_cast<uintmax_t>(arrived.stats.socket.bytes_received_zero_copy));
  std::printf(
      "registered for calls: %ju times to send, %ju to receive; still registered: %ju bytes\n",
      static_cast<uintmax_t>(sent.registrations),
      static_cast<uintmax_t>(arrived.stats.registrations),
      static_cast<uintmax_t>(sent.registered_now + arrived.stats.registered_now));
  return arrived.equal ? 0 : 1;
}
