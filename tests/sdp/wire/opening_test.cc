#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "gtest/gtest.h"
#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"
#include "tests/sdp/wire/sample.h"

// Hello and HelloAck: their own rules (sections 2.8, 3.3, 3.4) and the forms they come in
// (sections 2.6, 25).

namespace esdp::sdp::wire {
namespace {

constexpr const char* kAccepted = "";
constexpr uint32_t kTwoGibibytes = 1u << 31;

Buffer Compact(const Buffer& hello, size_t bytes) {
  Buffer compact(hello.begin(), hello.begin() + 32);
  compact.insert(compact.end(), hello.begin() + 64, hello.begin() + 68);
  compact.resize(bytes);
  return compact;
}

// R2.6.6, R3.3.1, R3.4.1
TEST(HelloTest, HasZeroFlagsAndSequenceNumbers) {
  EXPECT_EQ(Refused(HelloBytes()), kAccepted);
  EXPECT_EQ(Refused(With8(HelloBytes(), 1, kFlagOobPending)), "bsdh.flags");
  EXPECT_EQ(Refused(With32(HelloBytes(), 8, 1)), "bsdh.mseq");
  EXPECT_EQ(Refused(With32(HelloBytes(), 12, 1)), "bsdh.mseqack");
}

// R2.8.3
TEST(HelloTest, SpeaksIpVersion4Or6AndNoOther) {
  for (unsigned version = 0; version < 16; ++version) {
    const Buffer bytes = With8(HelloBytes(), 17, static_cast<uint8_t>(version << 4));
    EXPECT_EQ(Refused(bytes), version == 4 || version == 6 ? kAccepted : "hh.ipv") << version;
  }
}

// R2.8.2
TEST(HelloTest, HoldsAtLeastOneAdvert) {
  EXPECT_EQ(Refused(With8(HelloBytes(), 19, 0)), "hh.max_adverts");
  EXPECT_EQ(Refused(With8(HelloBytes(), 19, 255)), kAccepted);
}

// R2.8.5, R3.3.4
TEST(HelloTest, HasReceiveBuffersBetween37BytesAnd2To31) {
  EXPECT_EQ(Refused(With32(HelloBytes(), 24, 36)), "hh.local_rcv_sz");
  EXPECT_EQ(Refused(With32(HelloBytes(), 24, 37)), kAccepted);
  EXPECT_EQ(Refused(With32(HelloBytes(), 24, kTwoGibibytes)), kAccepted);
  EXPECT_EQ(Refused(With32(HelloBytes(), 24, kTwoGibibytes + 1)), "hh.local_rcv_sz");
}

TEST(HelloTest, HintsAtNoMoreThan2To31BytesForThePeersBuffers) {
  EXPECT_EQ(Refused(With32(HelloBytes(), 20, 0)), kAccepted);
  EXPECT_EQ(Refused(With32(HelloBytes(), 20, kTwoGibibytes)), kAccepted);
  EXPECT_EQ(Refused(With32(HelloBytes(), 20, kTwoGibibytes + 1)), "hh.des_rem_rcv_sz");
}

TEST(HelloTest, TheFirstWrongFieldIsTheOneNamed) {
  const Buffer no_adverts = With8(HelloBytes(), 19, 0);
  EXPECT_EQ(Refused(With8(no_adverts, 17, 0x50)), "hh.ipv");
  EXPECT_EQ(Refused(With32(no_adverts, 24, 0)), "hh.max_adverts");
  EXPECT_EQ(Refused(With32(no_adverts, 8, 1)), "bsdh.mseq");
}

// R3.1.3
TEST(HelloTest, ReservedPlacesAreIgnoredOnReceiveAndSentAsZero) {
  Buffer noisy = With8(HelloBytes(), 1, 0xF8);
  for (const size_t offset : {18u, 30u, 31u, 64u, 65u, 66u, 67u, 68u, 91u})
    noisy = With8(noisy, offset, 0xFF);
  Message message;
  ASSERT_FALSE(DecodeHello(noisy, SampleAddresses(), message).has_value());
  EXPECT_EQ(std::get<Hello>(message.body), SampleHello());
  EXPECT_EQ(BytesOf(message), HelloBytes());
}

// R3.3.6
TEST(HelloTest, TheExtendedMaxAdvertsCountOnlyWithTheirCapabilityBit) {
  Hello hello = SampleHello();
  hello.extended_max_adverts = 1024;
  EXPECT_EQ(HelloBytes(hello), HelloBytes());

  hello.capabilities = kCapabilityExtendedMaxAdverts;
  Message message;
  ASSERT_FALSE(DecodeHello(HelloBytes(hello), SampleAddresses(), message).has_value());
  EXPECT_EQ(std::get<Hello>(message.body), hello);
}

// R2.6.6, R3.3.1, R3.4.1
TEST(HelloAckTest, HasZeroFlagsAndSequenceNumbers) {
  EXPECT_EQ(Refused(HelloAckBytes()), kAccepted);
  EXPECT_EQ(Refused(With8(HelloAckBytes(), 1, kFlagReqPipe)), "bsdh.flags");
  EXPECT_EQ(Refused(With32(HelloAckBytes(), 8, 1)), "bsdh.mseq");
  EXPECT_EQ(Refused(With32(HelloAckBytes(), 12, 1)), "bsdh.mseqack");
}

// R2.8.2, R2.8.5, R3.3.4
TEST(HelloAckTest, HoldsAnAdvertAndReceiveBuffersBetween37BytesAnd2To31) {
  EXPECT_EQ(Refused(With8(HelloAckBytes(), 19, 0)), "hah.max_adverts");
  EXPECT_EQ(Refused(HelloAckBytes(36)), "hah.act_rcv_sz");
  EXPECT_EQ(Refused(HelloAckBytes(37)), kAccepted);
  EXPECT_EQ(Refused(HelloAckBytes(kTwoGibibytes)), kAccepted);
  EXPECT_EQ(Refused(HelloAckBytes(kTwoGibibytes + 1)), "hah.act_rcv_sz");
}

// R3.1.3
TEST(HelloAckTest, ReservedPlacesAreIgnoredOnReceiveAndSentAsZero) {
  Buffer noisy = With8(HelloAckBytes(), 17, 0xF0);
  noisy = With8(noisy, 18, 0xFF);
  for (size_t offset = 24; offset < 196; ++offset) noisy = With8(noisy, offset, 0xFF);
  Message message;
  ASSERT_FALSE(DecodeHelloAck(noisy, message).has_value());
  EXPECT_EQ(BytesOf(message), HelloAckBytes());
}

// R2.8.1, R2.8.6
TEST(DecodeHelloTest, TakesMajorVersion2WithAnyMinorOne) {
  for (unsigned major = 0; major < 16; ++major) {
    const Buffer bytes = With8(HelloBytes(), 16, static_cast<uint8_t>(major << 4 | 9));
    EXPECT_EQ(RefusedHello(bytes), major == 2 ? kAccepted : "hh.majv") << major;
  }
}

// R2.8.4, R4.5.1
TEST(DecodeHelloTest, WantsThreePostedReceiveBuffers) {
  EXPECT_EQ(RefusedHello(With<uint16_t>(HelloBytes(), 2, 2)), "bsdh.bufs");
  EXPECT_EQ(RefusedHello(With<uint16_t>(HelloBytes(), 2, 3)), kAccepted);
}

// R2.6.6
TEST(DecodeHelloTest, RefusesEveryOtherMessageThoughItIsAsLong) {
  for (unsigned id = 1; id < 256; ++id) {
    EXPECT_EQ(RefusedHello(With8(HelloBytes(), 0, static_cast<uint8_t>(id))), "bsdh.mid") << id;
  }
  EXPECT_EQ(RefusedHello(BytesOf(Data{}, 76)), "bsdh.mid");
  EXPECT_EQ(RefusedHello(Buffer{}), "bsdh.mid");
}

// R2.6.1, R2.6.5
TEST(DecodeHelloTest, TakesPaddingBehindAFullHelloButNoOtherLen) {
  Buffer padded = HelloBytes();
  padded.resize(251, std::byte{0xEE});
  EXPECT_EQ(RefusedHello(padded), kAccepted);
  EXPECT_EQ(RefusedHello(With32(padded, 4, 251)), "bsdh.len");
  EXPECT_EQ(RefusedHello(With32(HelloBytes(), 4, 32)), "bsdh.len");
}

// R25.2
TEST(DecodeHelloTest, DoesNotCompareTheAddressesInsideAFullHello) {
  TransportAddresses translated = SampleAddresses();
  translated.peer_port = 1;
  translated.peer.fill(9);
  Message message;
  ASSERT_FALSE(DecodeHello(HelloBytes(), translated, message).has_value());
  EXPECT_EQ(std::get<Hello>(message.body), SampleHello());
}

// R2.6.1
TEST(DecodeHelloTest, TakesACompactFormOfEverySizeFrom32To91) {
  for (size_t size = 32; size < 92; ++size) {
    Message message;
    const auto error = DecodeHello(Compact(HelloBytes(), size), SampleAddresses(), message);
    ASSERT_FALSE(error.has_value()) << size << " bytes: " << error->field;
    EXPECT_EQ(std::get<Hello>(message.body), SampleHello()) << size;
    EXPECT_EQ(message.base.length, kHelloBytes) << size;
  }
}

// R2.6.2
TEST(DecodeHelloTest, ReadsTheExtendedMaxAdvertsOfACompactFormFrom36BytesOn) {
  Hello hello = SampleHello();
  hello.capabilities = kCapabilityExtendedMaxAdverts;
  hello.extended_max_adverts = 1024;
  for (size_t size = 32; size < 92; ++size) {
    Message message;
    ASSERT_FALSE(DecodeHello(Compact(HelloBytes(hello), size), SampleAddresses(), message));
    EXPECT_EQ(std::get<Hello>(message.body).extended_max_adverts, size < 36 ? 0 : 1024) << size;
  }
}

TEST(DecodeHelloTest, ReadsTheReturnTokenOfACompactFormFrom52BytesOn) {
  Hello hello = SampleHello();
  hello.capabilities = kCapabilityReturnToken;
  for (size_t i = 0; i < hello.return_token.size(); ++i) {
    hello.return_token[i] = static_cast<uint8_t>(i + 1);
  }
  for (size_t size = 32; size <= 92; ++size) {
    Buffer bytes = HelloBytes(hello);
    if (size < 92) {
      bytes = Compact(bytes, 36);
      bytes.resize(36 + 16);
      CopyBytes(Bytes(bytes).subspan(36), std::as_bytes(std::span(hello.return_token)));
      bytes.resize(size);
    }
    Message message;
    ASSERT_FALSE(DecodeHello(bytes, SampleAddresses(), message)) << size;
    const ReturnToken expected = size < 52 ? ReturnToken{} : hello.return_token;
    EXPECT_EQ(std::get<Hello>(message.body).return_token, expected) << size;
  }
}

// R2.6.3, R2.6.4
TEST(DecodeHelloTest, WantsTheTransportsIpVersionAndPortInACompactForm) {
  TransportAddresses other_version = SampleAddresses();
  other_version.ip_version = 6;
  EXPECT_EQ(RefusedHello(Compact(HelloBytes(), 32), other_version), "hh.ipv");
  TransportAddresses other_port = SampleAddresses();
  other_port.peer_port = 40001;
  EXPECT_EQ(RefusedHello(Compact(HelloBytes(), 32), other_port), "hh.local_port");
}

TEST(DecodeHelloTest, HoldsACompactFormToTheRulesOfAFullOne) {
  const Buffer compact = Compact(HelloBytes(), 56);
  EXPECT_EQ(RefusedHello(compact), kAccepted);
  EXPECT_EQ(RefusedHello(With32(compact, 4, 56)), "bsdh.len");
  EXPECT_EQ(RefusedHello(With8(compact, 16, 0x11)), "hh.majv");
  EXPECT_EQ(RefusedHello(With8(compact, 19, 0)), "hh.max_adverts");
  EXPECT_EQ(RefusedHello(With<uint16_t>(compact, 2, 2)), "bsdh.bufs");
  EXPECT_EQ(RefusedHello(With32(compact, 24, 36)), "hh.local_rcv_sz");
}

TEST(DecodeHelloAckTest, TakesAWholeHelloAckAndPaddingBehindIt) {
  Buffer bytes = HelloAckBytes();
  EXPECT_EQ(RefusedHelloAck(bytes), kAccepted);
  bytes.resize(251, std::byte{0xEE});
  EXPECT_EQ(RefusedHelloAck(bytes), kAccepted);
}

TEST(DecodeHelloAckTest, CutAnywhereNamesTheFieldTheCutFellInto) {
  const Buffer bytes = HelloAckBytes();
  const auto cut = [&](std::ptrdiff_t kept) { return Buffer(bytes.begin(), bytes.begin() + kept); };
  for (std::ptrdiff_t kept = 0; kept < 196; ++kept)
    EXPECT_NE(RefusedHelloAck(cut(kept)), kAccepted);
  EXPECT_EQ(RefusedHelloAck(cut(0)), "bsdh.mid");
  EXPECT_EQ(RefusedHelloAck(cut(5)), "bsdh.len");
  EXPECT_EQ(RefusedHelloAck(cut(19)), "hah.max_adverts");
  EXPECT_EQ(RefusedHelloAck(cut(23)), "hah.act_rcv_sz");
  EXPECT_EQ(RefusedHelloAck(cut(195)), "hah.reserved40");
}

// R2.6.6, R2.8.1
TEST(DecodeHelloAckTest, TakesMajorVersion2AndNoOtherMessage) {
  EXPECT_EQ(RefusedHelloAck(With8(HelloAckBytes(), 16, 0x11)), "hah.majv");
  EXPECT_EQ(RefusedHelloAck(With8(HelloAckBytes(), 16, 0x30)), "hah.majv");
  EXPECT_EQ(RefusedHelloAck(HelloBytes()), "bsdh.mid");
  EXPECT_EQ(RefusedHelloAck(BytesOf(Data{}, 180)), "bsdh.mid");
}

}  // namespace
}  // namespace esdp::sdp::wire
