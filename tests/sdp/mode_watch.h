#ifndef ESDP_TESTS_SDP_MODE_WATCH_H_
#define ESDP_TESTS_SDP_MODE_WATCH_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "impl/sdp/wire/messages.h"

namespace esdp::sdp::testing {

// What sections 5 and 7 allow one end to send, judged by its messages alone and written apart from
// the core.
class ModeWatch {
 public:
  // Returns what is wrong with this message, or nullptr.
  const char* OnImmediateSent(const wire::Message& message, uint32_t payload);
  void OnArrived(const wire::Message& message);

 private:
  struct Shown {
    uint64_t left = 0;
    uint32_t sequence = 0;
  };
  const char* CheckSrcAvail(const wire::SrcAvail& advert, uint32_t sequence, uint32_t payload);
  const char* CheckData(uint32_t payload);
  const char* CheckModeChange(const wire::ModeChange& change);
  void OnSendSm(uint32_t acknowledged);

  wire::Mode send_ = wire::Mode::kCombined;
  wire::Mode receive_ = wire::Mode::kCombined;
  std::deque<Shown> shown_;         // SrcAvails of this end, not Processed
  uint64_t owed_ = 0;               // remainders to be sent as Data, next
  std::optional<uint32_t> cancel_;  // not Processed
  bool overridden_ = false;  // a SinkAvail came: which SrcAvails are left is judged elsewhere
};

}  // namespace esdp::sdp::testing

#endif  // ESDP_TESTS_SDP_MODE_WATCH_H_
