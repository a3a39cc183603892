#ifndef ESDP_IMPL_PROVIDER_SETUP_ADMISSION_H_
#define ESDP_IMPL_PROVIDER_SETUP_ADMISSION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "impl/base/time.h"
#include "impl/fabric/address_key.h"
#include "impl/fabric/types.h"
#include "impl/provider/observer.h"
#include "impl/provider/rejection.h"

namespace esdp::provider {

// Whether one more incoming connection may begin, by how many there are of its address and how fast
// they come.
//
// The rate is each address's own: one for all of them would let whoever floods keep the others out.
// And who comes faster is rejected, not kept waiting: what waits has a descriptor.
//
//   Owns:     what it counts; of an address from which nothing is open it knows no more once its
//             burst is whole again.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    instants of the shard's clock.
//   Errors:   Enter: std::bad_alloc, with nothing changed.
class Admission {
 public:
  explicit Admission(const PeerBounds& bounds)
      : of_address_max_(bounds.connections_of_address),
        between_(std::chrono::nanoseconds(std::chrono::seconds(1)) / bounds.accept_rate),
        burst_(bounds.accept_burst) {}

  // kNone: it counts from now on, until Leave. A burst may be as long as the backlog.
  Rejection Enter(const fabric::AddressKey& address, uint32_t backlog, Time now);
  void Leave(const fabric::AddressKey& address);

  size_t addresses() const { return sources_.size(); }

 private:
  struct Source {
    uint32_t open = 0;
    Time whole_at{};  // its burst is, if nothing comes
  };
  static constexpr size_t kFew = 64;

  void ForgetIdle(Time now);

  const uint32_t of_address_max_;
  const Duration between_;
  const uint32_t burst_;
  std::unordered_map<fabric::AddressKey, Source, fabric::AddressKeyHash> sources_;
  size_t forget_at_ = kFew;  // so many of them
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SETUP_ADMISSION_H_
