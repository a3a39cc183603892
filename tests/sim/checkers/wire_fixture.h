#ifndef ESDP_TESTS_SIM_CHECKERS_WIRE_FIXTURE_H_
#define ESDP_TESTS_SIM_CHECKERS_WIRE_FIXTURE_H_

#include <array>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/sdp/wire/codec.h"
#include "tests/sim/checkers/wire_checker.h"

// Conversations for the checkers of the wire, told message by message.

namespace esdp::simulation {

class WireCheckerTest : public ::testing::Test {
 protected:
  static constexpr fabric::sim::WireEnd kOne{1, 7, true, 900};
  static constexpr fabric::sim::WireEnd kTwo{2, 7, false, 900};

  // Both sides have four receives and take one advert.
  void SetUp() override { Declare(kOne, kTwo, 4, 1); }
  void Declare(const fabric::sim::WireEnd& connecting, const fabric::sim::WireEnd& accepting,
               uint16_t buffers, uint8_t adverts_max) {
    sdp::wire::Message hello{
        {}, sdp::wire::Hello{.max_adverts = adverts_max, .local_receive_size = 4096}};
    hello.base.buffers = buffers;
    std::vector<std::byte> bytes(256);
    bytes.resize(sdp::wire::Encode(hello, 0, bytes));
    checker_.OnPrivateData(connecting, bytes);
    sdp::wire::Message ack{
        {}, sdp::wire::HelloAck{.max_adverts = adverts_max, .actual_receive_size = 4096}};
    ack.base.buffers = buffers;
    bytes.resize(256);
    bytes.resize(sdp::wire::Encode(ack, 0, bytes));
    checker_.OnPrivateData(accepting, bytes);
    ASSERT_TRUE(findings_.empty());
  }
  fabric::sim::Frame FrameOf(const sdp::wire::Body& body, uint32_t sequence, size_t payload = 0,
                             uint32_t acknowledged = 0) {
    sdp::wire::Message message{{}, body};
    message.base.buffers = 4;
    message.base.sequence = sequence;
    message.base.acknowledged = acknowledged;
    fabric::sim::Frame frame{.kind = fabric::sim::FrameKind::kSend};
    frame.payload.resize(sdp::wire::HeaderBytes(sdp::wire::IdOf(message)) + payload);
    (void)sdp::wire::Encode(message, payload, frame.payload);
    return frame;
  }
  void Send(fabric::sim::Frame frame) { checker_.OnTransmit(kOne, frame); }
  void Carry(const fabric::sim::WireEnd& from, const fabric::sim::WireEnd& to,
             fabric::sim::Frame frame) {
    checker_.OnTransmit(from, frame);
    checker_.OnArrive(to, frame);
  }

  Findings findings_;
  Marks marks_;
  WireChecker checker_{findings_, marks_};
};

// A conversation told message by message: each arrives at once, numbers and acknowledgements are
// right unless said.
class FullWireCheckerTest : public WireCheckerTest {
 protected:
  void SetUp() override { Declare(kOne, kTwo, 100, 8); }
  fabric::sim::Frame Next(const fabric::sim::WireEnd& from, const sdp::wire::Body& body,
                          size_t payload = 0, uint8_t flags = 0) {
    const size_t side = from.connecting ? 0 : 1;
    sdp::wire::Message message{{}, body};
    message.base = {
        .flags = flags, .buffers = 100, .sequence = ++sent_[side], .acknowledged = arrived_[side]};
    fabric::sim::Frame frame{.kind = fabric::sim::FrameKind::kSend};
    frame.payload.resize(sdp::wire::HeaderBytes(sdp::wire::IdOf(message)) + payload);
    (void)sdp::wire::Encode(message, payload, frame.payload);
    return frame;
  }
  void Arrive(const fabric::sim::WireEnd& at, const fabric::sim::Frame& frame) {
    ++arrived_[at.connecting ? 0 : 1];
    checker_.OnArrive(at, frame);
  }
  // Leaves and arrives.
  void Say(const fabric::sim::WireEnd& from, const sdp::wire::Body& body, size_t payload = 0,
           uint8_t flags = 0) {
    fabric::sim::Frame frame = Next(from, body, payload, flags);
    checker_.OnTransmit(from, frame);
    Arrive(from.connecting ? kTwo : kOne, frame);
  }
  // Leaves, and has not arrived yet.
  fabric::sim::Frame Leave(const fabric::sim::WireEnd& from, const sdp::wire::Body& body,
                           size_t payload = 0) {
    fabric::sim::Frame frame = Next(from, body, payload);
    checker_.OnTransmit(from, frame);
    return frame;
  }
  void SayMode(sdp::wire::Mode mode) { Say(kOne, sdp::wire::ModeChange{false, mode}); }
  void ExpectFound(const char* words) {
    EXPECT_EQ(findings_.count(), 1u);
    EXPECT_TRUE(findings_.Mention(words)) << (findings_.empty() ? "nothing" : findings_.texts()[0]);
  }

  std::array<uint32_t, 2> sent_{}, arrived_{};
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_WIRE_FIXTURE_H_
