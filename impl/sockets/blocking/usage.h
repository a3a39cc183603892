#ifndef ESDP_IMPL_SOCKETS_BLOCKING_USAGE_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_USAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace esdp::sockets {

// What the two directions of a blocking stream count.
struct BlockingUsage {
  void OnRegistered(uint64_t bytes) {
    registrations.fetch_add(1, std::memory_order_relaxed);
    registered_bytes.fetch_add(bytes, std::memory_order_relaxed);
    registered_now.fetch_add(bytes, std::memory_order_relaxed);
  }
  void OnDeregistered(uint64_t bytes) {
    registered_now.fetch_sub(bytes, std::memory_order_relaxed);
  }

  void OnCopied(uint64_t bytes) {
    copies.fetch_add(1, std::memory_order_relaxed);
    copied_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> copies{0};  // by way of private memory
  std::atomic<uint64_t> copied_bytes{0};
  std::atomic<uint64_t> registrations{0};
  std::atomic<uint64_t> registered_bytes{0};
  std::atomic<uint64_t> registered_now{0};
  std::atomic<uint64_t> patience_ran_out{0};
  std::atomic<uint64_t> register_failures{0};
  std::atomic<uint64_t> read_ahead_bytes{0};
  std::atomic<uint64_t> send_buffer_waits{0};
  std::atomic<uint64_t> learned_threshold{0};  // 0: nothing has been learned
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_USAGE_H_
