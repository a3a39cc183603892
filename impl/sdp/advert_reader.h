#ifndef ESDP_IMPL_SDP_ADVERT_READER_H_
#define ESDP_IMPL_SDP_ADVERT_READER_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/action.h"
#include "impl/sdp/ids.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// The peer's SrcAvail: memory of the peer's that we read, or ask to be sent instead [7]. Combined
// mode: one at a time.
//
//   fresh      few inline bytes came with it: it is open whether they are used or read again
//   reading    its bytes are read into receive operations as these are posted
//   refused    the rest shall come as Data: SendSm is owed
//   remainder  SendSm is out, this many bytes of Data come next
class AdvertReader {
 public:
  struct Inline {
    ReceiveBuffer buffer{};
    uint32_t offset = 0;
    uint32_t length = 0;
  };
  struct FinishedRead {
    uint64_t operation_number = 0;
    uint32_t length = 0;
  };
  enum class Answer : uint8_t { kNone, kRdmaRdCompl, kSendSm };
  struct Completion {
    wire::RdmaRdCompl message;
    std::optional<uint32_t> finished_key;  // of the advert, when this message completes it
  };

  // Returns why the advert is illegal, or nullptr. Inline bytes that are worth using belong to the
  // caller; fewer than that stay here.
  const char* OnSrcAvail(const wire::SrcAvail& advert, const Inline& inline_payload);
  static bool KeepsInline(uint32_t inline_bytes);

  bool active() const { return state_ != State::kNone; }
  bool fresh() const { return state_ == State::kFresh; }
  // Bytes that no read has been started for, and that may still be read.
  uint32_t left() const;
  // A fresh advert's inline bytes are used: they belong to the caller now.
  Inline UseInline();
  // They are read again: their buffer belongs to the caller now.
  Inline RereadInline();
  uint32_t inline_bytes() const { return inline_bytes_; }

  // The next `target.length` bytes, at most left(), go to `target`.
  Read StartRead(const OperationRange& target, uint64_t operation_number);
  // The oldest read is done. The caller knows that there is one.
  FinishedRead OnReadFinished();
  size_t reads_in_flight() const { return reads_.size(); }

  // Asks the peer to send what is left instead. Not while fresh.
  void Refuse();
  // [7.4] Returns false when there is nothing to cancel. Not while fresh.
  bool OnSrcAvailCancel();
  // The acknowledgement of the cancel must be held back.
  bool HoldsAcknowledgement() const;

  // What is to be sent now, provided no further read can start.
  Answer NextAnswer() const;
  Completion TakeRdmaRdCompl();
  void TakeSendSm();

  // True while Data may carry user bytes although an advert was not completed by reads.
  bool in_remainder() const { return state_ == State::kRemainder; }
  void OnData(uint32_t length);

  // Bytes will come without the application's doing.
  bool brings_more() const;

  bool Holds() const;
  void AddTo(Digest& digest) const;

 private:
  enum class State : uint8_t { kNone, kFresh, kReading, kRefused, kRemainder };
  uint32_t Unreported() const;

  State state_ = State::kNone;
  bool cancelled_ = false;
  uint32_t length_ = 0;
  uint32_t inline_bytes_ = 0;
  uint32_t started_ = 0;   // offset of the next read
  uint32_t obtained_ = 0;  // everything below this offset is ours
  uint32_t reported_ = 0;  // sum of our RdmaRdCompl
  uint32_t remainder_ = 0;
  RemoteRange remote_;
  Inline inline_payload_;
  GrowingRing<FinishedRead> reads_;  // in flight
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_ADVERT_READER_H_
