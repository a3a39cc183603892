// Heap allocations for each operation in steady state, on each path: counted in malloc itself, over
// all threads of the process. Prints a path and a number on each line.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/bench/loopback.h"

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

std::atomic<uint64_t> allocations{0};

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
}

namespace {

using bench::Value;

// Until either side has sent all that it ever sends. Short, so that what would grow by chance, when
// the machine is busy, has not done so before it counts.
constexpr int kWarmUp = 20;
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

}  // namespace

int main() {
  using esdp::Path;
  using esdp::Progress;
  Count("coalesced-64B", 64, Path::kCopy, Progress::kThread);
  Count("BCopy-64KiB", 64 * 1024, Path::kCopy, Progress::kThread);
  Count("ZCopy-1MiB", 1 << 20, Path::kZeroCopy, Progress::kThread);
  Count("ZCopy-1MiB-manual", 1 << 20, Path::kZeroCopy, Progress::kManual);
}
