// What follows a large segment is read along with it, on a guess. Right or wrong, every byte comes
// to its place.

#include <random>
#include <vector>

#include "tests/fabric/qpip/qpip_fixture.h"

namespace esdp::fabric::qpip {
namespace {

constexpr Access kForWriting{.remote_write = true};
constexpr size_t kReceiveBytes = 6000;
constexpr size_t kReceives = 16;
constexpr size_t kWindowAt = kReceives * kReceiveBytes;
constexpr size_t kWindowBytes = 64 * 1024;
constexpr size_t kTargetAt = kWindowAt + kWindowBytes;
constexpr size_t kTargetBytes = 40000;

class AheadTest : public QpipTest {
 protected:
  void Start(bool summed, uint32_t seed) {
    summed_ = summed;
    random_.seed(seed);
    Open({});
    Establish({.flags = static_cast<uint8_t>(summed ? 0x50 : 0x10)});
    ASSERT_TRUE(peer_->Send(Frame(Tagged(0, 0, 0, {}), summed_)));  // it may speak now
    window_ = BindWindow(kWindowAt, kWindowBytes, kForWriting);
    sequence_ = 0;
    lengths_.clear();
    wanted_.assign(kMemoryBytes, 0);
    for (std::byte& byte : memory_) byte = std::byte{0};
  }
  size_t Below(size_t bound) { return random_() % bound; }
  Octets Noise(size_t length) {
    Octets bytes(length);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    return bytes;
  }
  void Want(size_t at, const Octets& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) wanted_[at + i] = bytes[i];
  }
  // Mostly of one length, so that guesses are right often, and wrong in every way.
  size_t Length() {
    const size_t others[] = {1, 100, 2047, 2048, 3999, 4001, kReceiveBytes};
    return Below(3) != 0 ? 4000 : others[Below(std::size(others))];
  }

  Octets SendMessage() {
    const Octets content = Noise(Length());
    const size_t at = sequence_ * kReceiveBytes;
    PostReceive(sequence_++, at, kReceiveBytes);
    Want(at, content);
    lengths_.push_back(static_cast<ptrdiff_t>(content.size()));
    const size_t cut = Below(4) == 0 ? Below(content.size()) : 0;
    const Octets first(content.begin(), content.begin() + static_cast<ptrdiff_t>(cut));
    const Octets second(content.begin() + static_cast<ptrdiff_t>(cut), content.end());
    Octets out;
    if (cut != 0) out = Frame(Untagged({.sequence = sequence_, .last = false}, first), summed_);
    return out +
           Frame(Untagged({.sequence = sequence_, .offset = static_cast<uint32_t>(cut)}, second),
                 summed_);
  }
  Octets WriteToWindow() {
    const Octets content = Noise(Length());
    const size_t at = Below(kWindowBytes - content.size());
    Want(kWindowAt + at, content);
    return Frame(Tagged(0, window_, at, content), summed_);
  }
  Octets PieceOfResponse() {
    if (response_at_ == kTargetBytes) return {};
    const Octets content = Noise(std::min(Length(), kTargetBytes - response_at_));
    Want(kTargetAt + response_at_, content);
    const size_t at = response_at_;
    response_at_ += content.size();
    return Frame(Tagged(2, sink_, at, content, response_at_ == kTargetBytes), summed_);
  }
  void AskForResponse() {
    ASSERT_TRUE(Post(Opcode::kRead, 777, kTargetAt, kTargetBytes, {9, 0}).ok());
    const auto request = peer_->ReceiveSegment();
    ASSERT_TRUE(request.has_value());
    for (size_t i = 0; i < 4; ++i) sink_ = sink_ << 8 | request->payload[i];
    response_at_ = 0;
  }
  // In parts of any length, each of which is there at once.
  void SendInParts(const Octets& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const size_t length = std::min(1 + Below(60000), bytes.size() - at);
      const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at);
      ASSERT_TRUE(peer_->Send(Octets(begin, begin + static_cast<ptrdiff_t>(length))));
      at += length;
      if (Below(2) == 0) Pump();
    }
  }

  bool summed_ = false;
  std::mt19937 random_;
  uint32_t window_ = 0;
  uint32_t sequence_ = 0;
  std::vector<ptrdiff_t> lengths_;  // of the messages
  uint32_t sink_ = 0;
  size_t response_at_ = kTargetBytes;
  Octets wanted_;
};

TEST_F(AheadTest, WhateverFollowsALargeSegmentComesToItsPlace) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(Start(seed % 2 == 0, seed));
    ASSERT_NO_FATAL_FAILURE(AskForResponse());
    Octets stream;
    const size_t kinds = 1 + Below(3);
    while (sequence_ < kReceives || response_at_ < kTargetBytes) {
      const size_t kind = Below(kinds);
      if (kind == 0 && sequence_ < kReceives) stream = stream + SendMessage();
      if (kind == 1 || sequence_ == kReceives) stream = stream + PieceOfResponse();
      if (kind == 2) stream = stream + WriteToWindow();
    }
    ASSERT_NO_FATAL_FAILURE(SendInParts(stream));
    bool read = false;
    for (uint64_t received = 0; received < kReceives || !read;) {
      const Completion completion = NextCompletion();
      ASSERT_EQ(completion.status, WorkStatus::kSuccess);
      if (completion.opcode == Opcode::kRead) {
        read = true;
      } else {
        ASSERT_EQ(completion.work_id, received++);
      }
    }
    // A wrong guess may leave its traces behind the end of a message, and nowhere else.
    EXPECT_EQ(MemoryAt(kWindowAt, kWindowBytes + kTargetBytes),
              Octets(wanted_.begin() + kWindowAt, wanted_.begin() + kTargetAt + kTargetBytes));
    for (size_t i = 0; i < kReceives; ++i) {
      const auto begin = wanted_.begin() + static_cast<ptrdiff_t>(i * kReceiveBytes);
      const Octets wanted(begin, begin + lengths_[i]);
      EXPECT_EQ(MemoryAt(i * kReceiveBytes, wanted.size()), wanted) << "message " << i;
    }
  }
}

}  // namespace
}  // namespace esdp::fabric::qpip
