// What the machine itself gives between two processes: the limits that a fabric on one host is held against.
//
//   raw_limits memcpy   BYTES SECONDS CPU CPU hot|produced   one buffer into another
//   raw_limits readv    BYTES SECONDS CPU CPU    process_vm_readv out of another process
//   raw_limits ring     BYTES SECONDS CPU CPU    messages through shared memory, copied in and out
//   raw_limits spin     BYTES SECONDS CPU CPU    a ping-pong on shared memory that spins
//   raw_limits futex    BYTES SECONDS CPU CPU    a ping-pong that sleeps; BYTES is not used
//   raw_limits pin      BYTES SECONDS CPU CPU    pages pinned by the kernel, and let go
//
// Prints one JSON object: bytes and operations a second; a ping-pong's operation is one way, and its
// microseconds are the median.

#include <linux/futex.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

constexpr size_t kRingBytes = 512 * 1024;

// The memory that both processes have. Each word has cache lines of its own.
struct Shared {
  alignas(128) std::atomic<uint64_t> written{0};
  alignas(128) std::atomic<uint64_t> read{0};
  alignas(128) std::atomic<uint32_t> there{0};
  alignas(128) std::atomic<uint32_t> back{0};
  alignas(128) std::atomic<bool> stop{false};
  alignas(4096) char bytes[kRingBytes]{};
};

struct Run {
  size_t bytes;
  double seconds;
  int cpus[2];
};

void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) Fail("sched_setaffinity");
}

