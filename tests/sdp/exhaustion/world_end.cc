#include <algorithm>

#include "impl/sdp/wire/text.h"
#include "tests/sdp/exhaustion/world.h"

// Where nothing can happen any more: is it a good end?

namespace esdp::sdp::exhaustion {
namespace {

// What the epilogue asks has these numbers; scenarios use others.
constexpr uint8_t kLastSend = 3;
constexpr uint8_t kLastReceive = 60;
constexpr uint8_t kLastShutdown = 61;
constexpr uint8_t kAfterUrgent = 50;

bool Asked(const End& end, Ask::Kind kind) {
  return std::any_of(end.operations.begin(), end.operations.end(),
                     [kind](const Operation& it) { return it.kind == kind; });
}

bool ClosesItself(const End& end) {
  return Asked(end, Ask::Kind::kClose) || Asked(end, Ask::Kind::kAbort);
}

bool Aborted(const End& end) { return end.disconnect && !end.disconnect->orderly; }

// Whether the bytes of a send are part of the stream.
bool Counts(const Operation& operation) {
  if (!operation.result) return true;
  const Outcome outcome = operation.result->outcome;
  return outcome != Outcome::kCancelled && outcome != Outcome::kShutDown;
}

// Whether bytes have left the peer that nobody has received. They may fill buffers that the Hello
// on another queue pair has to announce.
bool HasUnread(const End& end, const End& peer) {
  size_t sent = 0;
  for (const Operation& operation : peer.operations) {
    if (operation.kind == Ask::Kind::kSend && Counts(operation)) sent += operation.memory.size();
  }
  return sent > end.received.size();
}

std::string Pending(const End& end) {
  std::string text;
  for (const Operation& operation : end.operations) {
    if (!operation.result) text += " " + std::to_string(operation.number);
  }
  return text;
}

}  // namespace

void World::CheckEnd(std::string* log) {
  for (uint8_t i = 0; i < 2; ++i) CheckOperations(ends_[i], ends_[1 - i]);
  const bool aborted = Aborted(ends_[0]) || Aborted(ends_[1]) || ends_[0].broken || ends_[1].broken;
  const bool asked = ClosesItself(ends_[0]) || ClosesItself(ends_[1]);
  if (aborted && !asked) ends_[0].Wrong("the connection is broken, and nobody asked for it");
  for (uint8_t i = 0; i < 2; ++i) CheckStream(ends_[i], ends_[1 - i], false);
  if (aborted || !wrong().empty()) return;

  if (log != nullptr) *log += "--- both send a little more, shut down and read to the end\n";
  for (End& end : ends_) {
    end.log = log;
    if (ClosesItself(end)) continue;
    if (!Asked(end, Ask::Kind::kShutdown)) {
      end.Make(Send(kLastSend, 5), now_);
      end.Make(Shutdown(kLastShutdown), now_);
    }
    end.Make(All(Receive(kLastReceive, 255)), now_);
    for (size_t i = 0; i < end.peer_urgent.size(); ++i) {  // each ends one receive more
      if (end.peer_urgent[i] == 0) continue;
      end.Make(All(Receive(static_cast<uint8_t>(kAfterUrgent + i), 255)), now_);
    }
  }
  Settle();
  std::vector<Happening> possible;
  for (Possible(possible); !possible.empty() && wrong().empty(); Possible(possible)) {
    Do(possible.front(), log);
  }
  for (uint8_t i = 0; i < 2; ++i) {
    CheckStream(ends_[i], ends_[1 - i], !ClosesItself(ends_[i]));
    CheckNothingIsLeft(ends_[i]);
  }
}

// Each operation has ended, or waits for something that nobody owes it.
void World::CheckOperations(const End& end, const End& peer) {
  End& to_blame = ends_[&end == &ends_[0] ? 0 : 1];
  if (scenario_->all_must_end) {
    const auto index = static_cast<uint8_t>(&end == &ends_[0] ? 0 : 1);
    for (size_t i = 0; i < end.next_ask.size(); ++i) {
      if (end.next_ask[i] < application(index).threads[i].size()) {
        to_blame.Wrong("stuck: an ask was never made; pending:" + Pending(end));
      }
    }
    if (!Pending(end).empty()) to_blame.Wrong("stuck: pending operations:" + Pending(end));
    return;
  }
  const bool peer_reads = std::any_of(peer.operations.begin(), peer.operations.end(), [](auto& it) {
    return it.kind == Ask::Kind::kReceive && !it.result;
  });
  for (const Operation& operation : end.operations) {
    if (operation.result) continue;
    const bool is_send = operation.kind == Ask::Kind::kSend;
    if (is_send && peer_reads) to_blame.Wrong("stuck: a send and a receive wait for each other");
    const bool reads_first = operation.kind == Ask::Kind::kSuspend && HasUnread(end, peer);
    const bool waits = is_send || operation.kind == Ask::Kind::kReceive ||
                       operation.kind == Ask::Kind::kAwaitUrgent || reads_first;
    if (!waits) to_blame.Wrong("stuck: pending operations:" + Pending(end));
  }
}

// What the sink got is what the source sent, in order, from the first byte on; all of it if
// `whole`.
void World::CheckStream(const End& sink, const End& source, bool whole) {
  Payload sent;
  for (const uint8_t number : source.sends) {
    const Operation& operation = *source.Find(number);
    if (Counts(operation)) sent += operation.memory;
  }
  End& to_blame = ends_[&sink == &ends_[0] ? 0 : 1];
  if (sent.compare(0, sink.received.size(), sink.received) != 0) {
    to_blame.Wrong("the received stream is not the sent one");
  }
  if (whole && sent.size() != sink.received.size()) to_blame.Wrong("the received stream is short");
}

void World::CheckNothingIsLeft(const End& end) {
  End& to_blame = ends_[&end == &ends_[0] ? 0 : 1];
  if (!Pending(end).empty()) to_blame.Wrong("stuck at the close:" + Pending(end));
  if (!end.reported_closed) to_blame.Wrong("the connection does not close");
  if (!end.exposures.empty()) to_blame.Wrong("memory stays exposed");
}

std::string World::Describe(const Happening& happening) const {
  static constexpr const char* kWhat[] = {"asks",
                                          "gets",
                                          "Send has left",
                                          "READ is placed",
                                          "WRITE has left",
                                          "withdrawal is done",
                                          "memory is exposed",
                                          "memory cannot be exposed",
                                          "larger buffers are there",
                                          "there is no memory for larger buffers",
                                          "new queue pair is ready",
                                          "timer fires",
                                          "queue pair is gone"};
  std::string text = happening.end == 0 ? "a: " : "b: ";
  text += kWhat[static_cast<size_t>(happening.what)];
  const End& end = ends_[happening.end];
  if (happening.what == What::kAsk) {
    static constexpr const char* kAsk[] = {"send",  "receive", "cancel",       "shutdown", "close",
                                           "abort", "mode",    "await urgent", "suspend"};
    const Thread& thread = application(happening.end).threads[happening.which];
    const Ask& ask = thread[end.next_ask[happening.which]];
    text += std::string(" ") + kAsk[static_cast<size_t>(ask.kind)] + " " +
            std::to_string(ask.number) + ": " + std::to_string(ask.length) + " bytes" +
            (ask.direct ? ", direct" : "");
  } else if (happening.what == What::kDeliver) {
    const Parcel& parcel = ends_[1 - happening.end].outgoing.front();
    text += parcel.write ? " a WRITE" : " " + wire::ToText(parcel.message);
    text += ", " + std::to_string(parcel.payload.size()) + " user bytes";
  }
  return text + "\n";
}

namespace {

std::string RangeText(const OperationRange& range) {
  return std::to_string(static_cast<uint32_t>(range.operation)) + "[" +
         std::to_string(range.offset) + ".." + std::to_string(range.offset + range.length) + ")";
}

struct Teller {
  std::string operator()(const sdp::Send& it) const {
    return "Send " + wire::ToText(it.message) + (it.invalidate_key ? " (invalidates)" : "");
  }
  std::string operator()(const Read& it) const { return "Read into " + RangeText(it.target); }
  std::string operator()(const Write& it) const { return "Write from " + RangeText(it.source); }
  std::string operator()(const CopyIn& it) const { return "CopyIn to " + RangeText(it.target); }
  std::string operator()(const CopyOut& it) const { return "CopyOut of " + RangeText(it.source); }
  std::string operator()(const Expose& it) const { return "Expose " + RangeText(it.range); }
  std::string operator()(const Withdraw& it) const {
    return "Withdraw advert " + std::to_string(static_cast<uint32_t>(it.advert));
  }
  std::string operator()(const FinishOperation& it) const {
    return "FinishOperation " + std::to_string(static_cast<uint32_t>(it.operation)) + ": " +
           ToString(it.outcome) + ", " + std::to_string(it.bytes) + " bytes" +
           (it.end_of_stream ? ", end of stream" : "");
  }
  std::string operator()(const Disconnect& it) const {
    return std::string(it.orderly ? "Disconnect in order " : "Disconnect ") + it.reason;
  }
  std::string operator()(const PostReceive&) const { return "PostReceive"; }
  std::string operator()(const PrepareReceives&) const { return "PrepareReceives"; }
  std::string operator()(const RetireReceive&) const { return "RetireReceive"; }
  std::string operator()(const ReportClosed&) const { return "ReportClosed"; }
  template <typename T>
  std::string operator()(const T&) const {
    return "(other)";
  }
};

}  // namespace

std::string ToText(const Action& action) { return std::visit(Teller{}, action); }

}  // namespace esdp::sdp::exhaustion
