#include "impl/switch/pair_name.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstring>
#include <string>

namespace esdp::switching {
namespace {

Name NameOf(const char* address, uint16_t port) {
  Name name{};
  if (inet_pton(AF_INET, address, &name.ipv4.sin_addr) == 1) {
    name.ipv4.sin_family = AF_INET;
    name.ipv4.sin_port = htons(port);
    return name;
  }
  name.ipv6 = {};
  name.ipv6.sin6_family = AF_INET6;
  name.ipv6.sin6_port = htons(port);
  name.ipv6.sin6_scope_id = 7;
  EXPECT_EQ(inet_pton(AF_INET6, address, &name.ipv6.sin6_addr), 1);
  return name;
}

ConnectionNames NamesOf(const char* local, const char* peer, socklen_t bytes) {
  return {.local = NameOf(local, 80),
          .peer = NameOf(peer, 65535),
          .local_bytes = bytes,
          .peer_bytes = bytes};
}

const ConnectionNames kIpv4 = NamesOf("127.0.0.1", "255.254.10.0", sizeof(sockaddr_in));
const ConnectionNames kIpv6 = NamesOf("::1", "fe80::ff:10", sizeof(sockaddr_in6));

bool IsEqual(const Name& a, const Name& b, socklen_t bytes) {
  return std::memcmp(&a, &b, bytes) == 0;
}

TEST(PairName, WhatIsWrittenIsReadAgain) {
  for (const ConnectionNames& names : {kIpv4, kIpv6}) {
    sockaddr_un name;
    const socklen_t bytes = WritePairName(names, 0x0A00FF0D, name);
    ConnectionNames read;
    ASSERT_TRUE(ReadPairName(name, bytes, read));
    EXPECT_EQ(read.local_bytes, names.local_bytes);
    EXPECT_EQ(read.peer_bytes, names.peer_bytes);
    EXPECT_TRUE(IsEqual(read.local, names.local, names.local_bytes));
    EXPECT_TRUE(IsEqual(read.peer, names.peer, names.peer_bytes));
  }
}

TEST(PairName, IsTextThatToolsCanList) {
  sockaddr_un name;
  const socklen_t bytes = WritePairName(kIpv6, ~uint64_t{0}, name);
  for (size_t i = 1; i < bytes - offsetof(sockaddr_un, sun_path); ++i) {
    EXPECT_TRUE(std::isgraph(static_cast<unsigned char>(name.sun_path[i])) != 0) << i;
  }
}

TEST(PairName, TwoPairsOfOneConnectionDiffer) {
  sockaddr_un one, other;
  const socklen_t bytes = WritePairName(kIpv4, 1, one);
  ASSERT_EQ(WritePairName(kIpv4, 2, other), bytes);
  EXPECT_NE(std::memcmp(&one, &other, bytes), 0);
}

TEST(PairName, ALengthIsNoOther) {
  sockaddr_un name;
  const socklen_t bytes = WritePairName(kIpv4, 1, name);
  for (socklen_t other = 0; other <= sizeof(name); ++other) {
    ConnectionNames read;
    EXPECT_EQ(ReadPairName(name, other, read), other == bytes) << other;
  }
}

TEST(PairName, AByteThatIsNotOneOfItsOwnIsRefusedAtEachPlace) {
  sockaddr_un whole;
  const socklen_t bytes = WritePairName(kIpv4, 1, whole);
  for (size_t i = 0; i < bytes - offsetof(sockaddr_un, sun_path); ++i) {
    for (const char byte : {'\0', '\n', '/', '@', '\x7F', '\xFF'}) {
      sockaddr_un name = whole;
      if (name.sun_path[i] == byte) continue;
      name.sun_path[i] = byte;
      ConnectionNames read;
      EXPECT_FALSE(ReadPairName(name, bytes, read)) << i << " " << int{byte};
    }
  }
}

TEST(PairName, AnotherFamilyIsRefused) {
  ConnectionNames names = kIpv4;
  names.local.any.sa_family = AF_UNIX;
  sockaddr_un name;
  const socklen_t bytes = WritePairName(names, 1, name);
  ConnectionNames read;
  EXPECT_FALSE(ReadPairName(name, bytes, read));
}

}  // namespace
}  // namespace esdp::switching
