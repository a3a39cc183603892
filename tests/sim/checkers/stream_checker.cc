#include "tests/sim/checkers/stream_checker.h"

#include <algorithm>

#include "tests/sim/checkers/content.h"

namespace esdp::simulation {

size_t StreamChecker::SendPosted(uint64_t seed, uint64_t length, bool urgent) {
  sends_.push_back({.seed = seed, .length = length, .urgent = urgent});
  return sends_.size() - 1;
}

void StreamChecker::SendEnded(size_t number, bool ok, bool left_out, uint64_t stream_offset) {
  Send& send = sends_[number];
  send.ended = true;
  send.ok = ok;
  send.left_out = left_out;
  send.offset = stream_offset;
}

void StreamChecker::Received(ConstBytes bytes, uint64_t stream_offset, bool urgent) {
  if (end_seen_ && !bytes.empty()) Find("bytes after the end of the stream");
  if (!bytes.empty() && stream_offset != received_.size()) {
    Find("a receive says its offset is " + std::to_string(stream_offset) + ", but " +
         std::to_string(received_.size()) + " bytes came before");
  }
  received_.insert(received_.end(), bytes.begin(), bytes.end());
  if (urgent) urgent_received_.push_back(received_.size());
}

// Where what was received ends, urgent bytes are missing; before that, none.
void StreamChecker::CheckUrgent(const std::vector<uint64_t>& sent) const {
  for (size_t i = 0; i < std::max(sent.size(), urgent_received_.size()); ++i) {
    const bool came = i < urgent_received_.size();
    if (came && (i >= sent.size() || sent[i] != urgent_received_[i])) {
      const uint64_t place = urgent_received_[i];
      return Find("byte " + std::to_string(place - 1) +
                  " is received as urgent and was not sent so");
    }
    if (!came && sent[i] <= received_.size()) {
      return Find("byte " + std::to_string(sent[i] - 1) +
                  " was sent as urgent and not received so");
    }
  }
  if (urgent_told_ > sent.size()) {
    Find(std::to_string(urgent_told_) + " urgent bytes are told of, " +
         std::to_string(sent.size()) + " were sent");
  }
  if (urgent_ended_ && urgent_told_ < sent.size()) {
    Find("no urgent byte is left to tell of, though of " + std::to_string(sent.size()) + " only " +
         std::to_string(urgent_told_) + " were");
  }
}

void StreamChecker::Finish(bool whole) {
  uint64_t offset = 0;
  std::vector<std::byte> expected;
  std::vector<uint64_t> urgent;
  for (const Send& send : sends_) {
    if (send.left_out) continue;
    if (send.ok && send.offset != offset) {
      Find("a send says its offset is " + std::to_string(send.offset) + ", but it is " +
           std::to_string(offset));
    }
    if (whole && !send.ok) Find("a send failed on a connection that nothing has disturbed");
    if (offset < received_.size()) {
      const size_t length = std::min<uint64_t>(send.length, received_.size() - offset);
      expected.resize(length);
      FillContent(send.seed, 0, expected);
      const auto begin = received_.begin() + static_cast<ptrdiff_t>(offset);
      const auto differ = std::mismatch(expected.begin(), expected.end(), begin).first;
      if (differ != expected.end()) {
        return Find("byte " +
                    std::to_string(offset + static_cast<uint64_t>(differ - expected.begin())) +
                    " of the stream is wrong");
      }
    }
    offset += send.length;
    if (send.urgent) urgent.push_back(offset);
  }
  CheckUrgent(urgent);
  if (received_.size() > offset) {
    Find(std::to_string(received_.size() - offset) + " bytes more received than sent");
  }
  if (received_.size() < offset && (whole || end_seen_)) {
    Find(std::to_string(offset - received_.size()) + " bytes lost of " + std::to_string(offset));
  }
  if (whole && !end_seen_) Find("the end of the stream never came");
}

}  // namespace esdp::simulation
