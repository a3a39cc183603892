#ifndef ESDP_IMPL_SDP_INBOUND_ADVERT_READER_H_
#define ESDP_IMPL_SDP_INBOUND_ADVERT_READER_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// The peer's SrcAvails: memory of the peer's that we read, or ask to be sent instead [7], oldest
// first. Reads run ahead over several of them; what is said of them concerns the oldest alone.
//
//   fresh      few inline bytes came with the oldest: open whether they are used or read again
//   reading    bytes are read into receive operations as these are posted
//   refused    the rest of the one being read shall come as Data: SendSm is owed
//   remainder  SendSm is out, so many bytes of Data come before anything of a later advert
//   cancelled  all of them: no read starts, what runs is finished and reported, then SendSm
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

  // Takes one more, if fewer than `held_max` are held. Combined mode: held_max is 1. Returns why
  // the advert is illegal, or nullptr. Inline bytes that are worth using belong to the caller;
  // fewer than that stay here.
  const char* OnSrcAvail(const wire::SrcAvail& advert, const Inline& inline_payload,
                         size_t held_max);
  static bool KeepsInline(uint32_t inline_bytes);

  // Something of the peer's is not Processed, or a remainder is still to come.
  bool active() const { return !adverts_.empty() || remainder_ > 0; }
  // Adverts that are not Processed.
  size_t held() const { return adverts_.size(); }
  bool fresh() const { return fresh_; }
  // Bytes of the advert being read that no read has been started for, and that may be read now.
  // [R7.2.4, R7.4.3] Nothing of a later advert before all of a remainder, nothing behind a cancel.
  uint32_t left() const {
    if (adverts_.empty() || cancelled_ || refused_ || remainder_ > 0) return 0;
    const Advert& oldest = adverts_.front();
    if (oldest.started < oldest.length) return oldest.length - oldest.started;
    return adverts_.size() == 1 ? 0 : LeftBehindOldest();
  }
  // A fresh advert's inline bytes are used: they belong to the caller now.
  Inline UseInline();
  // They are read again: their buffer belongs to the caller now.
  Inline RereadInline();
  uint32_t inline_bytes() const { return adverts_.front().inline_bytes; }
  // Of what is shown, and those inline bytes: what a receive could have now.
  uint64_t unread_bytes() const;

  // The next `target.length` bytes, at most left(), go to `target`.
  Read StartRead(const OperationRange& target, uint64_t operation_number);
  // The oldest read is done. The caller knows that there is one.
  FinishedRead OnReadFinished();
  size_t reads_in_flight() const { return reads_.size(); }
  bool IsAhead(uint64_t bytes) const { return bytes_in_flight_ >= bytes && reads_.size() >= 2; }

  // Asks the peer to send what is left of the advert being read instead. Not while fresh.
  void Refuse() { refused_ = true; }
  // [7.4] Returns false when there is nothing to cancel. Not while fresh.
  bool OnSrcAvailCancel();
  // The acknowledgement of the cancel must be held back.
  bool HoldsAcknowledgement() const;
  // The adverts are void and were never part of the stream. Not while a read is in flight.
  void DropAll();

  // What is to be sent now, provided no further read can start.
  Answer NextAnswer() const;
  Completion TakeRdmaRdCompl();
  void TakeSendSm();

  // True while Data may carry user bytes although an advert was not completed by reads.
  bool in_remainder() const { return remainder_ > 0; }
  // Returns why these bytes may not come, or nullptr.
  const char* OnData(uint32_t length) {  // [R17.4]
    if (!active()) return nullptr;
    if (!adverts_.empty() && length > remainder_) return "Data: a SrcAvail is outstanding";
    remainder_ -= std::min(remainder_, length);
    return nullptr;
  }

  // Bytes will come without the application's doing.
  bool brings_more() const { return remainder_ > 0 || (refused_ && !cancelled_) || left() > 0; }

  bool InvariantsHold() const { return adverts_.empty() ? !fresh_ : AdvertsHold(); }
  void AddTo(Digest& digest) const;

 private:
  struct Advert {
    uint32_t length = 0;
    uint32_t inline_bytes = 0;
    uint32_t started = 0;   // offset of the next read
    uint32_t obtained = 0;  // everything below this offset is ours
    uint32_t reported = 0;  // sum of our RdmaRdCompl
    RemoteRange remote;
    uint32_t Unreported() const;
  };
  // The first advert with bytes that no read was started for; held() if there is none.
  size_t Current() const;
  uint32_t LeftBehindOldest() const;
  bool AdvertsHold() const;

  GrowingRing<Advert> adverts_;  // not Processed
  bool fresh_ = false;
  bool refused_ = false;  // of Current()
  bool cancelled_ = false;
  uint32_t remainder_ = 0;
  Inline inline_payload_;
  GrowingRing<FinishedRead> reads_;  // in flight
  uint64_t bytes_in_flight_ = 0;     // their sum
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INBOUND_ADVERT_READER_H_
