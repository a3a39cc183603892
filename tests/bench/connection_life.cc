// What connections cost that come and go.
//
//   connection_life accept OPEN COUNT
//       while OPEN connections are there, COUNT more come and go, one after the other; prints
//       microseconds for each
//   connection_life residue WAVES SIZE SPARE
//       SIZE connections at a time come, talk in both directions and go, WAVES times, where SPARE
//       that have ended may leave behind what they used; prints resident KiB before the first wave,
//       at the peak, and when they do not become less any more

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/bench/loopback.h"

namespace {

using bench::Value;
using Pair = std::pair<esdp::Socket, esdp::Socket>;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kTalk = 64 * 1024;

// Pages of this process that are in memory.
long ResidentKiB() {
  long size = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &resident) != 2) std::exit(1);
  std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

void CloseBoth(bench::Loopback& loopback, Pair& pair) {
  Value(pair.first.Close(esdp::CloseMode::kGraceful, {loopback.queue()}));
  Value(pair.second.Close(esdp::CloseMode::kGraceful, {loopback.queue()}));
}

std::vector<Pair> Open(bench::Loopback& loopback, int count) {
  std::vector<Pair> pairs;
  pairs.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) pairs.push_back(loopback.Connect());
  return pairs;
}

// A function of its own: callgrind counts what is inside.
[[gnu::noinline]] void ComeAndGo(bench::Loopback& loopback, int count) {
  for (int i = 0; i < count; ++i) {
    Pair pair = loopback.Connect();
    CloseBoth(loopback, pair);
    loopback.Await(2, [](const esdp::Event&) {});
  }
}

// Without a thread of the Context's: all of it is counted here. And without keep-alive of those
// that are open, of which a slow machine has more.
int MeasureAccept(int open, int count) {
  bench::Loopback loopback({.fabric = "qpip", .progress = esdp::Progress::kManual}, 64,
                           {.keep_alive_idle = absl::Hours(1)});
  const std::vector<Pair> pairs = Open(loopback, open);
  const Clock::time_point begin = Clock::now();
  ComeAndGo(loopback, count);
  const std::chrono::duration<double, std::micro> spent = Clock::now() - begin;
  std::printf("%.1f\n", spent.count() / count);
  return 0;
}

void Talk(bench::Loopback& loopback, Pair& pair, const esdp::Region& region) {
  const esdp::Slice out = Value(region.slice(0, kTalk));
  const esdp::Slice in = Value(region.slice(kTalk, kTalk));
  for (int turn = 0; turn < 2; ++turn) {
    esdp::Socket& from = turn == 0 ? pair.first : pair.second;
    esdp::Socket& to = turn == 0 ? pair.second : pair.first;
    Value(to.Recv(in, esdp::RecvFlags::kWaitAll, {loopback.queue()}));
    Value(from.Send(out, {}, {loopback.queue()}));
    loopback.Await(2, [](const esdp::Event&) {});
  }
}

// What goes back to the system does so after a second.
long ResidentAtRestKiB() {
  constexpr auto kRest = std::chrono::seconds(3);
  constexpr auto kMost = std::chrono::seconds(60);
  const Clock::time_point end = Clock::now() + kMost;
  long least = ResidentKiB();
  for (Clock::time_point since = Clock::now(); Clock::now() < std::min(since + kRest, end);) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const long now = ResidentKiB();
    if (now < least) since = Clock::now();
    least = std::min(least, now);
  }
  return least;
}

int MeasureResidue(int waves, int size, uint32_t spare) {
  bench::Loopback loopback({.fabric = "qpip",
                            .zcopy_send_min = esdp::kNever,
                            .limits = {.spare_connections_max = spare}},
                           static_cast<uint32_t>(2 * size + 64));
  const esdp::Region region = Value(loopback.context().Allocate(2 * kTalk));
  const long before = ResidentKiB();
  long peak = 0;
  for (int wave = 0; wave < waves; ++wave) {
    std::vector<Pair> pairs = Open(loopback, size);
    for (Pair& pair : pairs) Talk(loopback, pair, region);
    peak = std::max(peak, ResidentKiB());
    for (Pair& pair : pairs) CloseBoth(loopback, pair);
    loopback.Await(2 * pairs.size(), [](const esdp::Event&) {});
  }
  std::printf("%ld %ld %ld\n", before, peak, ResidentAtRestKiB());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string_view what = argv[1];
  const int first = std::atoi(argv[2]);
  const int second = std::atoi(argv[3]);
  if (what == "accept") return MeasureAccept(first, second);
  if (what == "residue" && argc == 5) {
    return MeasureResidue(first, second, static_cast<uint32_t>(std::atoi(argv[4])));
  }
  return 2;
}
