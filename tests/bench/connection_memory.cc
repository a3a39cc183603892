// What one end of a connection costs in resident memory: opened and idle, and after traffic that
// has touched every private buffer. The kernel's socket buffers are not part of it.
//
//   connection_memory [CONNECTIONS]      prints: idle bytes, bytes after traffic

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/bench/loopback.h"

namespace {

using bench::Value;

// Pages of this process that are in memory, in bytes.
double Resident() {
  long size = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &resident) != 2) std::exit(1);
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Small sends pass through the send buffers, larger ones fill the peer's receive buffers.
void Exchange(bench::Loopback& loopback, esdp::Socket& from, esdp::Socket& to,
              const esdp::Region& region, uint64_t length, int times) {
  const esdp::Slice source = Value(region.slice(0, length));
  for (int i = 0; i < times; ++i) Value(from.Send(source, {}, {loopback.queue()}));
  for (int i = 1; i <= times; ++i) {
    const esdp::Slice target = Value(region.slice(static_cast<uint64_t>(i) * length, length));
    Value(to.Recv(target, esdp::RecvFlags::kWaitAll, {loopback.queue()}));
  }
  loopback.Await(static_cast<size_t>(2 * times), [](const esdp::Event&) {});
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 200;
  bench::Loopback loopback({.fabric = "qpip", .zcopy_send_min = esdp::kNever}, 512);
  const esdp::Region region = Value(loopback.context().Allocate(5 * 256 * 1024));
  std::vector<std::pair<esdp::Socket, esdp::Socket>> connections;
  connections.reserve(static_cast<size_t>(count));
  for (int i = 0; i < 8; ++i) connections.push_back(loopback.Connect());  // what is there only once
  Exchange(loopback, connections[0].first, connections[0].second, region, 256 * 1024, 4);

  const double before = Resident();
  const size_t first = connections.size();
  for (int i = 0; i < count; ++i) connections.push_back(loopback.Connect());
  const double idle = Resident();
  for (size_t i = first; i < connections.size(); ++i) {
    auto& [one, other] = connections[i];
    Exchange(loopback, one, other, region, 256 * 1024, 4);
    Exchange(loopback, other, one, region, 256 * 1024, 4);
    Exchange(loopback, one, other, region, 1024, 64);
    Exchange(loopback, other, one, region, 1024, 64);
  }
  const double used = Resident();
  std::printf("%.0f %.0f\n", (idle - before) / (2 * count), (used - before) / (2 * count));
}
