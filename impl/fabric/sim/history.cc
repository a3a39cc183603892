#include "impl/fabric/sim/history.h"

#include <algorithm>

namespace esdp::fabric::sim {

const char* ToString(StepKind kind) {
  switch (kind) {
    case StepKind::kConnect:
      return "connect";
    case StepKind::kRequest:
      return "request";
    case StepKind::kAnswer:
      return "answer";
    case StepKind::kEstablished:
      return "established";
    case StepKind::kPost:
      return "post";
    case StepKind::kTransmit:
      return "transmit";
    case StepKind::kArrive:
      return "arrive";
    case StepKind::kComplete:
      return "complete";
    case StepKind::kWait:
      return "wait";
    case StepKind::kEnd:
      return "end";
    case StepKind::kFault:
      return "fault";
  }
  return "unknown";
}

void History::Record(const Step& step) {
  ++count_;
  digest_.Add(static_cast<uint64_t>(step.time.time_since_epoch().count()))
      .Add(static_cast<uint64_t>(step.kind))
      .Add(step.object)
      .Add(step.detail)
      .Add(step.content);
  if (kept_max_ == 0) return;
  if (kept_.size() == kept_max_) kept_.pop_front();
  kept_.push_back(step);
}

std::string History::Tail() const {
  std::string text;
  for (const Step& step : kept_) {
    text += std::to_string(step.time.time_since_epoch().count()) + " ns  #" +
            std::to_string(step.object) + " " + ToString(step.kind) + " " +
            std::to_string(step.detail) + " " + std::to_string(step.content) + "\n";
  }
  return text;
}

uint64_t DigestOf(ConstBytes bytes) {
  Digest digest;
  digest.Add(bytes.size());
  size_t offset = 0;
  for (; offset + sizeof(uint64_t) <= bytes.size(); offset += sizeof(uint64_t)) {
    digest.Add(LoadBigEndian<uint64_t>(bytes, offset));
  }
  for (; offset < bytes.size(); ++offset) digest.Add(std::to_integer<uint64_t>(bytes[offset]));
  return digest.value();
}

}  // namespace esdp::fabric::sim
