#include "impl/switch/mpa_request.h"

#include <algorithm>
#include <string_view>

namespace esdp::libc {
namespace {

constexpr std::string_view kKey = "MPA ID Req Frame";

}  // namespace

size_t MpaRequestBytes(const unsigned char* bytes) {
  return kMpaHeaderBytes + bytes[kMpaHeaderBytes - 2] * size_t{256} + bytes[kMpaHeaderBytes - 1];
}

size_t JudgeMpaRequest(const unsigned char* bytes, size_t count) {
  const auto same = [](char key, unsigned char byte) {
    return static_cast<unsigned char>(key) == byte;
  };
  const size_t compared = std::min(count, kKey.size());
  if (!std::equal(kKey.data(), kKey.data() + compared, bytes, same)) return kMpaNone;
  if (count < kMpaHeaderBytes) return count + 1;
  const size_t whole = MpaRequestBytes(bytes);
  if (whole > kMpaRequestMax) return kMpaNone;
  return count >= whole ? kMpaWhole : whole;
}

}  // namespace esdp::libc
