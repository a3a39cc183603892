#include "impl/sdp/connection.h"

// Sends whose threshold is learned from what they cost.

namespace esdp::sdp {

void Connection::AskAdaptiveSend(AskSend ask) {
  if (!threshold_.started()) threshold_.Start(ask.zcopy_min);
  // Of an operation in several pieces the first alone would not tell the size.
  if (ask.path == Path::kByThreshold && ask.exposable && !ask.more && ask.piece.offset == 0) {
    ask.zcopy_min = threshold_.Begin(ask.piece.operation, ask.piece.length, now_);
  } else {
    ask.zcopy_min = threshold_.in_force();
  }
  counters_.adaptive_threshold = threshold_.in_force();
  send_.Ask(ask);
}

void Connection::LearnFromEnds(const Actions& actions, size_t first) {
  for (size_t i = first; i < actions.size(); ++i) {
    const auto* end = std::get_if<FinishOperation>(&actions[i]);
    if (end == nullptr) continue;
    threshold_.End(end->operation, end->bytes, end->bytes_zero_copy, end->outcome == Outcome::kDone,
                   now_);
  }
  counters_.adaptive_threshold = threshold_.in_force();
}

}  // namespace esdp::sdp
