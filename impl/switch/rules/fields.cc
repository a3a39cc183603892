#include "impl/switch/rules/fields.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

namespace esdp::switching {
namespace {

constexpr uint8_t kMappedBits = 96;

// Reads `text` as libc does, which wants an end.
bool ReadAddress(int family, std::string_view text, void* address) {
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.size() >= copy.size()) return false;
  std::copy(text.begin(), text.end(), copy.begin());
  return inet_pton(family, copy.data(), address) == 1;
}

const char* ReadPorts(std::string_view text, Rule& rule) {
  if (text == "*") return nullptr;
  const size_t dash = text.find('-');
  uint64_t first = 0, last = 0;
  if (!ReadNumber(Part(text, 0, dash), UINT16_MAX, first)) return "no port";
  last = first;
  if (dash != std::string_view::npos && !ReadNumber(Part(text, dash + 1), UINT16_MAX, last)) {
    return "no port";
  }
  if (last < first) return "the range of ports ends before it begins";
  rule.first_port = static_cast<uint16_t>(first);
  rule.last_port = static_cast<uint16_t>(last);
  return nullptr;
}

const char* ReadMilliseconds(std::string_view text, uint32_t& to) {
  uint64_t value = 0;
  if (!ReadNumber(text, RuleOptions::kMaxMilliseconds, value)) {
    return "no number of milliseconds up to 600000";
  }
  to = static_cast<uint32_t>(value);
  return nullptr;
}

}  // namespace

std::string_view Part(std::string_view text, size_t from, size_t count) {
  if (from > text.size()) from = text.size();
  const size_t left = text.size() - from;
  return {text.data() + from, count < left ? count : left};
}

bool ReadNumber(std::string_view text, uint64_t max, uint64_t& value) {
  if (text.empty()) return false;
  uint64_t read = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
    const auto next = static_cast<uint64_t>(digit - '0');
    if (next > max || read > (max - next) / 10) return false;
    read = read * 10 + next;
  }
  value = read;
  return true;
}

const char* ReadNetwork(std::string_view text, Network& network) {
  const size_t slash = text.find('/');
  std::string_view address = Part(text, 0, slash);
  uint8_t before = 0;
  std::array<uint8_t, 16> bytes{};
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']') {
    address = Part(address, 1, address.size() - 2);
    if (!ReadAddress(AF_INET6, address, bytes.data())) return "no address of IPv6";
  } else if (ReadAddress(AF_INET, address, bytes.data() + 12)) {
    before = kMappedBits;
    bytes[10] = bytes[11] = 0xFF;
  } else if (bytes = {}; !ReadAddress(AF_INET6, address, bytes.data())) {
    return "no address";
  }
  uint64_t bits = 128u - before;
  if (slash != std::string_view::npos && !ReadNumber(Part(text, slash + 1), bits, bits)) {
    return "no length of a prefix";
  }
  network.address = bytes;
  network.bits = static_cast<uint8_t>(before + bits);
  return nullptr;
}

const char* ReadWhere(std::string_view text, Rule& rule) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return "no colon before the port";
  const std::string_view address = Part(text, 0, colon);
  if (address == "*") {
    rule.network = {};
  } else if (const char* const wrong = ReadNetwork(address, rule.network); wrong != nullptr) {
    return wrong;
  }
  return ReadPorts(Part(text, colon + 1), rule);
}

const char* ReadOption(std::string_view text, RuleOptions& options) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return "no option: name=value";
  const std::string_view name = Part(text, 0, equals), value = Part(text, equals + 1);
  if (name == "wait") return ReadMilliseconds(value, options.wait_ms);
  if (name == "answer") return ReadMilliseconds(value, options.answer_ms);
  if (name == "mode") {
    if (value != "relay" && value != "direct") return "mode is relay or direct";
    options.mode = value == "relay" ? Mode::kRelay : Mode::kDirect;
    return nullptr;
  }
  if (name == "zcopy") {
    if (value == "never") {
      options.zcopy_bytes = RuleOptions::kNever;
      return nullptr;
    }
    return ReadNumber(value, UINT64_MAX - 1, options.zcopy_bytes) && options.zcopy_bytes > 0
               ? nullptr
               : "zcopy is a number of bytes, or never";
  }
  if (name == "buffer") {
    uint64_t bytes = 0;
    if (!ReadNumber(value, RuleOptions::kMaxBuffer, bytes) || bytes < RuleOptions::kMinBuffer) {
      return "buffer is 4096 to 67108864 bytes";
    }
    options.buffer_bytes = bytes;
    return nullptr;
  }
  if (name == "fabric") {
    if (value != "auto" && value != "qpip") return "fabric is auto or qpip";
    options.fabric = value == "auto" ? SwitchFabric::kAuto : SwitchFabric::kQpip;
    return nullptr;
  }
  return "no such option";
}

}  // namespace esdp::switching
