#ifndef ESDP_IMPL_FABRIC_VERBS_WORK_NUMBER_H_
#define ESDP_IMPL_FABRIC_VERBS_WORK_NUMBER_H_

#include <cstdint>

// What the device is given to name work by (wr_id): the queue it stands in, a tag of its queue
// pair, and its number there. Completions of a queue pair that is gone may still be found, under a
// number that the device has given to another one since: the tag tells.

namespace esdp::fabric::verbs {

inline constexpr int kTagShift = 48;
inline constexpr uint64_t kReceiveBit = uint64_t{1} << 63;
inline constexpr uint16_t kTagMask = 0x7fff;

constexpr uint16_t TagOf(uint64_t handle) {
  return static_cast<uint16_t>((handle ^ (handle >> 32) * 0x9e5) & kTagMask);
}
constexpr uint64_t SendName(uint16_t tag, uint64_t number) {
  return uint64_t{tag} << kTagShift | number;
}
constexpr uint64_t ReceiveName(uint16_t tag) { return kReceiveBit | uint64_t{tag} << kTagShift; }
constexpr bool IsReceive(uint64_t name) { return (name & kReceiveBit) != 0; }
constexpr uint16_t TagIn(uint64_t name) {
  return static_cast<uint16_t>(name >> kTagShift & kTagMask);
}
constexpr uint64_t NumberOf(uint64_t name) { return name & ((uint64_t{1} << kTagShift) - 1); }

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_WORK_NUMBER_H_
