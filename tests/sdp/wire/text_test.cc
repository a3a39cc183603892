#include "impl/sdp/wire/text.h"

#include <array>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "impl/sdp/wire/messages.h"

// Golden_test holds the line of every message against a file; here are the values that no golden
// vector has.

namespace esdp::sdp::wire {
namespace {

std::string AddressText(uint8_t ip_version, const AddressBytes& address) {
  const Hello hello{.ip_version = ip_version, .source_address = address};
  const std::string text = ToText(Message{BaseHeader{}, hello});
  const std::string key = " hh.src_addr=";
  const size_t begin = text.find(key) + key.size();
  return text.substr(begin, text.find(' ', begin) - begin);
}

AddressBytes Groups(const std::array<uint16_t, 8>& groups) {
  AddressBytes address{};
  for (size_t i = 0; i < groups.size(); ++i) {
    address[2 * i] = static_cast<uint8_t>(groups[i] >> 8);
    address[2 * i + 1] = static_cast<uint8_t>(groups[i]);
  }
  return address;
}

TEST(ToTextTest, NamesEveryFlagThatIsSet) {
  const BaseHeader all{.flags = kFlagOobPresent | kFlagOobPending | kFlagReqPipe};
  EXPECT_EQ(ToText(Message{all, DisConn{}}),
            "DisConn flags=oob_pres|oob_pend|req_pipe bufs=0 len=0 mseq=0 mseqack=0");
}

TEST(ToTextTest, PrintsTheExtendedMaxAdvertsWithTheirCapability) {
  const Hello hello{.capabilities = kCapabilityInvalidate | kCapabilityExtendedMaxAdverts,
                    .extended_max_adverts = 1024};
  const std::string text = ToText(Message{BaseHeader{}, hello});
  EXPECT_NE(text.find(" hh.cap=invalidate|ext_max_adverts "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(" hh.ext_max_adverts=1024")) << text;
}

TEST(ToTextTest, PrintsTheLargestAndTheSmallestNumbers) {
  const SrcAvail advert{.length = 0, .remote_key = UINT32_MAX, .virtual_address = UINT64_MAX};
  EXPECT_EQ(ToText(Message{BaseHeader{.buffers = UINT16_MAX, .length = UINT32_MAX}, advert}),
            "SrcAvail flags=0 bufs=65535 len=4294967295 mseq=0 mseqack=0 srcah.len=0 "
            "srcah.rkey=0xffffffff srcah.va=0xffffffffffffffff");
}

TEST(ToTextTest, PrintsTheBufferedModeByName) {
  const std::string text = ToText(Message{BaseHeader{}, ModeChange{false, Mode::kBuffered}});
  EXPECT_TRUE(text.ends_with(" mch.s=0 mch.mode=buffered")) << text;
}

TEST(ToTextTest, PrintsAnAddressInTheFormOfItsIpVersion) {
  const AddressBytes loopback6 = Groups({0, 0, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(AddressText(6, loopback6), "::1");
  EXPECT_EQ(AddressText(4, loopback6), "0.0.0.1");
  EXPECT_EQ(AddressText(4, Groups({0, 0, 0, 0, 0, 0, 0xFFFF, 0x0A01})), "255.255.10.1");
}

// RFC 5952, section 4.2: only the first of the longest runs, and never a single group.
TEST(ToTextTest, LeavesOutTheFirstOfTheLongestZeroRunsOfAnIpv6Address) {
  EXPECT_EQ(AddressText(6, Groups({})), "::");
  EXPECT_EQ(AddressText(6, Groups({1, 0, 0, 0, 0, 0, 0, 0})), "1::");
  EXPECT_EQ(AddressText(6, Groups({1, 0, 0, 2, 0, 0, 0, 3})), "1:0:0:2::3");
  EXPECT_EQ(AddressText(6, Groups({1, 0, 0, 2, 3, 0, 0, 4})), "1::2:3:0:0:4");
  EXPECT_EQ(AddressText(6, Groups({1, 0, 2, 3, 4, 5, 6, 7})), "1:0:2:3:4:5:6:7");
  EXPECT_EQ(AddressText(6, Groups({0xFE80, 1, 2, 3, 4, 5, 6, 0xABCD})), "fe80:1:2:3:4:5:6:abcd");
}

}  // namespace
}  // namespace esdp::sdp::wire
