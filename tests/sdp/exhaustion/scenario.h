#ifndef ESDP_TESTS_SDP_EXHAUSTION_SCENARIO_H_
#define ESDP_TESTS_SDP_EXHAUSTION_SCENARIO_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "impl/sdp/interface/config.h"
#include "tests/sdp/exhaustion/marks.h"

// What two applications ask of each other. The search tries every order in which these asks and
// everything that follows from them can happen.

namespace esdp::sdp::exhaustion {

// One thing that an application asks. Sends are numbered 0..3, all others from 4 on; a number is
// used once at each end.
struct Ask {
  enum class Kind : uint8_t {
    kSend,
    kReceive,
    kCancel,
    kShutdown,
    kClose,
    kAbort,
    kMode,
    kAwaitUrgent,
    kSuspend
  };
  Kind kind = Kind::kSend;
  uint8_t number = 0;   // of the operation; of that to be cancelled
  uint8_t length = 0;   // a send at most 64 bytes, so that each byte can tell where it is from
  bool direct = false;  // zero-copy wanted, else copying
  bool wait_all = false;
  bool delivered = false;                // a send that ends when the peer has the bytes
  bool after_ended = false;              // not before the thread's previous operation has ended
  ModeWish wish = ModeWish::kAutomatic;  // kMode: for the send half
  bool urgent = false;                   // a send: its last byte
};

// The asks of one thread of the application come in order; threads have no order among each other.
using Thread = std::vector<Ask>;

struct Application {
  std::vector<Thread> threads;
};

// What a search that works finds at once: with each of these a scenario must fail.
enum class Fault : uint8_t {
  kNone,
  kChangesAByte,  // in what a READ brings
  kLosesSendSm,   // on its way
  kLosesSuspCommAck,
  kLosesOobPresent,
  kPromisesTooMuch,  // Bufs of each message to a is three more than it was
};

struct Scenario {
  const char* name = "";
  Application a, b;
  Config config_a, config_b;
  uint32_t reads_max = 1;           // RDMA reads that each may have in flight
  bool sends_finish_late = true;    // a Send may leave long after it was posted, else at once
  bool expose_may_fail = false;     // both answers are tried
  bool prepare_may_fail = false;    // also where larger receive buffers are asked for
  bool timers_race = false;         // a timer may fire at any moment, else when nothing else can
  bool all_must_end = true;         // each ask is made and each operation ends on every path
  bool acknowledges_early = false;  // b does not hold MSeqAck back, as deployed peers [7.4]
  Fault fault = Fault::kNone;
  uint64_t states_min = 0;  // fewer are a scenario that does not try what it should
  uint64_t ends_min = 0;
  Marks must_reach = 0;
};

// The table: those that are tried always, and those by hand only.
std::vector<Scenario> AllScenarios();
std::vector<Scenario> LargeScenarios();

// Short forms for the table.
inline Ask MakeAsk(Ask::Kind kind, uint8_t number, uint8_t length = 0, bool direct = false) {
  Ask ask;
  ask.kind = kind;
  ask.number = number;
  ask.length = length;
  ask.direct = direct;
  return ask;
}
inline Ask Send(uint8_t number, uint8_t length) {
  return MakeAsk(Ask::Kind::kSend, number, length);
}
inline Ask DirectSend(uint8_t number, uint8_t length) {
  return MakeAsk(Ask::Kind::kSend, number, length, true);
}
inline Ask Receive(uint8_t number, uint8_t length) {
  return MakeAsk(Ask::Kind::kReceive, number, length);
}
inline Ask DirectReceive(uint8_t number, uint8_t length) {
  return MakeAsk(Ask::Kind::kReceive, number, length, true);
}
inline Ask Cancel(uint8_t number) { return MakeAsk(Ask::Kind::kCancel, number); }
inline Ask Shutdown(uint8_t number) { return MakeAsk(Ask::Kind::kShutdown, number); }
inline Ask Close(uint8_t number) { return MakeAsk(Ask::Kind::kClose, number); }
inline Ask Abort(uint8_t number) { return MakeAsk(Ask::Kind::kAbort, number); }
inline Ask AwaitUrgent(uint8_t number) { return MakeAsk(Ask::Kind::kAwaitUrgent, number); }
inline Ask Suspend(uint8_t number) { return MakeAsk(Ask::Kind::kSuspend, number); }
inline Ask Urgent(Ask ask) {
  ask.urgent = true;
  return ask;
}
// The mode wanted for the send half; goes without a number.
inline Ask Want(ModeWish wish) {
  Ask ask;
  ask.kind = Ask::Kind::kMode;
  ask.wish = wish;
  return ask;
}
inline Ask All(Ask ask) {
  ask.wait_all = true;
  return ask;
}
inline Ask Then(Ask ask) {
  ask.after_ended = true;
  return ask;
}
inline Ask Delivered(Ask ask) {
  ask.delivered = true;
  return ask;
}

}  // namespace esdp::sdp::exhaustion

#endif  // ESDP_TESTS_SDP_EXHAUSTION_SCENARIO_H_
