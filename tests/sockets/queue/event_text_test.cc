#include "impl/sockets/queue/event_text.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/sockets/context/failure_texts.h"

namespace esdp::sockets {
namespace {

constexpr size_t kMany = 3 * FailureTexts::kTextsMax;

Address PeerOf(size_t i) {
  std::array<uint8_t, 16> bytes{};
  bytes[12] = 10;
  bytes[14] = static_cast<uint8_t>(i >> 12);
  return Address::Of(Family::kIpv4, bytes, static_cast<uint16_t>(1 + (i & 0xfff)));
}

Event Failed() {
  Event event;
  event.code = absl::StatusCode::kAborted;
  event.kind = ErrorKind::kPeerReset;
  return event;
}

std::string TextOf(const Event& event) { return std::string(event.status().message()); }

TEST(EventTextTest, EachOfAnyNumberOfPeersKeepsItsText) {
  std::vector<Event> events(kMany, Failed());
  for (size_t i = 0; i < kMany; ++i) {
    const std::string peer = PeerOf(i).ToString();
    SetText(events[i], "connection with " + peer + ": it broke off (connect to " + peer + ")",
            PeerOf(i));
  }
  for (size_t i = 0; i < kMany; ++i) {
    const std::string peer = PeerOf(i).ToString();
    ASSERT_TRUE(TextOf(events[i]).starts_with("connection with " + peer +
                                              ": it broke off (connect to " + peer + "): "))
        << TextOf(events[i]);
  }
}

TEST(EventTextTest, ATextThatNamesAnotherAddressStaysAsItIs) {
  Event event = Failed();
  SetText(event, "connect to 10.0.0.9:77", PeerOf(5));
  EXPECT_TRUE(TextOf(event).starts_with("connect to 10.0.0.9:77: ")) << TextOf(event);
  EXPECT_EQ(event.accepted_peer.port(), 0);
}

TEST(EventTextTest, AnOldEventWhoseTextHasGoneStillSaysWhoAndWhat) {
  Event event = Failed();
  SetText(event, "connection with " + PeerOf(7).ToString() + ": once only", PeerOf(7));
  Event other = Failed();
  for (size_t i = 0; i < kMany; ++i) SetText(other, "rule " + std::to_string(i), Address());
  const std::string text = TextOf(event);
  EXPECT_TRUE(text.starts_with("connection with " + PeerOf(7).ToString() + ": reset by the peer"))
      << text;
}

TEST(FailureTextsTest, TheLatestStayWhateverComesBetween) {
  FailureTexts texts;
  const uint32_t often = texts.Keep("often");
  for (size_t i = 0; i < kMany; ++i) {
    const std::string text = "text " + std::to_string(i);
    const uint32_t number = texts.Keep(text);
    ASSERT_EQ(texts.Of(number), text);
    ASSERT_EQ(texts.Keep(text), number) << "kept twice";
    if (i % 1000 == 0) {
      ASSERT_EQ(texts.Keep("often"), often);
    }
  }
  EXPECT_EQ(texts.Of(often), "often");
}

TEST(FailureTextsTest, AnOldNumberNeverNamesANewText) {
  FailureTexts texts;
  const uint32_t old = texts.Keep("old");
  for (size_t i = 0; i < kMany; ++i) (void)texts.Keep("text " + std::to_string(i));
  EXPECT_EQ(texts.Of(old), "");
  EXPECT_EQ(texts.Of(0), "");
  EXPECT_EQ(texts.Keep(""), 0u);
}

TEST(FailureTextsTest, ALongOneIsCut) {
  FailureTexts texts;
  const std::string text(5'000, 'x');
  EXPECT_EQ(texts.Of(texts.Keep(text)), text.substr(0, FailureTexts::kBytesMax));
}

}  // namespace
}  // namespace esdp::sockets
