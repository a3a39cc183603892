#ifndef ESDP_IMPL_SOCKETS_BLOCKING_READINESS_PAIR_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_READINESS_PAIR_H_

#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "impl/provider/progress/socket_pair.h"
#include "impl/sockets/stream/readiness_listener.h"

namespace esdp::sockets {

class StreamState;

// Shows the readiness of a blocking stream in a descriptor.
//
//   Owns:     the descriptor.
//   Threads:  any.
//   Blocks:   never.
//   Units:    –
//   Errors:   Open: ResourceExhausted (kMemory) where the system has no descriptor.
class ReadinessPair final : public ReadinessListener {
 public:
  // Of a stream that outlives it.
  static absl::StatusOr<std::shared_ptr<ReadinessPair>> Open(StreamState& stream);
  explicit ReadinessPair(StreamState& stream) : stream_(stream) {}

  int fd() const { return pair_.fd(); }
  // What a blocking stream holds beside its connection, from now on.
  struct Own {
    bool readable = false;
    bool room = true;
  };
  // `sample` is called under the lock, so that the last one counts.
  template <typename Sample>
  void Update(Sample sample) {
    const std::lock_guard lock(mutex_);
    own_ = sample();
    Show(/*arrived=*/false);
  }
  void OnReadinessChange() override;

 private:
  void Show(bool arrived);

  StreamState& stream_;
  std::mutex mutex_;
  provider::SocketPair pair_;
  Own own_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_READINESS_PAIR_H_
