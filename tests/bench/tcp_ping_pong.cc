// A plain TCP ping-pong that spins on both sides: the bar for esdp's latency.
//
//   tcp_ping_pong server CPU SIZE
//   tcp_ping_pong client CPU SIZE PORT SECONDS CONGESTION
//
// The server prints its port. The client prints one JSON object: round trips per second, and
// percentiles of the round trip in microseconds.

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/plain_tcp.h"
#include "tools/esdp_perf/histogram.h"

namespace {

using esdp_bench::Fail;
using Clock = std::chrono::steady_clock;

// Spins until all of the buffer has gone one way; false at the end of the stream.
template <typename Call>
bool Spin(Call call, size_t length) {
  for (size_t done = 0; done < length;) {
    const ssize_t n = call(done);
    if (n == 0) return false;
    if (n > 0) done += static_cast<size_t>(n);
    if (n < 0 && errno != EAGAIN && errno != EINTR) Fail("transfer");
  }
  return true;
}

bool SendAll(int fd, const std::vector<char>& buffer) {
  return Spin([&](size_t done) { return send(fd, &buffer[done], buffer.size() - done, 0); },
              buffer.size());
}

bool ReceiveAll(int fd, std::vector<char>& buffer) {
  return Spin([&](size_t done) { return recv(fd, &buffer[done], buffer.size() - done, 0); },
              buffer.size());
}

void MakeQuickAndSpinning(int fd) {
  esdp_bench::SendImmediate(fd);
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) Fail("O_NONBLOCK");
}

int Serve(std::vector<char> buffer) {
  const int fd = esdp_bench::AcceptOne();
  MakeQuickAndSpinning(fd);
  while (ReceiveAll(fd, buffer) && SendAll(fd, buffer)) {
  }
  return 0;
}

int CallAndMeasure(std::vector<char> buffer, int port, double seconds, const char* congestion) {
  const int fd = esdp_bench::ConnectTo(port, congestion);
  MakeQuickAndSpinning(fd);

  esdp_perf::Histogram round_trips;
  const Clock::time_point start = Clock::now();
  const Clock::time_point end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  Clock::time_point now = start;
  while (now < end) {
    if (!SendAll(fd, buffer) || !ReceiveAll(fd, buffer)) Fail("the server has gone");
    const Clock::time_point then = now;
    now = Clock::now();
    round_trips.Record(static_cast<uint64_t>((now - then).count()));
  }

  const auto micros = [](uint64_t ns) { return static_cast<double>(ns) / 1000; };
  std::printf("{\"round_trips\":%llu,\"p50\":%.3f,\"p99\":%.3f}\n",
              static_cast<unsigned long long>(round_trips.count()),
              micros(round_trips.Percentile(0.5)), micros(round_trips.Percentile(0.99)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if (!(role == "server" && argc == 4) && !(role == "client" && argc == 7)) {
    std::fprintf(stderr,
                 "usage: tcp_ping_pong server CPU SIZE\n"
                 "       tcp_ping_pong client CPU SIZE PORT SECONDS CONGESTION\n");
    return 2;
  }
  esdp_bench::PinTo(argv[2]);
  std::vector<char> buffer(static_cast<size_t>(std::atoi(argv[3])));
  if (role == "server") return Serve(buffer);
  return CallAndMeasure(buffer, std::atoi(argv[4]), std::atof(argv[5]), argv[6]);
}
