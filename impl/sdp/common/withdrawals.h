#ifndef ESDP_IMPL_SDP_COMMON_WITHDRAWALS_H_
#define ESDP_IMPL_SDP_COMMON_WITHDRAWALS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"

namespace esdp::sdp {

// Adverts that are over, and that the peer may still reach: Withdraw is asked, Withdrawn has not
// come. Each is of an operation, known by its number, whose memory it holds until then.
class Withdrawals {
 public:
  // `already_invalidated`: the peer has killed the key itself [25].
  void Ask(AdvertId id, uint64_t operation_number, bool already_invalidated, Actions& actions) {
    Withdraw withdraw;
    withdraw.advert = id;
    withdraw.already_invalidated = already_invalidated;
    actions.emplace_back(withdraw);
    asked_.PushBack({id, operation_number});
  }

  // The operation whose memory this gives back; nothing if it is not one of these.
  std::optional<uint64_t> OnWithdrawn(AdvertId id) {
    for (size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i].id != id) continue;
      const uint64_t number = asked_[i].operation_number;
      asked_.EraseAt(i);
      return number;
    }
    return std::nullopt;
  }

  // The queue pair has gone with every key on it: one operation after the other.
  std::optional<uint64_t> TakeNext() {
    if (asked_.empty()) return std::nullopt;
    return asked_.TakeFront().operation_number;
  }
  void clear() { asked_.clear(); }

  void AddTo(Digest& digest) const {
    digest.Add(asked_.size());
    for (const Asked& asked : asked_) {
      digest.Add(static_cast<uint32_t>(asked.id)).Add(asked.operation_number);
    }
  }

 private:
  struct Asked {
    AdvertId id{};
    uint64_t operation_number = 0;
  };

  GrowingRing<Asked> asked_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_COMMON_WITHDRAWALS_H_
