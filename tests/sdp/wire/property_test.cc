#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <variant>

#include "gtest/gtest.h"
#include "impl/base/random.h"
#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"
#include "tests/sdp/wire/sample.h"

// What holds of any bytes whatever. The seed is printed first; ESDP_SEED repeats a run.

namespace esdp::sdp::wire {
namespace {

constexpr int kRounds = 200000;

uint64_t Seed() {
  const char* const given = std::getenv("ESDP_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device()();
  std::cout << "replay with ESDP_SEED=" << seed << std::endl;
  return seed;
}

// Bytes with an id that exists and a Len that is right, more often than chance would have it: else
// most would be refused for these two, and nothing else be tried.
Buffer Draw(Random& random) {
  static constexpr std::array<uint8_t, 18> kIds = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05,
                                                   0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B,
                                                   0x0C, 0x0D, 0x0E, 0xFD, 0xFE, 0xFF};
  const MessageId id{kIds[random.Below(kIds.size())]};
  const bool any_size = random.Chance(1, 8);
  Buffer bytes(any_size ? random.Below(220)
                        : HeaderBytes(id) + (MayCarryPayload(id) ? random.Below(40) : 0));
  for (std::byte& byte : bytes) {
    byte = random.Chance(1, 2) ? std::byte{0} : static_cast<std::byte>(random.Next());
  }
  if (bytes.size() < kBaseHeaderBytes) return bytes;
  if (!random.Chance(1, 16)) bytes[0] = static_cast<std::byte>(id);
  if (!random.Chance(1, 16)) bytes = With32(bytes, 4, static_cast<uint32_t>(bytes.size()));
  if (bytes[0] <= std::byte{1} && random.Chance(7, 8)) {
    bytes[1] = std::byte{0};
    bytes = With<uint64_t>(bytes, 8, 0);
  }
  return bytes;
}

// The same header with every place zero that the receiver ignores.
Buffer WithoutReserved(Buffer header) {
  const auto clear = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) header[i] = std::byte{0};
  };
  header[1] &= std::byte{0x07};
  switch (MessageId{std::to_integer<uint8_t>(header[0])}) {
    case MessageId::kHello:
      clear(18, 19);
      clear(30, 32);
      clear(64, (header[17] & std::byte{2}) != std::byte{0} ? 66 : 68);
      clear((header[17] & std::byte{4}) != std::byte{0} ? 84 : 68, 92);
      break;
    case MessageId::kHelloAck:
      header[17] &= std::byte{0x0F};
      clear(18, 19);
      clear((header[17] & std::byte{4}) != std::byte{0} ? 40 : 24, 196);
      break;
    case MessageId::kModeChange:
      clear(17, 20);
      break;
    default:
      break;
  }
  return header;
}

TEST(AnyBytesTest, WhatIsAcceptedIsEncodedToTheSameHeaderButForReservedBits) {
  const uint64_t seed = Seed();
  SCOPED_TRACE("replay with ESDP_SEED=" + std::to_string(seed));
  Random random(seed);
  std::array<int, std::variant_size_v<Body>> accepted{};
  for (int round = 0; round < kRounds; ++round) {
    const Buffer bytes = Draw(random);
    Message message;
    if (const auto error = Decode(bytes, message)) {
      ASSERT_STRNE(error->field, "");
      ASSERT_STRNE(error->reason, "");
      continue;
    }
    ++accepted[message.body.index()];
    ASSERT_EQ(message.base.length, bytes.size());
    const size_t header = HeaderBytes(IdOf(message));
    Buffer again(header, std::byte{0xAA});
    ASSERT_EQ(Encode(message, bytes.size() - header, again), header);
    ASSERT_EQ(again, WithoutReserved(Buffer(bytes.begin(),
                                            bytes.begin() + static_cast<std::ptrdiff_t>(header))));
  }
  for (const int count : accepted) EXPECT_GT(count, 40);  // every kind was tried, Hello too
}

TEST(AnyBytesTest, APrivateDataThatOpensAConnectionIsAHelloOfOurVersionHoweverItCame) {
  const uint64_t seed = Seed();
  SCOPED_TRACE("replay with ESDP_SEED=" + std::to_string(seed));
  Random random(seed);
  int accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    Buffer bytes = HelloBytes();
    bytes.resize(random.Below(2) == 0 ? 32 + random.Below(60) : random.Below(256));
    for (uint64_t i = random.Below(3); i > 0 && !bytes.empty(); --i) {
      bytes[random.Below(std::min<uint64_t>(bytes.size(), 32))] =
          static_cast<std::byte>(random.Next());
    }
    Message message;
    if (DecodeHello(bytes, SampleAddresses(), message)) continue;
    ++accepted;
    const Hello& hello = std::get<Hello>(message.body);
    ASSERT_EQ(hello.major_version, 2);
    ASSERT_GE(message.base.buffers, 3);
    ASSERT_GE(hello.max_adverts, 1);
    Message again;
    ASSERT_FALSE(Decode(BytesOf(message), again).has_value());
    ASSERT_EQ(again, message);
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace esdp::sdp::wire
