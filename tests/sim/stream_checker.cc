#include "tests/sim/stream_checker.h"

#include <algorithm>

#include "tests/sim/content.h"

namespace esdp::simulation {

size_t StreamChecker::SendPosted(uint64_t seed, uint64_t length) {
  sends_.push_back({.seed = seed, .length = length});
  return sends_.size() - 1;
}

void StreamChecker::SendEnded(size_t number, bool ok, bool left_out, uint64_t stream_offset) {
  Send& send = sends_[number];
  send.ended = true;
  send.ok = ok;
  send.left_out = left_out;
  send.offset = stream_offset;
}

void StreamChecker::Received(ConstBytes bytes, uint64_t stream_offset) {
  if (end_seen_ && !bytes.empty()) Find("bytes after the end of the stream");
  if (!bytes.empty() && stream_offset != received_.size()) {
    Find("a receive says its offset is " + std::to_string(stream_offset) + ", but " +
         std::to_string(received_.size()) + " bytes came before");
  }
  received_.insert(received_.end(), bytes.begin(), bytes.end());
}

void StreamChecker::Finish(bool whole) {
  uint64_t offset = 0;
  std::vector<std::byte> expected;
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
  }
  if (received_.size() > offset) {
    Find(std::to_string(received_.size() - offset) + " bytes more received than sent");
  }
  if (received_.size() < offset && (whole || end_seen_)) {
    Find(std::to_string(offset - received_.size()) + " bytes lost of " + std::to_string(offset));
  }
  if (whole && !end_seen_) Find("the end of the stream never came");
}

}  // namespace esdp::simulation
