#ifndef ESDP_IMPL_SOCKETS_BLOCKING_SEND_RING_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_SEND_RING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "esdp/event.h"
#include "esdp/region.h"
#include "impl/base/ring.h"

namespace esdp::sockets {

class ContextState;

// The send buffer of a blocking stream: bytes that a Write has copied, until their sends have ended.
// They are staged first, one run after the other, and posted by the caller as one send.
//
//   Owns:     its memory and the registration, from the first use on; sends of it keep it too.
//   Threads:  who has the turn.
//   Blocks:   the first Stage, for the registration.
//   Units:    bytes.
//   Errors:   Open: ResourceExhausted (kMemory).
class SendRing {
 public:
  // Nothing is done where it is open already. It keeps the size it has while it holds bytes.
  absl::Status Open(const std::shared_ptr<ContextState>& context, size_t bytes);
  // Copies what there is room for behind what is staged, and says how much: 0 where that has to be
  // posted first, or there is none.
  size_t Stage(std::span<const std::byte> bytes);
  size_t staged() const { return staged_; }
  Slice staged_slice() const;
  // What is staged has been posted as `op`, or comes out again.
  void OnPosted(OpId op);
  void Unstage() { staged_ = 0; }
  // The oldest of the sends that were posted. False: this one is none of them.
  bool OnEnded(OpId op);
  size_t posted() const { return posted_.size(); }
  bool full() const { return !memory_.empty() && used_ == memory_.size(); }
  bool empty() const { return used_ == 0 && staged_ == 0; }

 private:
  struct Posted {
    OpId op = OpId::kNone;
    size_t bytes = 0;
  };

  Region region_;
  std::span<std::byte> memory_;
  size_t head_ = 0;  // where the next byte goes: behind what is posted
  size_t used_ = 0;  // posted, and not ended
  size_t staged_ = 0;
  GrowingRing<Posted> posted_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_SEND_RING_H_
