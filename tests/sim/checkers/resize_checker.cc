#include "tests/sim/checkers/resize_checker.h"

#include <algorithm>

namespace esdp::simulation {

namespace wire = sdp::wire;
using fabric::sim::WireEnd;
using wire::Message;

void ResizeChecker::OnDeclared(const WireEnd& from, uint32_t size) {
  PeerOf(from).first = PeerOf(from).size = size;
  Of(from).told = size;
}

void ResizeChecker::OnImmediateSent(const WireEnd& from, const Message& message, bool sinks) {
  CheckSize(from, message);
  if (const auto* request = Get<wire::ChRcvBuf>(message)) Ask(from, message, request->desired_size);
  if (const auto* answer = Get<wire::ChRcvBufAck>(message))
    Answer(from, answer->actual_size, sinks);
}

void ResizeChecker::CheckSize(const WireEnd& from, const Message& message) {
  ResizePage& end = Of(from);
  if (end.grows_to > 0 && Beyond(message.base.sequence, end.grows_behind)) {
    end.size = std::exchange(end.grows_to, 0);
  }
  if (end.first == 0) return;  // its peer has declared nothing that can be read
  if (message.base.length > end.size) {
    Find(from, std::string(NameOf(message)) + " of " + std::to_string(message.base.length) +
                   " bytes for a buffer of " + std::to_string(end.size));
  }
  if (message.base.length > end.first) marks().Hit("a message larger than the first buffers");
}

void ResizeChecker::Ask(const WireEnd& from, const Message& message, uint32_t desired) {
  ResizePage& end = Of(from);
  if (end.asked > 0) Find(from, "ChRcvBuf before the last one is answered");
  if (end.settled) Find(from, "ChRcvBuf though one was answered");
  if (end.wanted > 0 && Beyond(end.wanted_by, message.base.acknowledged)) {
    marks().Hit("both ask for another size");
    if (from.connecting) return;  // the peer disregards this one
    end.wanted = 0;
  }
  end.asked = desired;
  end.before = end.size;
  end.size = std::min(end.size, desired);
}

void ResizeChecker::Answer(const WireEnd& from, uint32_t actual, bool sinks) {
  ResizePage& end = Of(from);
  if (end.wanted == 0) return Find(from, "ChRcvBufAck: an answer to no request");
  const auto [least, most] = std::minmax(end.told, end.wanted);
  if (actual < least || actual > most) {
    Find(from, "ChRcvBufAck: " + std::to_string(actual) + " is not from " + std::to_string(least) +
                   " to " + std::to_string(most));
  }
  marks().Hit(actual == end.told  ? "a resize refused"
              : actual > end.told ? "receive buffers that grow"
                                  : "receive buffers that shrink");
  if (actual > end.told && sinks) marks().Hit("buffers grow while a receive is shown");
  end.told = actual;
  end.wanted = 0;
}

void ResizeChecker::OnArrived(const WireEnd& at, const Message& message) {
  if (const auto* request = Get<wire::ChRcvBuf>(message)) {
    OnAsked(at, message, request->desired_size);
  }
  if (const auto* answer = Get<wire::ChRcvBufAck>(message)) {
    OnAnswered(Of(at), message, answer->actual_size);
  }
}

void ResizeChecker::OnAsked(const WireEnd& at, const Message& message, uint32_t desired) {
  ResizePage& end = Of(at);
  if (end.asked > 0) {
    marks().Hit("both ask for another size");
    if (!at.connecting) return;  // its own request stands
    end.asked = 0;
    end.size = end.before;
  }
  end.wanted = desired;
  end.wanted_by = message.base.sequence;
}

void ResizeChecker::OnAnswered(ResizePage& end, const Message& message, uint32_t actual) {
  if (end.asked == 0) return;
  end.settled = true;
  const bool lowers = end.asked < end.before;
  end.asked = 0;
  if (lowers) {
    end.size = std::max(end.size, actual);
  } else if (actual > end.size) {
    end.grows_to = actual;
    end.grows_behind = message.base.acknowledged + message.base.buffers;
  }
}

}  // namespace esdp::simulation
