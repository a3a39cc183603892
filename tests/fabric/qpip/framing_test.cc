#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/qpip/crc32c.h"
#include "impl/fabric/qpip/ddp.h"
#include "impl/fabric/qpip/mpa.h"
#include "impl/fabric/qpip/rdmap.h"
#include "tests/golden/vectors.h"

namespace esdp::fabric::qpip {
namespace {

uint32_t Sum(ConstBytes bytes) {
  Crc32c crc;
  crc.Add(bytes);
  return crc.value();
}

// RFC 3720 appendix B.4, as numbers: the first byte there is the least significant.
TEST(Crc32cTest, AgreesWithTheVectorsOfRfc3720) {
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(Sum(bytes), 0x8a9136aau);
  bytes.fill(std::byte{0xff});
  EXPECT_EQ(Sum(bytes), 0x62a8ab43u);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(Sum(bytes), 0x46dd794eu);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(Sum(bytes), 0x113fdb5cu);
}

TEST(Crc32cTest, PiecesGiveTheSumOfTheWhole) {
  std::array<std::byte, 300> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Crc32c crc;
    crc.Add(ConstBytes(bytes).first(cut));
    crc.Add(ConstBytes(bytes).subspan(cut));
    EXPECT_EQ(crc.value(), Sum(bytes)) << "cut at " << cut;
  }
}

// --- MPA start-up frames ---

std::vector<golden::Vector> StartupVectors() {
  std::vector<golden::Vector> vectors = golden::Load("qpip.vec", "mpa-frame");
  for (const golden::Vector& vector : golden::Load("sdp.vec", "mpa-frame")) {
    vectors.push_back(vector);
  }
  return vectors;
}

MpaKind KindOf(const golden::Vector& vector) {
  return vector.direction == "A->B" ? MpaKind::kRequest : MpaKind::kReply;
}

bool Flag(const golden::Vector& vector, const std::string& name) {
  const golden::Field* field = vector.Find(name);
  return field != nullptr && field->number == 1u;
}

TEST(MpaTest, GoldenStartupFramesDecodeToTheirFields) {
  for (const golden::Vector& vector : StartupVectors()) {
    SCOPED_TRACE(vector.id);
    MpaStartup startup;
    ASSERT_EQ(DecodeMpaHeader(vector.bytes, KindOf(vector), startup), MpaError::kNone);
    ASSERT_EQ(DecodeMpaWords(ConstBytes(vector.bytes).subspan(kMpaHeaderBytes), startup),
              MpaError::kNone);
    EXPECT_EQ(startup.markers, Flag(vector, "mpa.flags.markers"));
    EXPECT_EQ(startup.checksum, Flag(vector, "mpa.flags.crc"));
    EXPECT_EQ(startup.rejected, Flag(vector, "mpa.flags.reject"));
    EXPECT_EQ(startup.enhanced, Flag(vector, "mpa.flags.enhanced"));
    EXPECT_EQ(kMpaHeaderBytes + startup.wire_data_bytes(), vector.bytes.size());
  }
}

TEST(MpaTest, TheWordsOfRfc6581AreReadAsDepthsAndBits) {
  MpaStartup startup;
  for (const golden::Vector& vector : golden::Load("qpip.vec", "mpa-frame")) {
    if (vector.id != "Q03" && vector.id != "Q05") continue;
    ASSERT_EQ(DecodeMpaHeader(vector.bytes, KindOf(vector), startup), MpaError::kNone);
    DecodeMpaWords(ConstBytes(vector.bytes).subspan(kMpaHeaderBytes), startup);
    const bool request = vector.id == "Q03";
    EXPECT_TRUE(startup.peer_to_peer);
    EXPECT_EQ(startup.inbound_reads, request ? 5 : 7);
    EXPECT_EQ(startup.outbound_reads, request ? 7 : 5);
    EXPECT_EQ(startup.ready_by_empty_frame, request);
    EXPECT_EQ(startup.ready_by_write, request);
    EXPECT_TRUE(startup.ready_by_read);
  }
}

TEST(MpaTest, GoldenStartupFramesAreWrittenBackByteForByte) {
  for (const golden::Vector& vector : StartupVectors()) {
    SCOPED_TRACE(vector.id);
    MpaStartup startup;
    ASSERT_EQ(DecodeMpaHeader(vector.bytes, KindOf(vector), startup), MpaError::kNone);
    DecodeMpaWords(ConstBytes(vector.bytes).subspan(kMpaHeaderBytes), startup);
    std::vector<std::byte> written(kMpaHeaderBytes + kMpaWordsBytes);
    written.resize(EncodeMpa(startup, written));
    const ConstBytes data = ConstBytes(vector.bytes).last(startup.private_data_bytes);
    written.insert(written.end(), data.begin(), data.end());
    EXPECT_EQ(written, vector.bytes);
  }
}

TEST(MpaTest, AStartupFrameCutAnywhereIsShort) {
  for (const golden::Vector& vector : StartupVectors()) {
    for (size_t kept = 0; kept < vector.bytes.size(); ++kept) {
      SCOPED_TRACE(vector.id + " cut at " + std::to_string(kept));
      const ConstBytes bytes = ConstBytes(vector.bytes).first(kept);
      MpaStartup startup;
      const MpaError error = DecodeMpaHeader(bytes, KindOf(vector), startup);
      if (kept < kMpaHeaderBytes) {
        EXPECT_EQ(error, MpaError::kShort);
        continue;
      }
      ASSERT_EQ(error, MpaError::kNone);
      EXPECT_GT(kMpaHeaderBytes + startup.wire_data_bytes(), kept) << "the cut must show";
      const bool cuts_words = startup.enhanced && kept < kMpaHeaderBytes + kMpaWordsBytes;
      EXPECT_EQ(DecodeMpaWords(bytes.subspan(kMpaHeaderBytes), startup),
                cuts_words ? MpaError::kShort : MpaError::kNone);
    }
  }
}

TEST(MpaTest, EveryByteOfTheKeyCountsAsSoonAsItIsThere) {
  const golden::Vector vector = golden::Load("sdp.vec", "mpa-frame").front();
  for (size_t i = 0; i < 16; ++i) {
    std::vector<std::byte> bytes = vector.bytes;
    bytes[i] ^= std::byte{1};
    MpaStartup startup;
    EXPECT_EQ(DecodeMpaHeader(bytes, MpaKind::kRequest, startup), MpaError::kWrongKey);
    const ConstBytes first = ConstBytes(bytes).first(i + 1);
    EXPECT_EQ(DecodeMpaHeader(first, MpaKind::kRequest, startup), MpaError::kWrongKey);
  }
  MpaStartup startup;
  EXPECT_EQ(DecodeMpaHeader(vector.bytes, MpaKind::kReply, startup), MpaError::kWrongKey);
}

TEST(MpaTest, RefusesOtherRevisionsAndTooMuchPrivateDataAndMissingWords) {
  const golden::Vector vector = golden::Load("sdp.vec", "mpa-frame").front();
  MpaStartup startup;
  for (const unsigned revision : {0u, 3u, 255u}) {
    std::vector<std::byte> bytes = vector.bytes;
    bytes[17] = static_cast<std::byte>(revision);
    EXPECT_EQ(DecodeMpaHeader(bytes, MpaKind::kRequest, startup), MpaError::kWrongRevision);
  }
  std::vector<std::byte> bytes = vector.bytes;
  StoreBigEndian<uint16_t>(bytes, 18, 513);
  EXPECT_EQ(DecodeMpaHeader(bytes, MpaKind::kRequest, startup), MpaError::kDataTooLong);
  StoreBigEndian<uint16_t>(bytes, 18, 512);
  EXPECT_EQ(DecodeMpaHeader(bytes, MpaKind::kRequest, startup), MpaError::kNone);
  StoreBigEndian<uint16_t>(bytes, 18, 3);
  EXPECT_EQ(DecodeMpaHeader(bytes, MpaKind::kRequest, startup), MpaError::kWordsMissing);
}

// --- frames ---

TEST(FpduTest, GoldenFramesHaveTheirLengthPaddingAndSum) {
  for (const golden::Vector& vector : golden::Load("qpip.vec", "fpdu")) {
    SCOPED_TRACE(vector.id);
    const size_t ulpdu = LoadBigEndian<uint16_t>(vector.bytes, 0);
    EXPECT_EQ(FpduBytes(ulpdu), vector.bytes.size());
    EXPECT_EQ((kFpduLengthBytes + ulpdu + FpduPadBytes(ulpdu)) % 4, 0u);
    const ConstBytes summed = ConstBytes(vector.bytes).first(vector.bytes.size() - kFpduCrcBytes);
    EXPECT_EQ(LoadFpduCrc(ConstBytes(vector.bytes).last(kFpduCrcBytes)), Sum(summed));
  }
}

TEST(FpduTest, ASumIsWrittenAsItIsRead) {
  std::array<std::byte, 4> four;
  StoreFpduCrc(four, 0x8a9136aau);
  EXPECT_EQ(four, (std::array{std::byte{0xaa}, std::byte{0x36}, std::byte{0x91}, std::byte{0x8a}}));
  EXPECT_EQ(LoadFpduCrc(four), 0x8a9136aau);
}

std::vector<golden::Vector> SegmentVectors() {
  std::vector<golden::Vector> vectors = golden::Load("qpip.vec", "fpdu");
  std::erase_if(vectors, [](const golden::Vector& vector) { return vector.id == "Q23"; });
  return vectors;
}

ConstBytes UlpduOf(const golden::Vector& vector) {
  return ConstBytes(vector.bytes).subspan(2, LoadBigEndian<uint16_t>(vector.bytes, 0));
}

TEST(DdpTest, GoldenHeadersDecodeToTheirFieldsAndAreWrittenBack) {
  for (const golden::Vector& vector : SegmentVectors()) {
    SCOPED_TRACE(vector.id);
    DdpHeader header;
    ASSERT_TRUE(DecodeDdp(UlpduOf(vector), header));
    EXPECT_EQ(header.tagged, Flag(vector, "ddp.tagged"));
    EXPECT_EQ(header.last, Flag(vector, "ddp.last"));
    EXPECT_EQ(header.version, *vector.Find("ddp.version")->number);
    EXPECT_EQ(RdmapVersionOf(header.ulp_control), *vector.Find("rdmap.version")->number);
    const auto opcode = RdmapOpcodeOf(header.ulp_control);
    ASSERT_TRUE(opcode.has_value());
    EXPECT_EQ(static_cast<uint64_t>(*opcode), *vector.Find("rdmap.opcode")->number);
    EXPECT_EQ(IsTagged(*opcode), header.tagged);
    if (header.tagged) {
      EXPECT_EQ(header.tag, *vector.Find("ddp.tag")->number);
      EXPECT_EQ(header.offset, *vector.Find("ddp.offset")->number);
    } else {
      EXPECT_EQ(header.ulp_word, *vector.Find("ddp.ulp_word")->number);
      EXPECT_EQ(header.queue, *vector.Find("ddp.queue")->number);
      EXPECT_EQ(header.queue, static_cast<uint32_t>(QueueOf(*opcode)));
      EXPECT_EQ(header.sequence, *vector.Find("ddp.sequence")->number);
      EXPECT_EQ(header.message_offset, *vector.Find("ddp.message_offset")->number);
    }
    std::vector<std::byte> written(header.bytes());
    EXPECT_EQ(EncodeDdp(header, written), header.bytes());
    const ConstBytes read = UlpduOf(vector).first(header.bytes());
    EXPECT_TRUE(std::equal(written.begin(), written.end(), read.begin(), read.end()));
  }
}

TEST(DdpTest, AHeaderCutAnywhereIsRefused) {
  for (const golden::Vector& vector : SegmentVectors()) {
    const ConstBytes ulpdu = UlpduOf(vector);
    DdpHeader header;
    for (size_t kept = 0; kept < DdpHeaderBytes(ulpdu[0]); ++kept) {
      EXPECT_FALSE(DecodeDdp(ulpdu.first(kept), header)) << vector.id << " cut at " << kept;
    }
  }
}

TEST(RdmapTest, TheReservedOpcodesAreNone) {
  for (unsigned control = 0; control < 256; ++control) {
    const auto opcode = RdmapOpcodeOf(static_cast<uint8_t>(control));
    EXPECT_EQ(opcode.has_value(), (control & 0xf) <= 7);
  }
}

ConstBytes PayloadOf(const std::string& id) {
  static const std::vector<golden::Vector> vectors = SegmentVectors();
  for (const golden::Vector& vector : vectors) {
    if (vector.id == id) return UlpduOf(vector).subspan(DdpHeaderBytes(UlpduOf(vector)[0]));
  }
  ADD_FAILURE() << "no vector " << id;
  return {};
}

constexpr ReadRequest kGoldenRead{.sink_tag = 0xa1b2c3d4,
                                  .sink_offset = 0,
                                  .length = 131072,
                                  .source_tag = 0x12345678,
                                  .source_offset = 0x10};

TEST(RdmapTest, AReadRequestIsReadAndWrittenBack) {
  const ConstBytes golden = PayloadOf("Q17");
  ASSERT_EQ(golden.size(), kReadRequestBytes);
  EXPECT_EQ(DecodeReadRequest(golden), kGoldenRead);
  std::array<std::byte, kReadRequestBytes> written;
  EncodeReadRequest(kGoldenRead, written);
  EXPECT_TRUE(std::equal(golden.begin(), golden.end(), written.begin(), written.end()));
}

TEST(RdmapTest, TerminatesTellTheReasonAndTheHeadersTheyCarry) {
  const auto crc = DecodeTerminate(PayloadOf("Q20"));
  ASSERT_TRUE(crc.has_value());
  EXPECT_EQ(crc->reason, TerminateReason::kMpaCrc);
  EXPECT_FALSE(crc->segment_bytes || crc->segment || crc->read_request);

  const auto tag = DecodeTerminate(PayloadOf("Q21"));
  ASSERT_TRUE(tag.has_value());
  EXPECT_EQ(tag->reason, TerminateReason::kTaggedInvalidTag);
  EXPECT_EQ(tag->segment_bytes, 21);
  ASSERT_TRUE(tag->segment.has_value());
  EXPECT_EQ(tag->segment->tag, 0x12345678u);
  EXPECT_FALSE(tag->read_request);

  const auto bounds = DecodeTerminate(PayloadOf("Q22"));
  ASSERT_TRUE(bounds.has_value());
  EXPECT_EQ(bounds->reason, TerminateReason::kRdmapBounds);
  EXPECT_EQ(bounds->read_request, kGoldenRead);
}

TEST(RdmapTest, TerminatesAreWrittenBackAndCutOnesLoseOnlyWhatIsGone) {
  for (const char* id : {"Q20", "Q21", "Q22"}) {
    const ConstBytes golden = PayloadOf(id);
    const auto whole = DecodeTerminate(golden);
    ASSERT_TRUE(whole.has_value());
    std::array<std::byte, kTerminateBytesMax> written;
    ASSERT_EQ(EncodeTerminate(*whole, written), golden.size());
    EXPECT_TRUE(std::equal(golden.begin(), golden.end(), written.begin()));
    for (size_t kept = 0; kept < golden.size(); ++kept) {
      const auto cut = DecodeTerminate(golden.first(kept));
      ASSERT_EQ(cut.has_value(), kept >= kTerminateControlBytes) << id << " cut at " << kept;
      if (!cut) continue;
      EXPECT_EQ(cut->reason, whole->reason);
      EXPECT_NE(*cut, *whole) << id << " cut at " << kept;
    }
  }
}

}  // namespace
}  // namespace esdp::fabric::qpip
