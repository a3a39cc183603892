#ifndef ESDP_TOOLS_ESDP_PERF_STATION_H_
#define ESDP_TOOLS_ESDP_PERF_STATION_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/context.h"

namespace esdp_perf {

// A Context with one queue, for work that is done one operation at a time: post, then Await.
//
//   Owns:    its Context and its queue.
//   Blocks:  Await, until the operation has ended, which it does when the peer goes away.
class Station {
 public:
  static absl::StatusOr<std::unique_ptr<Station>> Open(const esdp::ContextOptions& context,
                                                       const esdp::QueueOptions& queue = {});
  static absl::StatusOr<std::unique_ptr<Station>> On(esdp::Context context,
                                                     const esdp::QueueOptions& queue);

  esdp::Context& context() { return context_; }
  esdp::EventQueue& queue() { return queue_; }

  // Zeroed memory of the program's own, which lives as long as this does.
  std::span<std::byte> NewMemory(size_t bytes);

  // The next event. One that tells of an error is answered as that error.
  absl::StatusOr<esdp::Event> Await();

  absl::StatusOr<esdp::Socket> Listen(const esdp::Address& address,
                                      const esdp::SocketOptions& options = {});
  absl::StatusOr<esdp::Socket> Accept(esdp::Socket& listener,
                                      absl::Duration patience = absl::InfiniteDuration());
  absl::StatusOr<esdp::Socket> Connect(const esdp::Address& address,
                                       const esdp::SocketOptions& options = {});

 private:
  Station(esdp::Context context, esdp::EventQueue queue)
      : context_(std::move(context)), queue_(std::move(queue)) {}

  std::vector<std::vector<std::byte>> memory_;  // goes after the Context
  esdp::Context context_;
  esdp::EventQueue queue_;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_STATION_H_
