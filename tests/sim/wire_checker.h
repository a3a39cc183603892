#ifndef ESDP_TESTS_SIM_WIRE_CHECKER_H_
#define ESDP_TESTS_SIM_WIRE_CHECKER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "impl/fabric/sim/wire_observer.h"
#include "impl/sdp/wire/messages.h"
#include "tests/sim/findings.h"
#include "tests/sim/marks.h"

namespace esdp::simulation {

// The rules of SDP that can be seen on the wire alone, with bookkeeping of its own: messages that
// decode, MSeq in order, credits never overdrawn, no more adverts than the peer takes. Marks what
// it sees. A connection that was disturbed by a hostile message is no longer looked at.
class WireChecker : public fabric::sim::WireObserver {
 public:
  WireChecker(Findings& findings, Marks& marks) : findings_(&findings), marks_(&marks) {}

  void OnPrivateData(const fabric::sim::WireEnd& from, ConstBytes data) override;
  void OnTransmit(const fabric::sim::WireEnd& from, fabric::sim::Frame& frame) override;
  void OnArrive(const fabric::sim::WireEnd& at, const fabric::sim::Frame& frame) override;

  void Disregard(uint16_t connection) { disregarded_.insert(connection); }
  uint64_t messages() const { return messages_; }

 private:
  // One advert of a source, until all of it was read or given back.
  struct Advert {
    uint64_t unread = 0;  // beyond the bytes that came with it
    uint64_t read = 0;
  };
  struct End {
    uint32_t sent = 0;     // MSeq of the last message that left
    uint32_t arrived = 0;  // MSeq of the last one that came
    uint32_t limit = 0;    // the peer has said that it takes messages up to this MSeq
    uint32_t adverts_max = 1;
    std::deque<Advert> sources;           // our SrcAvails as we know of them
    std::deque<Advert> seen;              // the peer's SrcAvails that have arrived here
    std::optional<uint32_t> cancel_sent;  // MSeq of our SrcAvailCancel until it is processed
    std::optional<uint32_t> cancel_seen;  // and of the peer's
    // Our SinkAvails as we know of them, at the least: what ends one may arrive after it was posted
    // and before it leaves, and is then counted ahead.
    int64_t sinks = 0;
    bool has_sinks =
        false;          // once one has left: which SrcAvails are overridden cannot be seen here
    uint32_t live = 0;  // the peer's that have arrived and are not stale
    uint32_t potential_non_discards = 0;  // section 8.2
    bool end_sent = false;                // DisConn or AbortConn
  };

  End& Of(const fabric::sim::WireEnd& end) { return ends_[{end.connection, end.connecting}]; }
  void CheckSequence(const fabric::sim::WireEnd& from, const sdp::wire::Message& message);
  void CheckCredits(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                    size_t payload);
  void CheckEnd(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                size_t payload);
  void NoteSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                size_t payload);
  void NoteAdvertSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                      size_t payload);
  void NoteAnswerSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message);
  void EndOneSink(End& end);
  void NoteSinkArrived(End& end, const sdp::wire::SinkAvail& advert);
  void NoteAnswerArrived(End& end, const sdp::wire::Message& message);
  void NoteArrived(const fabric::sim::WireEnd& at, const sdp::wire::Message& message,
                   size_t payload);
  void Find(const fabric::sim::WireEnd& where, const std::string& what);

  Findings* findings_;
  Marks* marks_;
  uint64_t messages_ = 0;
  std::map<std::pair<uint16_t, bool>, End> ends_;
  std::set<uint16_t> disregarded_;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_WIRE_CHECKER_H_
