#include "impl/sdp/common/policy.h"

#include "impl/sdp/interface/config.h"

namespace esdp::sdp {

bool ReadsIntoRoom(const ReceiveRoom& room, uint64_t advert_left, bool reads_possible) {
  if (!reads_possible || !room.placeable || room.path == Path::kCopy) return false;
  if (room.path == Path::kZeroCopy) return true;
  if (room.zcopy_min == Config::kNever) return false;
  // The peer has gone to the trouble of exposing it: below the threshold too a read of all that is
  // left costs no more messages than asking for it.
  return room.range.length >= room.zcopy_min || room.range.length >= advert_left;
}

// [R8.1.1]
bool AdvertisesRoom(const ReceiveRoom& room, uint32_t private_bytes) {
  if (!room.placeable || !room.shown || room.path == Path::kCopy) return false;
  if (room.may_end_short) return false;
  if (room.range.length <= private_bytes) return false;
  if (room.path == Path::kZeroCopy) return true;
  return room.zcopy_min != Config::kNever && room.range.length >= room.zcopy_min;
}

}  // namespace esdp::sdp
