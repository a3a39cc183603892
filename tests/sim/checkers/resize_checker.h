#ifndef ESDP_TESTS_SIM_CHECKERS_RESIZE_CHECKER_H_
#define ESDP_TESTS_SIM_CHECKERS_RESIZE_CHECKER_H_

#include <cstdint>
#include <optional>

#include "tests/sim/checkers/wire_books.h"

namespace esdp::simulation {

// One end as it asks for the peer's receive buffers, and as it is asked for its own.
struct ResizePage {
  uint32_t first = 0;  // the peer's buffers at first, as all sizes in bytes with headers
  uint32_t size = 0;   // what its messages may have
  uint32_t before = 0;
  uint32_t asked = 0;  // 0: no request is out
  bool settled = false;
  uint32_t grows_to = 0;  // behind the message `grows_behind`; 0: not at all
  uint32_t grows_behind = 0;

  uint32_t told = 0;    // its own buffers, as the peer knows them
  uint32_t wanted = 0;  // by the peer's request that it has to answer; 0: none
  uint32_t wanted_by = 0;
};

// The rules of receive buffers that change their size (section 11): no message is larger than the
// buffer that it may meet, one request at a time, an answer between what there was and what was
// asked, and who stands back when both ask.
class ResizeChecker : private WireBooks<ResizePage> {
 public:
  ResizeChecker(Findings& findings, Marks& marks) : WireBooks(findings, marks) {}

  // `size` of the receive buffers of `from`.
  void OnDeclared(const fabric::sim::WireEnd& from, uint32_t size);
  // `sinks`: whether `from` has SinkAvails outstanding.
  void OnImmediateSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                       bool sinks);
  void OnArrived(const fabric::sim::WireEnd& at, const sdp::wire::Message& message);
  // Whether the peer waits for an answer about the receive buffers of this end.
  bool IsPending(const fabric::sim::WireEnd& end) { return PeerOf(end).asked > 0; }

 private:
  void CheckSize(const fabric::sim::WireEnd& from, const sdp::wire::Message& message);
  void Ask(const fabric::sim::WireEnd& from, const sdp::wire::Message& message, uint32_t desired);
  void Answer(const fabric::sim::WireEnd& from, uint32_t actual, bool sinks);
  void OnAsked(const fabric::sim::WireEnd& at, const sdp::wire::Message& message, uint32_t desired);
  void OnAnswered(ResizePage& end, const sdp::wire::Message& message, uint32_t actual);
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_RESIZE_CHECKER_H_
