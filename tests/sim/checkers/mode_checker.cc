#include "tests/sim/checkers/mode_checker.h"

namespace esdp::simulation {
namespace {

namespace wire = sdp::wire;
using fabric::sim::WireEnd;
using wire::Message;
using wire::Mode;

const char* NameOf(Mode mode) {
  constexpr const char* kNames[] = {"Buffered", "Combined", "Pipelined"};
  return kNames[static_cast<size_t>(mode)];
}

// By its source, who says the mode of the half that it feeds; by its sink otherwise.
bool IsLegal(bool by_source, Mode from, Mode to) {
  if (!by_source) return from == Mode::kBuffered && to == Mode::kCombined;
  if (from == Mode::kCombined) return to != Mode::kCombined;
  return from == Mode::kPipelined && to == Mode::kCombined;
}

}  // namespace

void ModeChecker::OnImmediateSent(const WireEnd& from, const Message& message, size_t payload,
                                  bool invalidates) {
  CheckDeployed(from, message, invalidates);
  if (const auto* advert = Get<wire::SrcAvail>(message)) CheckSrcAvail(from, *advert, payload);
  if (Get<wire::SinkAvail>(message) != nullptr) CheckSinkAvail(from, message);
  if (Get<wire::ModeChange>(message) != nullptr) CheckChange(from, message);
  if ((message.base.flags & wire::kFlagReqPipe) == 0) return;
  if (Get<wire::RdmaRdCompl>(message) == nullptr && Get<wire::RdmaWrCompl>(message) == nullptr) {
    Find(from, std::string("REQ_PIPE on ") + simulation::NameOf(message));
  }
  marks().Hit("REQ_PIPE");
  if (Of(from).receive != PeerOf(from).send) marks().Hit("a ModeChange crosses REQ_PIPE");
}

// Section 19: what a peer that declares one advert does not know, it is not sent.
void ModeChecker::CheckDeployed(const WireEnd& from, const Message& message, bool invalidates) {
  const bool to_deployed = PeerOf(from).adverts_max <= 1;
  if (!to_deployed && Of(from).adverts_max > 1) return;
  bool unknown = invalidates || Get<wire::SinkAvail>(message) != nullptr ||
                 Get<wire::ModeChange>(message) != nullptr ||
                 Get<wire::RdmaWrCompl>(message) != nullptr ||
                 Get<wire::SinkAvailCancel>(message) != nullptr ||
                 (message.base.flags & wire::kFlagReqPipe) != 0;
  if (to_deployed) {
    unknown = unknown || Get<wire::ChRcvBuf>(message) != nullptr ||
              Get<wire::SuspComm>(message) != nullptr;
  }
  if (unknown) {
    Find(from, std::string(simulation::NameOf(message)) + " beyond what deployed peers know");
  }
  if (Get<wire::SrcAvail>(message) != nullptr) marks().Hit("a deployed peer's SrcAvail");
  if (Get<wire::SrcAvailCancel>(message) != nullptr) marks().Hit("a deployed peer's cancel");
}

void ModeChecker::CheckSrcAvail(const WireEnd& from, const wire::SrcAvail& advert, size_t payload) {
  switch (Of(from).send) {
    case Mode::kBuffered:
      return Find(from, "SrcAvail in Buffered");
    case Mode::kCombined:
      if (payload == 0) Find(from, "SrcAvail without user bytes in Combined");
      if (payload >= advert.length) Find(from, "SrcAvail that shows nothing more");
      return;
    case Mode::kPipelined:
      if (payload > 0) Find(from, "SrcAvail with user bytes in Pipelined");
      return;
  }
}

void ModeChecker::CheckSinkAvail(const WireEnd& from, const Message& message) {
  const ModePage& end = Of(from);
  if (end.receive == Mode::kPipelined) return;
  const bool had_not_heard = end.lowered_by && Beyond(*end.lowered_by, message.base.acknowledged);
  if (had_not_heard) {
    marks().Hit("a SinkAvail crosses the end of Pipelined");
  } else {
    Find(from, std::string("SinkAvail in ") + NameOf(end.receive));
  }
}

void ModeChecker::CheckChange(const WireEnd& from, const Message& message) {
  const auto& change = *Get<wire::ModeChange>(message);
  ModePage& end = Of(from);
  Mode& mode = change.changes_send_half ? end.receive : end.send;
  const std::string step = std::string(NameOf(mode)) + " to " + NameOf(change.mode);
  if (!IsLegal(!change.changes_send_half, mode, change.mode)) {
    Find(from, "ModeChange from " + step);
  }
  if (end.frozen_until && Beyond(*end.frozen_until, end.acknowledged)) {
    Find(from, "another ModeChange before the last one is acknowledged");
  }
  marks().Hit(step);
  if (mode == Mode::kPipelined) end.frozen_until = message.base.sequence;
  mode = change.mode;
}

// Writes that run are finished before the mode is left.
void ModeChecker::OnWrite(const WireEnd& from) {
  if (Of(from).send != Mode::kPipelined) {
    Find(from, std::string("an RDMA write in ") + NameOf(Of(from).send));
  }
}

void ModeChecker::OnArrived(const WireEnd& at, const Message& message) {
  ModePage& end = Of(at);
  if (Beyond(message.base.acknowledged, end.acknowledged)) {
    end.acknowledged = message.base.acknowledged;
  }
  const auto* change = Get<wire::ModeChange>(message);
  if (change == nullptr) return;
  Mode& mode = change->changes_send_half ? end.send : end.receive;
  if (mode == Mode::kPipelined) end.lowered_by = message.base.sequence;
  mode = change->mode;
}

}  // namespace esdp::simulation
