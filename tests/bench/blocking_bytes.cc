// Both ends of a blocking transfer in one process, for counting what it takes:
//
//   blocking_bytes FABRIC ADDRESS copy|zcopy BYTES TIMES
//
// Writes so many bytes so many times, from one place and into one place. Prints how many of these
// bytes the processor has copied at both ends.

#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "esdp/context.h"
#include "esdp/stream.h"
#include "samples/arguments.h"

namespace {

using samples::Check;
using samples::Value;

uint64_t Copied(const esdp::Stream& stream) { return stream.Stats().socket.payload_copy_bytes; }

// An end that is counted is slow, and must not lose its patience.
esdp::StreamOptions OptionsOf(const std::string& path) {
  return {.zcopy_min = path == "zcopy" ? 65'536 : esdp::kNever, .patience = absl::Seconds(60)};
}

uint64_t ReadAll(esdp::StreamListener& listener, const std::string& path, size_t bytes) {
  esdp::Stream stream = Value(listener.Accept(OptionsOf(path)));
  std::vector<std::byte> memory(bytes);
  while (Value(stream.Read(absl::MakeSpan(memory), {.min = bytes})) > 0) {
  }
  const uint64_t copied = Copied(stream);
  Check(stream.Close());
  return copied;
}

uint64_t WriteAll(esdp::Stream& stream, size_t bytes, uint64_t times) {
  const std::vector<std::byte> memory(bytes, std::byte{1});
  for (uint64_t i = 0; i < times; ++i) Value(stream.Write(memory));
  const uint64_t copied = Copied(stream);
  Check(stream.ShutdownWrite());
  Check(stream.Close());
  return copied;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "%s FABRIC ADDRESS copy|zcopy BYTES TIMES\n", argv[0]);
    return 2;
  }
  const std::string path = argv[3];
  const auto bytes = static_cast<size_t>(std::stoul(argv[4]));
  esdp::Context near = Value(esdp::Context::Open({.fabric = argv[1]}));
  esdp::Context far = Value(esdp::Context::Open({.fabric = argv[1]}));
  const std::string host = argv[2];
  esdp::StreamListener listener =
      Value(esdp::StreamListener::Listen(far, Value(esdp::Address::Parse(host + ":0"))));
  const std::string at = host + ":" + std::to_string(listener.local().port());
  uint64_t copied = 0;
  std::thread reader([&] { copied = ReadAll(listener, path, bytes); });
  esdp::Stream stream =
      Value(esdp::Stream::Connect(near, Value(esdp::Address::Parse(at)), OptionsOf(path)));
  const uint64_t copied_here = WriteAll(stream, bytes, std::stoull(argv[5]));
  reader.join();
  std::printf("%llu\n", static_cast<unsigned long long>(copied + copied_here));
  return 0;
}
