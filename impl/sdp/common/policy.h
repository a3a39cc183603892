#ifndef ESDP_IMPL_SDP_COMMON_POLICY_H_
#define ESDP_IMPL_SDP_COMMON_POLICY_H_

#include <cstdint>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/ids.h"

// Which path bytes take. Decisions only, from numbers that are handed in: the mechanism is
// elsewhere.

namespace esdp::sdp {

enum class SendRoute : uint8_t {
  kCopy,       // into a send buffer, together with its neighbours
  kGather,     // in Data messages, straight from the operation's memory
  kAdvertise,  // SrcAvail: the peer reads it
};

// What a send piece looks like to the policy.
struct SendTraits {
  uint64_t length = 0;
  uint64_t zcopy_min = 0;
  Path path = Path::kByThreshold;
  bool exposable = false;
  bool copyable = true;
};

struct SendLimits {
  uint32_t coalesce_max = 0;
};

// Whether the peer shall read this piece, where we may advertise.
inline bool WantsAdvert(const SendTraits& piece) {
  const bool wanted = piece.path == Path::kZeroCopy ||
                      (piece.path == Path::kByThreshold && piece.zcopy_min != Config::kNever &&
                       piece.length >= piece.zcopy_min);
  return wanted && piece.exposable && piece.length >= kSourceAdvertBytesMin;
}

// Of one that it does not read.
inline SendRoute RouteOfCopied(const SendTraits& piece, const SendLimits& limits) {
  const bool copied = piece.length <= limits.coalesce_max && (piece.copyable || piece.length == 0);
  return copied ? SendRoute::kCopy : SendRoute::kGather;
}

// What a receive piece looks like to the policy: the place where the next byte goes.
struct ReceiveRoom {
  OperationRange range;  // contiguous
  uint64_t zcopy_min = 0;
  Path path = Path::kByThreshold;
  bool placeable = false;
  bool shown = true;           // the peer may be told of it
  bool until_advert = false;   // the operation takes nothing of an advert
  bool may_end_short = false;  // the operation has bytes and need not wait for more
};

// Whether to read `advert_left` bytes of the peer's into this place. If not, the peer is asked to
// send them (SendSm), or the operation ends short and the next one is looked at.
bool ReadsIntoRoom(const ReceiveRoom& room, uint64_t advert_left, bool reads_possible);

// Whether to show this place to the peer, so that it may write there. It must be able to take one
// whole message, of our `private_bytes`, that crosses the advert [R8.1.1].
bool AdvertisesRoom(const ReceiveRoom& room, uint32_t private_bytes);

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_COMMON_POLICY_H_
