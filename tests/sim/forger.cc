#include "tests/sim/forger.h"

#include <algorithm>

#include "impl/sdp/wire/codec.h"

namespace esdp::simulation {

namespace wire = sdp::wire;
using fabric::sim::Frame;
using fabric::sim::FrameKind;
using fabric::sim::WireEnd;

void Forger::NoteAdvert(const Frame& frame) {
  wire::Message message;
  if (wire::Decode(frame.payload, message)) return;
  if (const auto* advert = std::get_if<wire::SrcAvail>(&message.body)) {
    shown_.push_back({{advert->remote_key, advert->virtual_address}, advert->length});
  }
  if (const auto* advert = std::get_if<wire::SinkAvail>(&message.body)) {
    shown_.push_back({{advert->remote_key, advert->virtual_address}, advert->length});
  }
}

// A message becomes a write only if there is something to write to.
bool Forger::MayForge(const Frame& frame) const {
  if (frame.kind == FrameKind::kWrite || frame.kind == FrameKind::kReadRequest) return true;
  return frame.kind == FrameKind::kSend && !shown_.empty() && !frame.has_key;
}

void Forger::OnTransmit(const WireEnd& from, Frame& frame) {
  if (chance_ == 0) return;
  if (frame.kind == FrameKind::kSend) NoteAdvert(frame);
  const bool transfers = frame.kind != FrameKind::kSend;
  if (!MayForge(frame) || !random_.Chance(transfers ? chance_ : chance_ / 10, 1'000'000)) return;
  told_(from.connection);
  forged_.insert(from.connection);
  frame.kind = transfers ? frame.kind : FrameKind::kWrite;
  const uint64_t way = random_.Below(4);
  if (transfers && way == 0) return Widen(frame);
  if (way == 1 || shown_.empty()) {
    marks_->Hit("a key guessed");
    frame.remote.key = static_cast<uint32_t>(random_.Next());
    return;
  }
  marks_->Hit("a key used again, or another's");
  const Shown& shown = shown_[random_.Below(shown_.size())];
  frame.remote = shown.place;
  if (frame.kind == FrameKind::kReadRequest) return;
  frame.payload.resize(std::min<uint64_t>(frame.payload.size(), shown.length));
  std::fill(frame.payload.begin(), frame.payload.end(), std::byte{0xbd});
}

// Further than the advert went, at its end or before its begin.
void Forger::Widen(Frame& frame) {
  marks_->Hit("a key used beyond its range");
  const uint64_t more = random_.Between(1, 4096);
  if (random_.Chance(1, 2)) frame.remote.address -= more;
  if (frame.kind == FrameKind::kReadRequest) {
    frame.length += more;
  } else {
    frame.payload.resize(frame.payload.size() + more, std::byte{0xbd});
  }
}

void Forger::OnEnd(const WireEnd& at, fabric::Cause cause) {
  const bool refused = cause == fabric::Cause::kLocalAccess;
  if (refused && forged_.contains(at.connection)) marks_->Hit("a forged key refused");
}

}  // namespace esdp::simulation
