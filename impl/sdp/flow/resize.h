#ifndef ESDP_IMPL_SDP_FLOW_RESIZE_H_
#define ESDP_IMPL_SDP_FLOW_RESIZE_H_

#include <algorithm>
#include <cstdint>

#include "impl/base/digest.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// Receive buffers that change their size while messages go into them [11]. Sizes in bytes, headers
// included.

// The peer's buffers: what our messages may have, and the one request to change it.
class ResizeRequest {
 public:
  // `wish` 0: leave them as they are. `by_need`: larger ones, where sends do not fit those.
  void Start(uint32_t size, uint32_t wish, bool by_need = false);
  uint32_t size() const { return size_; }
  bool outstanding() const { return outstanding_; }
  // Neither Due nor answered and about to Rise; nor will it be, but by a payload that is cut.
  bool settled() const {
    return rises_to_ == 0 && (wish_ == 0 || (by_need_ && !outstanding_ && !Due()));
  }

  // A message with so many user bytes was posted, if it counts; `cut`: what is left of its send fills
  // another one.
  bool Counts(bool cut) const { return wish_ != 0 && (cut || !by_need_); }
  void OnPayloadPosted(uint64_t bytes) { sent_ += bytes; }
  // To be asked once so much has been sent in messages that their size matters.
  bool Due() const { return sent_ >= due_at_; }
  bool lowers() const { return wish_ < size_; }
  wire::ChRcvBuf Take(uint32_t sequence);
  // The answer, with MSeqAck and Bufs of its header. Returns what is wrong with it, or nullptr.
  const char* OnAck(uint32_t actual_size, const wire::BaseHeader& header);
  // The peer asked at the same time, and disregards our request: it may be made again.
  void OnDisregarded();
  // Whether messages behind `last_sent` may be larger than before.
  bool Rises(uint32_t last_sent);

  void AddTo(Digest& digest) const;

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  uint32_t size_ = 0;
  uint32_t wish_ = 0;  // 0: nothing more to ask
  bool by_need_ = false;
  uint64_t sent_ = 0;         // user bytes in messages, while it counts
  uint64_t due_at_ = kNever;  // of them
  uint32_t before_ = 0;
  uint32_t asked_ = 0;
  bool outstanding_ = false;
  uint32_t rises_to_ = 0;  // 0: it does not
  uint32_t rises_at_ = 0;  // last message that may meet a small buffer
};

// Our own buffers: the peer's requests and our answers.
//
//   idle -> preparing  a larger size is wanted: the provider is asked for memory
//        -> replacing  buffers are posted in the new size, those of the old size are used up
//        -> due        the answer may leave
class ResizeAnswer {
 public:
  // Never larger than `size_max`; 0: the size never changes.
  void Start(uint32_t size, uint32_t size_max);

  enum class Next : uint8_t { kViolation, kAnswer, kPrepare };
  // kViolation: one is unanswered. kPrepare: memory of wanted() bytes for each buffer is needed.
  Next OnChRcvBuf(uint32_t desired_size);
  uint32_t wanted() const { return wanted_; }
  // `posted`: the receives of the old size.
  void OnPrepared(bool done, uint16_t posted);
  bool preparing() const { return state_ == State::kPreparing; }

  uint32_t size() const { return size_; }  // of buffers posted from now on
  uint32_t told() const { return told_; }  // by what the peer goes until the answer [8.1, 11]
  uint32_t message_bytes_max() const { return std::max(size_, told_); }  // until or behind it
  void OnReceiveTaken() {  // [R11.6] the oldest posted one
    if (state_ == State::kReplacing && --old_posted_ == 0) state_ = State::kDue;
  }
  bool pending() const { return state_ != State::kIdle; }
  bool due() const { return state_ == State::kDue; }
  wire::ChRcvBufAck Take();

  bool InvariantsHold() const { return size_ >= wire::kReceiveBufferBytesMin; }
  void AddTo(Digest& digest) const;

 private:
  enum class State : uint8_t { kIdle, kPreparing, kReplacing, kDue };
  State state_ = State::kIdle;
  uint32_t size_ = wire::kReceiveBufferBytesMin;
  uint32_t told_ = wire::kReceiveBufferBytesMin;
  uint32_t size_max_ = 0;
  uint32_t wanted_ = 0;
  uint32_t old_posted_ = 0;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_FLOW_RESIZE_H_
