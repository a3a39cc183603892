// Heap allocations for each operation in steady state, on each path: counted in malloc itself, over
// all threads of the process. Prints a path and a number on each line.
//
//   allocations        of Send and Recv
//   allocations files  of SendFile and RecvFile for each MiB more of a file; and calls of mmap, and
//                      registrations that are there afterwards and were not before: one that was
//                      made and undone is an object of the heap, and so an allocation

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "esdp/file.h"
#include "tests/bench/loopback.h"

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

std::atomic<uint64_t> allocations{0};
std::atomic<uint64_t> maps{0};

}  // namespace

// These take the place of the C library's own; operator new calls them too.
extern "C" {
void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  maps.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, length, protection, flags, descriptor, offset));
}
}

namespace {

using bench::Value;

// Until either side has sent all that it ever sends. Short, so that what would grow by chance, when
// the machine is busy, has not done so before it counts.
constexpr int kWarmUp = 100;  // also until the receive buffers have grown
constexpr int kRounds = 1000;

// A send and a receive of `length`, so many times.
void Move(bench::Loopback& loopback, esdp::Socket& from, esdp::Socket& to,
          const esdp::Region& region, uint64_t length, esdp::Path path, int times) {
  const esdp::Slice source = Value(region.slice(0, length));
  const esdp::Slice target = Value(region.slice(region.info().length / 2, length));
  const esdp::OpArgs args{.queue = loopback.queue(), .path = path};
  for (int i = 0; i < times; ++i) {
    Value(to.Recv(target, esdp::RecvFlags::kWaitAll, args));
    Value(from.Send(source, esdp::SendFlags::kNone, args));
    loopback.Await(2, [](const esdp::Event&) {});
  }
}

void Count(const char* name, uint64_t length, esdp::Path path, esdp::Progress progress) {
  bench::Loopback loopback({.fabric = "qpip", .progress = progress}, 64);
  const esdp::Region region = Value(loopback.context().Allocate(4 << 20));
  auto [one, other] = loopback.Connect();
  Move(loopback, one, other, region, length, path, kWarmUp);
  const uint64_t before = allocations.load();
  Move(loopback, one, other, region, length, path, kRounds);
  const double counted = static_cast<double>(allocations.load() - before);
  std::printf("%s %g\n", name, counted / (2 * kRounds));
}

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kShortMiB = 1;
constexpr uint64_t kLongMiB = 64;

int NewFile(uint64_t length) {
  std::string path = std::filesystem::temp_directory_path() / "esdp-allocations-XXXXXX";
  const int fd = mkostemp(path.data(), 0);
  if (fd < 0) {
    std::perror(path.c_str());
    std::exit(1);
  }
  unlink(path.c_str());
  const std::vector<char> block(kMiB, 'x');
  for (uint64_t at = 0; at < length; at += block.size()) {
    if (pwrite(fd, block.data(), block.size(), static_cast<off_t>(at)) < 0) std::exit(1);
  }
  return fd;
}

struct Counts {
  uint64_t allocations;
  uint64_t maps;
  uint32_t regions;
};

// A post allocates, and so does a first transfer: what each MiB costs is what a long file costs
// more than a short one.
void CountFiles(const char* name, esdp::FileStrategy strategy, esdp::Progress progress) {
  constexpr int kTimes = 10;
  bench::Loopback loopback({.fabric = "qpip", .progress = progress}, 64);
  auto [one, other] = loopback.Connect();
  const int source = NewFile(kLongMiB * kMiB);
  const int target = NewFile(0);
  const auto carry = [&](uint64_t length) {
    const Counts before{allocations, maps, loopback.context().Stats().regions};
    for (int i = 0; i < kTimes; ++i) {
      const std::array<esdp::FileRange, 1> all = {esdp::FileRange{source, 0, length}};
      Value(other.RecvFile({.fd = target, .length = length}, {loopback.queue()}));
      Value(one.SendFile({.ranges = all, .strategy = strategy}, {loopback.queue()}));
      loopback.Await(2, [](const esdp::Event&) {});
    }
    return Counts{allocations - before.allocations, maps - before.maps,
                  loopback.context().Stats().regions - before.regions};
  };
  carry(kLongMiB * kMiB);
  Counts few{};
  Counts many{};
  // What grows by chance, when the machine is busy, has done so before long.
  for (int attempt = 0; attempt < 10; ++attempt) {
    few = carry(kShortMiB * kMiB);
    many = carry(kLongMiB * kMiB);
    if (many.allocations <= few.allocations && many.maps <= few.maps) break;
  }
  const auto for_each_mib = [](uint64_t less, uint64_t more) {
    return static_cast<double>(std::max(less, more) - less) / (kTimes * (kLongMiB - kShortMiB));
  };
  std::printf("%s-allocations-per-MiB %g\n", name, for_each_mib(few.allocations, many.allocations));
  std::printf("%s-maps-per-MiB %g\n", name, for_each_mib(few.maps, many.maps));
  std::printf("%s-registrations %u\n", name, few.regions + many.regions);
  close(source);
  close(target);
}

}  // namespace

int main(int argc, char** argv) {
  using esdp::FileStrategy;
  using esdp::Path;
  using esdp::Progress;
  if (argc > 1 && std::string_view(argv[1]) == "files") {
    CountFiles("file-pipelined", FileStrategy::kPipelined, Progress::kThread);
    CountFiles("file-direct", FileStrategy::kDirect, Progress::kThread);
    return 0;
  }
  Count("coalesced-64B", 64, Path::kCopy, Progress::kThread);
  Count("BCopy-64KiB", 64 * 1024, Path::kCopy, Progress::kThread);
  Count("ZCopy-1MiB", 1 << 20, Path::kZeroCopy, Progress::kThread);
  Count("ZCopy-1MiB-manual", 1 << 20, Path::kZeroCopy, Progress::kManual);
}