// Calls `once` until the time is over, and gives how long it took and how often it was called.
template <typename Call>
void Measure(const Run& run, Call once) {
  const auto begin = Clock::now();
  uint64_t count = 0;
  double seconds = 0;
  while (seconds < run.seconds) {
    for (int i = 0; i < 64; ++i) once();
    count += 64;
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  const double each = static_cast<double>(count);
  std::printf("{\"bytes_per_second\":%.0f,\"operations_per_second\":%.0f,\"microseconds\":%.4f}\n",
              each * static_cast<double>(run.bytes) / seconds, each / seconds,
              seconds * 1e6 / each);
}

// A ping-pong until the time is over: the median of one way, for a mean hides what the scheduler did in between.
template <typename Call>
void MeasureRoundTrips(const Run& run, Call once) {
  std::vector<double> times;
  const auto begin = Clock::now();
  auto before = begin;
  double seconds = 0;
  while (seconds < run.seconds) {
    once();
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(now - before).count());
    before = now;
    seconds = std::chrono::duration<double>(now - begin).count();
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  const double each = 2 * static_cast<double>(times.size()) / seconds;
  std::printf("{\"bytes_per_second\":%.0f,\"operations_per_second\":%.0f,\"microseconds\":%.4f}\n",
              each * static_cast<double>(run.bytes), each, *middle / 2);
}

// Starts `child` in a process of its own, runs `parent`, and ends both.
template <typename Child, typename Parent>
void InTwo(const Run& run, Shared& shared, Child child, Parent parent) {
  const pid_t pid = fork();
  if (pid < 0) Fail("fork");
  if (pid == 0) {
    Pin(run.cpus[1]);
    child();
    _exit(0);
  }
  Pin(run.cpus[0]);
  parent(pid);
  shared.stop = true;
  if (kill(pid, SIGKILL) != 0 || waitpid(pid, nullptr, 0) != pid) Fail("waitpid");
}

void Copy(const Run& run, bool produced) {
  Pin(run.cpus[0]);
  std::vector<char> source(run.bytes, 1);
  std::vector<char> target(run.bytes);
  Measure(run, [&] {
    if (produced) std::memset(source.data(), target[0] + 1, source.size());
    std::memcpy(target.data(), source.data(), source.size());
    asm volatile("" : : "r"(target.data()), "r"(source.data()) : "memory");
  });
}

void Readv(const Run& run, Shared& shared) {
  std::vector<char> source(run.bytes, 1);  // at the same address in the child
  std::vector<char> target(run.bytes, 2);
  // A private page is the child's own once it has written to it.
  const auto child = [&] {
    std::memset(source.data(), 3, source.size());
    shared.there = 1;
    for (;;) pause();
  };
  InTwo(run, shared, child, [&](pid_t pid) {
    while (shared.there == 0) sched_yield();
    iovec here{target.data(), target.size()};
    iovec far{source.data(), source.size()};
    Measure(run, [&] {
      if (process_vm_readv(pid, &here, 1, &far, 1, 0) != static_cast<ssize_t>(run.bytes)) {
        Fail("process_vm_readv");
      }
    });
    if (target[0] != 3 || target.back() != 3) Fail("process_vm_readv gave other bytes");
  });
}

void Ring(const Run& run, Shared& shared) {
  const uint64_t places = kRingBytes / run.bytes;
  if (places == 0) Fail("the ring is shorter than a message");
  std::vector<char> here(run.bytes, 1);
  const auto child = [&] {
    uint64_t next = 0;
    for (;;) {
      while (next - shared.read.load(std::memory_order_acquire) == places) {
      }
      std::memcpy(&shared.bytes[next % places * run.bytes], here.data(), run.bytes);
      shared.written.store(++next, std::memory_order_release);
    }
  };
  InTwo(run, shared, child, [&](pid_t) {
    uint64_t next = 0;
    Measure(run, [&] {
      while (shared.written.load(std::memory_order_acquire) == next) {
      }
      std::memcpy(here.data(), &shared.bytes[next % places * run.bytes], run.bytes);
      asm volatile("" : : "r"(here.data()) : "memory");
      shared.read.store(++next, std::memory_order_release);
    });
  });
}

void Spin(const Run& run, Shared& shared) {
  const auto child = [&] {
    for (uint32_t next = 1;; ++next) {
      while (shared.there.load(std::memory_order_acquire) != next) {
      }
      shared.back.store(next, std::memory_order_release);
    }
  };
  InTwo(run, shared, child, [&](pid_t) {
    uint32_t next = 0;
    MeasureRoundTrips(run, [&] {
      shared.there.store(++next, std::memory_order_release);
      while (shared.back.load(std::memory_order_acquire) != next) {
      }
    });
  });
}

void Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  // Neither EAGAIN nor EINTR matters: the caller looks at the word again.
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

void Await(std::atomic<uint32_t>& word, uint32_t wanted) {
  for (uint32_t value = word; value != wanted; value = word) Futex(word, FUTEX_WAIT, value);
}

void Tell(std::atomic<uint32_t>& word, uint32_t value) {
  word = value;
  Futex(word, FUTEX_WAKE, 1);
}

void Sleep(const Run& run, Shared& shared) {
  const auto child = [&] {
    for (uint32_t next = 1;; ++next) {
      Await(shared.there, next);
      Tell(shared.back, next);
    }
  };
  InTwo(run, shared, child, [&](pid_t) {
    uint32_t next = 0;
    MeasureRoundTrips(run, [&] {
      Tell(shared.there, ++next);
      Await(shared.back, next);
    });
  });
}

// The one call by which any program may have the kernel pin its pages, as a device's driver does.
void PinPages(const Run& run) {
  Pin(run.cpus[0]);
  io_uring_params parameters{};
  const long ring = syscall(SYS_io_uring_setup, 1, &parameters);
  if (ring < 0) Fail("io_uring_setup");
  std::vector<char> memory(run.bytes, 1);
  const iovec range{memory.data(), memory.size()};
  Measure(run, [&] {
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &range, 1) != 0 ||
        syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, nullptr, 0) != 0) {
      Fail("io_uring_register");
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr,
                 "raw_limits memcpy|readv|ring|spin|futex|pin BYTES SECONDS CPU CPU "
                 "[hot|produced]\n");
    return 2;
  }
  const std::string_view what = argv[1];
  const Run run{std::strtoull(argv[2], nullptr, 10),
                std::strtod(argv[3], nullptr),
                {std::atoi(argv[4]), std::atoi(argv[5])}};
  if (run.bytes == 0) Fail("BYTES");
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  Shared& shared = *new (memory) Shared;
  if (what == "memcpy") {
    Copy(run, argc > 6 && std::string_view(argv[6]) == "produced");
  } else if (what == "readv") {
    Readv(run, shared);
  } else if (what == "ring") {
    Ring(run, shared);
  } else if (what == "spin") {
    Spin(run, shared);
  } else if (what == "futex") {
    Sleep(run, shared);
  } else if (what == "pin") {
    PinPages(run);
  } else {
    std::fprintf(stderr, "raw_limits: there is no '%s'\n", argv[1]);
    return 2;
  }
  return 0;
}
