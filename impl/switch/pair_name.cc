#include "impl/switch/pair_name.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace esdp::switching {
namespace {

constexpr char kPrefix[] = "esdp-switch/pair/";  // behind the zero of Linux' abstract names
constexpr size_t kPrefixBytes = sizeof(kPrefix) - 1;
// As text: ss, netstat and lsof read what the system lists.
constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

struct End {
  std::array<unsigned char, 16> address;
  std::array<unsigned char, 2> port;
  std::array<unsigned char, 4> scope;
};

struct Record {
  std::array<unsigned char, 8> unique;
  std::array<unsigned char, 2> family;  // that of Linux, the low byte first
  End local, peer;
};
static_assert(alignof(Record) == 1 && sizeof(Record) % 3 == 0);

constexpr size_t kTextBytes = sizeof(Record) / 3 * 4;
constexpr socklen_t kBytes = offsetof(sockaddr_un, sun_path) + 1 + kPrefixBytes + kTextBytes;
static_assert(kBytes <= sizeof(sockaddr_un));

template <typename Field, size_t kSize>
void Put(const Field& field, std::array<unsigned char, kSize>& to) {
  static_assert(sizeof(field) <= kSize);
  std::copy_n(reinterpret_cast<const unsigned char*>(&field), sizeof(field), to.begin());
}

template <typename Field, size_t kSize>
void Get(const std::array<unsigned char, kSize>& from, Field& field) {
  static_assert(sizeof(field) <= kSize);
  std::copy_n(from.begin(), sizeof(field), reinterpret_cast<unsigned char*>(&field));
}

void Write(const Name& name, End& end) {
  if (name.any.sa_family == AF_INET6) {
    Put(name.ipv6.sin6_addr, end.address);
    Put(name.ipv6.sin6_port, end.port);
    Put(name.ipv6.sin6_scope_id, end.scope);
  } else {
    Put(name.ipv4.sin_addr, end.address);
    Put(name.ipv4.sin_port, end.port);
  }
}

socklen_t Read(const End& end, bool is_ipv6, Name& name) {
  name = {};
  if (is_ipv6) {
    name.ipv6 = {};
    name.ipv6.sin6_family = AF_INET6;
    Get(end.address, name.ipv6.sin6_addr);
    Get(end.port, name.ipv6.sin6_port);
    Get(end.scope, name.ipv6.sin6_scope_id);
    return sizeof(name.ipv6);
  }
  name.ipv4.sin_family = AF_INET;
  Get(end.address, name.ipv4.sin_addr);
  Get(end.port, name.ipv4.sin_port);
  return sizeof(name.ipv4);
}

}  // namespace

socklen_t WritePairName(const ConnectionNames& names, uint64_t unique, sockaddr_un& name) {
  Record record = {};
  Put(unique, record.unique);
  record.family[0] = static_cast<unsigned char>(names.local.any.sa_family);
  Write(names.local, record.local);
  Write(names.peer, record.peer);
  name = {};
  name.sun_family = AF_UNIX;
  char* to = std::copy_n(kPrefix, kPrefixBytes, name.sun_path + 1);
  const std::span bytes(reinterpret_cast<const unsigned char*>(&record), sizeof(record));
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t three = uint32_t{bytes[i]} << 16 | uint32_t{bytes[i + 1]} << 8 | bytes[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) *to++ = kDigits[three >> shift & 63];
  }
  return kBytes;
}

bool ReadPairName(const sockaddr_un& name, socklen_t bytes, ConnectionNames& names) {
  if (bytes != kBytes || name.sun_family != AF_UNIX || name.sun_path[0] != 0) return false;
  if (!std::equal(kPrefix, kPrefix + kPrefixBytes, name.sun_path + 1)) return false;
  const char* from = name.sun_path + 1 + kPrefixBytes;
  Record record;
  const std::span made(reinterpret_cast<unsigned char*>(&record), sizeof(record));
  for (size_t i = 0; i < made.size(); i += 3) {
    uint32_t three = 0;
    for (int digit = 0; digit < 4; ++digit) {
      const char* const found = std::strchr(kDigits, *from++);
      if (found == nullptr || *found == 0) return false;
      three = three << 6 | static_cast<uint32_t>(found - kDigits);
    }
    made[i] = static_cast<unsigned char>(three >> 16);
    made[i + 1] = static_cast<unsigned char>(three >> 8);
    made[i + 2] = static_cast<unsigned char>(three);
  }
  const bool is_ipv6 = record.family[0] == AF_INET6;
  if ((record.family[0] != AF_INET && !is_ipv6) || record.family[1] != 0) return false;
  names.local_bytes = Read(record.local, is_ipv6, names.local);
  names.peer_bytes = Read(record.peer, is_ipv6, names.peer);
  return true;
}

}  // namespace esdp::switching
