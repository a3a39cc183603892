#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "gtest/gtest.h"
#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"
#include "tests/sdp/wire/sample.h"

// The rules for a single message on an established connection, one sentence a test. Section numbers
// are those of the sdp wire protocol.

namespace esdp::sdp::wire {
namespace {

constexpr const char* kAccepted = "";
constexpr uint32_t kTwoGibibytes = 1u << 31;

struct Known {
  uint8_t id;
  const char* name;
  size_t header_bytes;
  bool may_carry_payload;
  bool is_solicited;
};

// Sections 3.2 and 16, written out again.
constexpr std::array<Known, 18> kTable = {{
    {0x00, "Hello", 92, false, false},
    {0x01, "HelloAck", 196, false, false},
    {0x02, "DisConn", 16, false, false},
    {0x03, "AbortConn", 16, false, true},
    {0x04, "SendSm", 16, false, true},
    {0x05, "RdmaWrCompl", 20, false, true},
    {0x06, "RdmaRdCompl", 20, false, true},
    {0x07, "ModeChange", 20, false, false},
    {0x08, "SrcAvailCancel", 16, false, true},
    {0x09, "SinkAvailCancel", 16, false, true},
    {0x0A, "SinkCancelAck", 16, false, true},
    {0x0B, "ChRcvBuf", 20, false, false},
    {0x0C, "ChRcvBufAck", 20, false, false},
    {0x0D, "SuspComm", 24, false, true},
    {0x0E, "SuspCommAck", 16, false, true},
    {0xFD, "SinkAvail", 36, true, false},
    {0xFE, "SrcAvail", 32, true, false},
    {0xFF, "Data", 16, true, false},
}};

const Known* Find(unsigned id) {
  for (const Known& known : kTable) {
    if (known.id == id) return &known;
  }
  return nullptr;
}

// R3.2.1, R3.2.2
TEST(MessageIdTest, AllIdsHaveTheNameHeaderAndPayloadRuleOfTheTable) {
  for (unsigned id = 0; id < 256; ++id) {
    const MessageId value{static_cast<uint8_t>(id)};
    const Known* const known = Find(id);
    const std::string unknown_name = id >= 0x40 && id <= 0x7F ? "experimental" : "reserved";
    EXPECT_EQ(NameOf(value), known != nullptr ? known->name : unknown_name) << id;
    EXPECT_EQ(HeaderBytes(value), known != nullptr ? known->header_bytes : 0) << id;
    EXPECT_EQ(MayCarryPayload(value), known != nullptr && known->may_carry_payload) << id;
  }
}

// R3.2.3, R3.2.4
TEST(MessageIdTest, EveryIdOutsideTheTableIsRefusedAtEverySize) {
  for (unsigned id = 0; id < 256; ++id) {
    if (Find(id) != nullptr) continue;
    for (const size_t size : {16u, 20u, 92u, 196u}) {
      Buffer bytes(size);
      bytes[0] = static_cast<std::byte>(id);
      EXPECT_EQ(Refused(With32(bytes, 4, static_cast<uint32_t>(size))), "bsdh.mid") << id;
    }
  }
}

// R3.2.3, R3.2.4
TEST(MessageIdTest, ReservedAndExperimentalIdsAreRefusedWithDifferentReasons) {
  Message message;
  const auto reserved = Decode(With8(BytesOf(Data{}), 0, 0x0F), message);
  const auto experimental = Decode(With8(BytesOf(Data{}), 0, 0x40), message);
  ASSERT_TRUE(reserved && experimental);
  EXPECT_STREQ(reserved->reason, "is a reserved message id");
  EXPECT_STREQ(experimental->reason, "is experimental, and none was agreed upon");
}

// A valid body of each kind, by its place in the variant.
template <size_t kIndex = 0>
void ForEachKind(auto&& visit) {
  if constexpr (kIndex < std::variant_size_v<Body>) {
    std::variant_alternative_t<kIndex, Body> body{};
    if constexpr (requires { body.length; }) body.length = 100;
    if constexpr (requires { body.desired_size; }) body.desired_size = 100;
    if constexpr (requires { body.actual_size; }) body.actual_size = 100;
    if constexpr (requires { body.actual_receive_size; }) body.actual_receive_size = 100;
    if constexpr (requires { body.local_receive_size; }) body.local_receive_size = 100;
    visit(Message{BaseHeader{}, body});
    ForEachKind<kIndex + 1>(visit);
  }
}

// R3.2.1
TEST(MessageIdTest, EveryKindIsEncodedWithItsOwnIdAndDecodedAsItself) {
  std::set<MessageId> seen;
  ForEachKind([&](const Message& message) {
    const Buffer bytes = BytesOf(message);
    seen.insert(IdOf(message));
    EXPECT_EQ(static_cast<uint8_t>(bytes[0]), static_cast<uint8_t>(IdOf(message)));
    Message decoded;
    ASSERT_FALSE(Decode(bytes, decoded).has_value()) << NameOf(IdOf(message));
    EXPECT_EQ(decoded.body, message.body);
  });
  EXPECT_EQ(seen.size(), 18u);
}

// R16.1
TEST(SolicitedTest, TheMessagesOfSection16AskForASolicitedEvent) {
  ForEachKind([](const Message& message) {
    const MessageId id = IdOf(message);
    EXPECT_EQ(IsSolicited(message), Find(static_cast<unsigned>(id))->is_solicited) << NameOf(id);
  });
}

// R16.1
TEST(SolicitedTest, DataAsksForASolicitedEventWithEitherUrgentFlagAndNoOtherMessageDoes) {
  EXPECT_TRUE(IsSolicited(Message{BaseHeader{.flags = kFlagOobPresent}, Data{}}));
  EXPECT_TRUE(IsSolicited(Message{BaseHeader{.flags = kFlagOobPending}, Data{}}));
  EXPECT_FALSE(IsSolicited(Message{BaseHeader{.flags = kFlagReqPipe}, Data{}}));
  EXPECT_FALSE(IsSolicited(Message{BaseHeader{.flags = kFlagOobPending}, SrcAvail{}}));
}

// R3.1.3
TEST(BaseHeaderTest, ReservedFlagBitsAreIgnoredOnReceiveAndSentAsZero) {
  const Buffer bytes = With8(BytesOf(Data{}), 1, 0xFD);
  Message message;
  ASSERT_FALSE(Decode(bytes, message).has_value());
  EXPECT_EQ(message.base.flags, kFlagOobPresent | kFlagReqPipe);

  message.base.flags = 0xFF;
  EXPECT_EQ(BytesOf(message)[1], std::byte{0x07});
}

TEST(BaseHeaderTest, EverySequenceNumberAndBufferCountPasses) {
  for (const uint32_t value : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    Message message{
        BaseHeader{
            .buffers = static_cast<uint16_t>(value), .sequence = value, .acknowledged = ~value},
        SendSm{}};
    Message decoded;
    ASSERT_FALSE(Decode(BytesOf(message), decoded).has_value());
    message.base.length = 16;
    EXPECT_EQ(decoded, message);
  }
}

// R3.7.2
TEST(AdvertTest, ASourceAdvertIsBetween1ByteAnd2To31) {
  const Buffer bytes = BytesOf(SrcAvail{.length = 1});
  EXPECT_EQ(Refused(With32(bytes, 16, 0)), "srcah.len");
  EXPECT_EQ(Refused(With32(bytes, 16, 1)), kAccepted);
  EXPECT_EQ(Refused(With32(bytes, 16, kTwoGibibytes)), kAccepted);
  EXPECT_EQ(Refused(With32(bytes, 16, kTwoGibibytes + 1)), "srcah.len");
}

// R3.8.2
TEST(AdvertTest, ASinkAdvertIsBetween1ByteAnd2To31) {
  const Buffer bytes = BytesOf(SinkAvail{.length = 1});
  EXPECT_EQ(Refused(With32(bytes, 16, 0)), "sinkah.len");
  EXPECT_EQ(Refused(With32(bytes, 16, 1)), kAccepted);
  EXPECT_EQ(Refused(With32(bytes, 16, kTwoGibibytes)), kAccepted);
  EXPECT_EQ(Refused(With32(bytes, 16, kTwoGibibytes + 1)), "sinkah.len");
}

// Section 19, row 7.
// R3.7.2, R7.1.10
TEST(AdvertTest, ASourceAdvertIsLongerThanItsInlineBytesWhichMayBeNone) {
  EXPECT_EQ(Refused(BytesOf(SrcAvail{.length = 10}, 0)), kAccepted);
  EXPECT_EQ(Refused(BytesOf(SrcAvail{.length = 10}, 1)), kAccepted);
  EXPECT_EQ(Refused(BytesOf(SrcAvail{.length = 10}, 9)), kAccepted);
  EXPECT_EQ(Refused(BytesOf(SrcAvail{.length = 10}, 10)), "srcah.len");
  EXPECT_EQ(Refused(BytesOf(SrcAvail{.length = 10}, 11)), "srcah.len");
}

// Section 3.8: that payload belongs to the opposite direction.
TEST(AdvertTest, ASinkAdvertMayCarryMorePayloadThanItAdvertises) {
  EXPECT_EQ(Refused(BytesOf(SinkAvail{.length = 10}, 50)), kAccepted);
}

// Section 19, row 30.
// R3.7.3
TEST(AdvertTest, EveryAddressAndKeyPassesZeroAmongThem) {
  for (const uint64_t place : {uint64_t{0}, uint64_t{0x10}, UINT64_MAX}) {
    const SrcAvail advert{
        .length = 1, .remote_key = static_cast<uint32_t>(place), .virtual_address = place};
    Message decoded;
    ASSERT_FALSE(Decode(BytesOf(advert), decoded).has_value());
    EXPECT_EQ(std::get<SrcAvail>(decoded.body), advert);
  }
}

TEST(CompletionTest, ALengthFrom0ToTheLargestAdvertPasses) {
  for (const uint32_t length : {0u, 1u, kTwoGibibytes}) {
    EXPECT_EQ(Refused(BytesOf(RdmaRdCompl{.length = length})), kAccepted);
    EXPECT_EQ(Refused(BytesOf(RdmaWrCompl{.length = length})), kAccepted);
  }
  EXPECT_EQ(Refused(BytesOf(RdmaRdCompl{.length = kTwoGibibytes + 1})), "rrch.len");
  EXPECT_EQ(Refused(BytesOf(RdmaWrCompl{.length = kTwoGibibytes + 1})), "rwch.len");
}

// R3.6.1, R5.3
TEST(ModeChangeTest, OnlyFourValuesOfItsByteAreLegal) {
  const std::map<unsigned, ModeChange> legal = {
      {0x00, {false, Mode::kBuffered}},
      {0x10, {false, Mode::kCombined}},
      {0x20, {false, Mode::kPipelined}},
      {0x90, {true, Mode::kCombined}},
  };
  for (unsigned value = 0; value < 256; ++value) {
    const Buffer bytes = With8(BytesOf(ModeChange{}), 16, static_cast<uint8_t>(value));
    Message message;
    const auto error = Decode(bytes, message);
    EXPECT_EQ(error.has_value(), !legal.contains(value)) << value;
    if (!error) {
      EXPECT_EQ(std::get<ModeChange>(message.body), legal.at(value)) << value;
      EXPECT_EQ(BytesOf(message), bytes) << value;
    } else {
      EXPECT_EQ(std::string(error->field).substr(0, 4), "mch.") << value;
    }
  }
}

// R3.1.3
TEST(ModeChangeTest, ReservedBytesAreIgnoredOnReceiveAndSentAsZero) {
  const Buffer clean = BytesOf(ModeChange{true, Mode::kCombined});
  Buffer noisy = clean;
  for (size_t offset = 17; offset < 20; ++offset) noisy = With8(noisy, offset, 0xFF);
  Message message;
  ASSERT_FALSE(Decode(noisy, message).has_value());
  EXPECT_EQ(BytesOf(message), clean);
}

// R11.1
TEST(ResizeTest, ANewReceiveBufferHoldsAtLeast37Bytes) {
  EXPECT_EQ(Refused(BytesOf(ChRcvBuf{.desired_size = 36})), "crbh.des_sz");
  EXPECT_EQ(Refused(BytesOf(ChRcvBuf{.desired_size = 37})), kAccepted);
  EXPECT_EQ(Refused(BytesOf(ChRcvBuf{.desired_size = UINT32_MAX})), kAccepted);
  EXPECT_EQ(Refused(BytesOf(ChRcvBufAck{.actual_size = 36})), "crbah.act_sz");
  EXPECT_EQ(Refused(BytesOf(ChRcvBufAck{.actual_size = 37})), kAccepted);
}

// R3.9.1
TEST(SuspendTest, EveryServiceIdPasses) {
  for (const uint64_t service_id : {uint64_t{0}, uint64_t{0x11389}, UINT64_MAX}) {
    Message decoded;
    ASSERT_FALSE(Decode(BytesOf(SuspComm{.service_id = service_id}), decoded).has_value());
    EXPECT_EQ(std::get<SuspComm>(decoded.body).service_id, service_id);
  }
}

TEST(EncodeTest, WritesNothingBehindTheHeader) {
  ForEachKind([](const Message& message) {
    const size_t header = HeaderBytes(IdOf(message));
    Buffer out(header + 8, std::byte{0x5A});
    EXPECT_EQ(Encode(message, 8, out), header);
    for (size_t i = header; i < out.size(); ++i) EXPECT_EQ(out[i], std::byte{0x5A});
  });
}

}  // namespace
}  // namespace esdp::sdp::wire
