#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/bytes.h"
#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"
#include "impl/sdp/wire/text.h"
#include "tests/golden/vectors.h"
#include "tests/sdp/wire/golden_fields.h"

namespace esdp::sdp::wire {
namespace {

using Buffer =
    std::vector<std::byte>;  // of the exact size, so that a sanitizer sees any access behind it

class GoldenMessageTest : public testing::TestWithParam<golden::Vector> {
 protected:
  const golden::Vector& vector() const { return GetParam(); }
  const Buffer& bytes() const { return GetParam().bytes; }

  Message Decoded() const {
    Message message;
    const std::optional<DecodeError> error = Decode(bytes(), message);
    EXPECT_FALSE(error.has_value()) << error->field << " " << error->reason;
    return message;
  }

  // Whether the name given for a cut is one the vector has at that byte.
  bool IsFieldAt(size_t byte, const std::string& name) const {
    // The standard reserves what we give a meaning.
    if (name == "hh.return_token" || name == "hh.reserved84") {
      return vector().HasNameAt(byte, "hh.reserved68");
    }
    if (name == "hah.return_token" || name == "hah.reserved40") {
      return vector().HasNameAt(byte, "hah.reserved24");
    }
    if (name == "suspch.service_id") return vector().FieldAt(byte).starts_with("suspch.");
    return vector().HasNameAt(byte, name);
  }
};

Buffer WithLength(Buffer bytes) {
  StoreBigEndian<uint32_t>(bytes, 4, static_cast<uint32_t>(bytes.size()));
  return bytes;
}

Buffer FirstBytes(const Buffer& bytes, size_t count) {
  return Buffer(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
}

// R3.1.1, R3.3.1, R3.3.5, R3.4.1, R3.5.1, R3.7.1, R3.8.1, R3.9.1
TEST_P(GoldenMessageTest, DecodesToEveryFieldThatTheVectorLists) {
  const Message message = Decoded();
  EXPECT_EQ(NameOf(IdOf(message)), vector().message);
  for (const golden::Field& field : vector().fields) {
    EXPECT_EQ(Difference(message, vector(), field), "");
  }
}

// R3.1.1, R3.3.5, R3.6.1
TEST_P(GoldenMessageTest, EncodesBackToTheSameBytes) {
  const Message message = Decoded();
  const size_t header = HeaderBytes(IdOf(message));
  Buffer out(header, std::byte{0xAA});
  EXPECT_EQ(Encode(message, bytes().size() - header, out), header);
  EXPECT_EQ(out, FirstBytes(bytes(), header));
}

// R3.1.2
TEST_P(GoldenMessageTest, EncodesWithTheLengthOfThisPayloadWhateverTheBaseHeaderSays) {
  Message message = Decoded();
  message.base.length = 12345;
  const size_t header = HeaderBytes(IdOf(message));
  Buffer out(header);
  Encode(message, bytes().size() - header, out);
  EXPECT_EQ(out, FirstBytes(bytes(), header));
}

// R3.10.1, R3.10.4
TEST_P(GoldenMessageTest, EveryCutNamesTheFieldItFellInto) {
  for (size_t kept = 0; kept < bytes().size(); ++kept) {
    Message message;
    const std::optional<DecodeError> error = Decode(FirstBytes(bytes(), kept), message);
    ASSERT_TRUE(error.has_value()) << "kept " << kept << " bytes";
    EXPECT_TRUE(IsFieldAt(kept, error->field)) << "kept " << kept << ", named " << error->field;
  }
}

// R3.10.3
TEST_P(GoldenMessageTest, AHeaderShorterThanItsKindNamesTheFirstMissingFieldThoughLenAgrees) {
  const size_t header = HeaderBytes(IdOf(Decoded()));
  for (size_t kept = kBaseHeaderBytes; kept < header; ++kept) {
    Message message;
    const std::optional<DecodeError> error = Decode(WithLength(FirstBytes(bytes(), kept)), message);
    ASSERT_TRUE(error.has_value()) << "kept " << kept << " bytes";
    EXPECT_TRUE(IsFieldAt(kept, error->field)) << "kept " << kept << ", named " << error->field;
  }
}

// R3.10.2
TEST_P(GoldenMessageTest, AByteBehindTheMessageIsRefused) {
  Buffer longer = bytes();
  longer.push_back(std::byte{0});
  Message message;
  const std::optional<DecodeError> error = Decode(longer, message);
  ASSERT_TRUE(error.has_value());
  EXPECT_STREQ(error->field, "bsdh.len");
}

// R3.10.2
TEST_P(GoldenMessageTest, ALenBeyondTheBytesReceivedIsRefused) {
  Buffer claims_more = bytes();
  StoreBigEndian<uint32_t>(claims_more, 4, static_cast<uint32_t>(bytes().size() + 1));
  Message message;
  const std::optional<DecodeError> error = Decode(claims_more, message);
  ASSERT_TRUE(error.has_value());
  EXPECT_STREQ(error->field, MayCarryPayload(IdOf(Decoded())) ? "payload" : "bsdh.len");
}

// R3.2.2, R3.10.3
TEST_P(GoldenMessageTest, OneMoreByteThatLenCountsIsPayloadOrRefused) {
  Buffer longer = bytes();
  longer.push_back(std::byte{0});
  Message message;
  const std::optional<DecodeError> error = Decode(WithLength(longer), message);
  if (MayCarryPayload(IdOf(Decoded()))) {
    ASSERT_FALSE(error.has_value()) << error->field << " " << error->reason;
    EXPECT_EQ(message.base.length, longer.size());
  } else {
    ASSERT_TRUE(error.has_value());
    EXPECT_STREQ(error->field, "bsdh.len");
  }
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST_P(GoldenMessageTest, PrintsAsTheLineOnFile) {
  std::map<std::string, std::string> text_of;
  for (const std::string& line : LinesOf("tests/golden/sdp_text.txt")) {
    text_of[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  }
  EXPECT_EQ(ToText(Decoded()), text_of[vector().id]);
}

INSTANTIATE_TEST_SUITE_P(Sdp, GoldenMessageTest,
                         testing::ValuesIn(golden::Load("sdp.vec", "sdp-message")),
                         [](const auto& info) { return info.param.id; });

TEST(GoldenVectorsTest, CoverAllEighteenMessages) {
  std::set<std::string> names;
  for (const golden::Vector& vector : golden::Load("sdp.vec", "sdp-message")) {
    names.insert(vector.message);
  }
  EXPECT_EQ(names.size(), 18u);
  EXPECT_EQ(names.size(), std::variant_size_v<Body>);
}

// The Hello or HelloAck inside an MPA frame, behind the 20-byte header and the IRD and ORD words.
Buffer PrivateDataOf(const golden::Vector& frame) {
  return Buffer(frame.bytes.begin() + 24, frame.bytes.end());
}

// R25.1
TEST(GoldenMpaFrameTest, CarriesAFullHelloAndAWholeHelloAck) {
  const std::vector<golden::Vector> frames = golden::Load("sdp.vec", "mpa-frame");
  ASSERT_EQ(frames.size(), 2u);
  Message hello;
  EXPECT_FALSE(DecodeHello(PrivateDataOf(frames[0]), TransportAddresses{}, hello).has_value());
  Message answer;
  EXPECT_FALSE(DecodeHelloAck(PrivateDataOf(frames[1]), answer).has_value());
  for (size_t i = 0; i < 2; ++i) {
    for (const golden::Field& field : frames[i].fields) {
      if (field.name.starts_with("mpa.")) continue;
      EXPECT_EQ(Difference(i == 0 ? hello : answer, frames[i], field), "");
    }
  }
}

class GoldenCompactHelloTest : public testing::TestWithParam<golden::Vector> {};

// R2.6.2, R2.6.5
TEST_P(GoldenCompactHelloTest, IsRebuiltToTheFullHelloOnFile) {
  const golden::Vector& vector = GetParam();
  Message message;
  const std::optional<DecodeError> error = DecodeHello(vector.bytes, AddressesOf(vector), message);
  ASSERT_FALSE(error.has_value()) << error->field << " " << error->reason;
  for (const golden::Field& field : vector.fields) {
    EXPECT_EQ(Difference(message, vector, field), "");
  }
  Buffer whole(kHelloBytes);
  EXPECT_EQ(Encode(message, 0, whole), kHelloBytes);
  EXPECT_EQ(whole, vector.rebuilt);
}

// R2.6.1
TEST_P(GoldenCompactHelloTest, CutBelow32BytesNamesTheFieldTheCutFellInto) {
  const golden::Vector& vector = GetParam();
  for (size_t kept = 0; kept < kCompactHelloBytes; ++kept) {
    Message message;
    const auto error = DecodeHello(FirstBytes(vector.bytes, kept), AddressesOf(vector), message);
    ASSERT_TRUE(error.has_value()) << "kept " << kept << " bytes";
    EXPECT_TRUE(vector.HasNameAt(kept, error->field))
        << "kept " << kept << ", named " << error->field;
  }
}

INSTANTIATE_TEST_SUITE_P(Sdp, GoldenCompactHelloTest,
                         testing::ValuesIn(golden::Load("sdp.vec", "compact-hello")),
                         [](const auto& info) { return info.param.id; });

// Section 2.3: the connection manager keeps the first 36 of the 92 bytes for itself.
// R2.6.2
TEST(GoldenPrivateDataTest, The56BytesThatTheConsumerSeesRebuildToTheFullHelloOnFile) {
  const golden::Vector vector = golden::Load("sdp.vec", "req-private-data").front();
  const golden::Vector same_addresses = golden::Load("sdp.vec", "compact-hello").front();
  const Buffer consumer(vector.bytes.begin() + 36, vector.bytes.end());
  Message message;
  const auto error = DecodeHello(consumer, AddressesOf(same_addresses), message);
  ASSERT_FALSE(error.has_value()) << error->field << " " << error->reason;
  Buffer whole(kHelloBytes);
  Encode(message, 0, whole);
  EXPECT_EQ(whole, vector.rebuilt);
}

}  // namespace
}  // namespace esdp::sdp::wire
