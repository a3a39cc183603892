#ifndef ESDP_TESTS_SIM_CHECKERS_WIRE_CHECKER_H_
#define ESDP_TESTS_SIM_CHECKERS_WIRE_CHECKER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <set>

#include "tests/sim/checkers/mode_checker.h"
#include "tests/sim/checkers/resize_checker.h"
#include "tests/sim/checkers/suspend_checker.h"
#include "tests/sim/checkers/urgent_checker.h"
#include "tests/sim/checkers/wire_books.h"

namespace esdp::simulation {

// One end by its messages and adverts.
struct WirePage {
  // One advert of a source, until all of it was read or given back.
  struct Advert {
    uint64_t unread = 0;  // beyond the bytes that came with it
    uint64_t read = 0;
    bool with_bytes = false;  // user bytes came with it, as in Combined
  };
  // What the peer has given back of our adverts, with MSeq of the message that says so.
  struct Return {
    uint32_t sequence = 0;
    uint64_t bytes = 0;
  };
  uint32_t sent = 0;     // MSeq of the last message that left
  uint32_t arrived = 0;  // MSeq of the last one that came
  uint32_t limit = 0;    // the peer has said that it takes messages up to this MSeq
  uint32_t adverts_max = 1;
  std::deque<Advert> sources;            // our SrcAvails as we know of them
  std::deque<Return> returns;            // the last of those that are no more
  std::deque<Advert> seen;               // the peer's SrcAvails that have arrived here
  std::optional<uint32_t> sink_arrived;  // MSeq of the last SinkAvail that overrides SrcAvails
  std::optional<uint32_t> cancel_sent;   // MSeq of our SrcAvailCancel until it is processed
  std::optional<uint32_t> cancel_seen;   // and of the peer's
  // Our SinkAvails as we know of them, at the least: what ends one may arrive after it was posted
  // and before it leaves, and is then counted ahead.
  int64_t sinks = 0;
  bool has_sinks = false;  // once one has left: which SrcAvails are overridden cannot be seen here
  uint32_t live = 0;       // the peer's that have arrived and are not stale
  uint32_t potential_non_discards = 0;  // section 8.2
  // Since we have left Pipelined and until the peer has heard of it (section 5): MSeq of our
  // ModeChange, and what the counter was then.
  std::optional<uint32_t> frozen_until;
  uint32_t frozen_non_discards = 0;
  bool end_sent = false;  // DisConn or AbortConn
};

// The rules of SDP that can be seen on the wire alone, with bookkeeping of its own: messages that
// decode, MSeq in order, credits never overdrawn, no more adverts than the peer takes; the rules of
// modes, resizing, urgent bytes and suspending are checkers of their own. Marks what it sees. A
// connection that was disturbed by a hostile message is no longer looked at.
class WireChecker : public fabric::sim::WireObserver, private WireBooks<WirePage> {
 public:
  WireChecker(Findings& findings, Marks& marks)
      : WireBooks(findings, marks),
        modes_(findings, marks),
        resizes_(findings, marks),
        urgents_(findings, marks),
        suspends_(findings, marks) {}

  void OnPrivateData(const fabric::sim::WireEnd& from, std::vector<std::byte>& data) override;
  void OnTransmit(const fabric::sim::WireEnd& from, fabric::sim::Frame& frame) override;
  void OnArrive(const fabric::sim::WireEnd& at, const fabric::sim::Frame& frame) override;

  void Disregard(uint16_t connection) { disregarded_.insert(FirstOf(connection)); }
  // A connection that has moved to another queue pair keeps its first number.
  uint16_t FirstOf(uint16_t connection) const { return suspends_.FirstOf(connection); }
  uint64_t messages() const { return messages_; }

 private:
  using End = WirePage;

  bool IsDisregarded(uint16_t connection) const {
    return !disregarded_.empty() && disregarded_.contains(FirstOf(connection));
  }
  void FollowMove(const fabric::sim::WireEnd& from, const fabric::sim::Frame& frame);
  void OnMessage(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                 bool invalidates);
  void CheckSequence(const fabric::sim::WireEnd& from, const sdp::wire::Message& message);
  void CheckCredits(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                    size_t payload);
  void CheckEnd(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                size_t payload);
  void NoteSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                size_t payload);
  void NoteChangeSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message);
  void NoteAdvertSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                      size_t payload);
  void NoteAnswerSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message);
  void GiveBack(End& end, const sdp::wire::Message& message, size_t adverts);
  void EndOneSink(End& end);
  void NoteSinkArrived(End& end, const sdp::wire::Message& message);
  void NoteAnswerArrived(End& end, const sdp::wire::Message& message);
  void NoteArrived(const fabric::sim::WireEnd& at, const sdp::wire::Message& message,
                   size_t payload);

  ModeChecker modes_;
  ResizeChecker resizes_;
  UrgentChecker urgents_;
  SuspendChecker suspends_;
  uint64_t messages_ = 0;
  std::set<uint16_t> disregarded_;  // by their first numbers
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_WIRE_CHECKER_H_
