// A plain TCP stream out of several places of memory in turn and into as many: what is left to a
// program whose operations each have memory of their own, beside one that sends and receives the
// same bytes again and again.
//
//   tcp_places server CPU SIZE PLACES
//   tcp_places client CPU SIZE PLACES PORT SECONDS CONGESTION
//
// The server prints its port. Both print one JSON object at the end: bytes, and seconds by their
// own clock.

#include <sys/mman.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/bench/plain_tcp.h"

namespace {

using esdp_bench::Fail;
using Clock = std::chrono::steady_clock;

constexpr size_t kHugePage = size_t{2} << 20;

struct Places {
  char* base = nullptr;
  size_t size = 0;
  size_t count = 0;
};

// As Context::Allocate gives it: in huge pages if the system has any.
Places MakePlaces(const char* size, const char* count) {
  Places places;
  places.size = static_cast<size_t>(std::atol(size));
  places.count = static_cast<size_t>(std::atol(count));
  const size_t bytes = (places.size * places.count + kHugePage - 1) / kHugePage * kHugePage;
  places.base = static_cast<char*>(std::aligned_alloc(kHugePage, bytes));
  if (places.base == nullptr || places.size == 0 || places.count == 0) Fail("memory");
  (void)madvise(places.base, bytes, MADV_HUGEPAGE);
  std::memset(places.base, 1, bytes);
  return places;
}

// Fills or empties one place after the other until `call` has no more or `end` is over.
template <typename Call>
void GoRound(const Places& places, Clock::time_point end, Call call) {
  const Clock::time_point start = Clock::now();
  size_t bytes = 0;
  bool open = true;
  for (size_t place = 0; open && Clock::now() < end; place = (place + 1) % places.count) {
    for (size_t done = 0; open && done < places.size;) {
      const ssize_t moved = call(places.base + place * places.size + done, places.size - done);
      if (moved < 0) Fail("transfer");
      open = moved > 0;
      done += static_cast<size_t>(moved);
      bytes += static_cast<size_t>(moved);
    }
  }
  std::printf("{\"bytes\":%zu,\"seconds\":%.6f}\n", bytes,
              std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if (!(role == "server" && argc == 5) && !(role == "client" && argc == 8)) {
    std::fprintf(stderr,
                 "usage: tcp_places server CPU SIZE PLACES\n"
                 "       tcp_places client CPU SIZE PLACES PORT SECONDS CONGESTION\n");
    return 2;
  }
  esdp_bench::PinTo(argv[2]);
  const Places places = MakePlaces(argv[3], argv[4]);
  if (role == "server") {
    const int fd = esdp_bench::AcceptOne();
    GoRound(places, Clock::time_point::max(),
            [fd](char* at, size_t most) { return recv(fd, at, most, 0); });
    return 0;
  }
  const int fd = esdp_bench::ConnectTo(std::atoi(argv[5]), argv[7]);
  esdp_bench::SendImmediate(fd);
  const auto length = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::atof(argv[6])));
  GoRound(places, Clock::now() + length,
          [fd](const char* at, size_t most) { return send(fd, at, most, MSG_NOSIGNAL); });
  return 0;
}
