#ifndef ESDP_IMPL_PROVIDER_REJECTION_H_
#define ESDP_IMPL_PROVIDER_REJECTION_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "impl/base/bytes.h"

namespace esdp::provider {

// Which limit of the accepting side a connection request has met. The numbers are on the wire, in
// the private data of the rejection (docs/protocol.md, Rejections).
enum class Rejection : uint8_t {
  kNone = 0,  // nothing is said
  kBacklog = 1,
  kHalfOpen = 2,
  kConnections = 3,
  kAddress = 4,
  kRate = 5,
};

inline constexpr size_t kRejections = 6;  // values above
inline constexpr size_t kRejectionBytes = 8;

// Of any but kNone.
std::array<std::byte, kRejectionBytes> EncodeRejection(Rejection reason);
// kNone for what peers send that say nothing, or what is not known here.
Rejection DecodeRejection(ConstBytes private_data);
// For this side's log, and for the text of the error at the peer's.
const char* ToText(Rejection reason);

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_REJECTION_H_
