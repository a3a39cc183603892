#include "impl/sdp/wire/text.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "impl/sdp/wire/fields.h"
#include "impl/sdp/wire/kinds.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp::wire {
namespace {

constexpr size_t kGroups = 8;  // of 16 bits, in an IPv6 address

std::string Number(uint64_t value, int base) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, base);
  return std::string(digits.data(), end.ptr);
}

std::string Hexadecimal(uint64_t value, size_t bytes) {
  const std::string digits = Number(value, 16);
  return "0x" + std::string(2 * bytes - digits.size(), '0') + digits;
}

// The names of the bits that are set, lowest first, joined by '|'; 0 if none is.
std::string BitNames(uint64_t value, std::span<const std::string_view> names) {
  std::string text;
  for (size_t bit = 0; bit < names.size(); ++bit) {
    if ((value >> bit & 1) == 0) continue;
    if (!text.empty()) text += '|';
    text += names[bit];
  }
  return text.empty() ? "0" : text;
}

constexpr std::array<std::string_view, 3> kFlagNames = {"oob_pres", "oob_pend", "req_pipe"};
constexpr std::array<std::string_view, 4> kCapabilityNames = {"invalidate", "ext_max_adverts",
                                                              "return_token", "may_be_moved"};
constexpr std::array<std::string_view, 3> kModeNames = {"buffered", "combined", "pipelined"};

std::string Ipv4Text(const AddressBytes& address) {
  std::string text;
  for (size_t i = 12; i < address.size(); ++i) {
    if (i > 12) text += '.';
    text += Number(address[i], 10);
  }
  return text;
}

struct Run {
  size_t begin = 0;
  size_t length = 0;
};

// The first of the longest runs of zero groups, which the text form of an address leaves out (RFC
// 5952, 4.2).
Run LongestZeroRun(const std::array<uint16_t, kGroups>& groups) {
  Run longest;
  Run current;
  for (size_t i = 0; i < kGroups; ++i) {
    if (groups[i] != 0) {
      current = Run{};
      continue;
    }
    if (current.length == 0) current.begin = i;
    ++current.length;
    if (current.length > longest.length) longest = current;
  }
  return longest.length >= 2 ? longest : Run{kGroups, 0};
}

std::string Ipv6Text(const AddressBytes& address) {
  std::array<uint16_t, kGroups> groups;
  for (size_t i = 0; i < kGroups; ++i) {
    groups[i] = static_cast<uint16_t>(address[2 * i] << 8 | address[2 * i + 1]);
  }
  const Run left_out = LongestZeroRun(groups);
  std::string text;
  for (size_t i = 0; i < kGroups; ++i) {
    if (i == left_out.begin) {
      text += "::";
      i += left_out.length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    text += Number(groups[i], 16);
  }
  return text;
}

// Appends " name=value" for each field that has a value.
class Printer {
 public:
  explicit Printer(std::string_view name) : text_(name) {}

  template <typename T>
  bool operator()(const Field& field, const T& value) {
    Append(field, ValueText(field, static_cast<uint64_t>(value), sizeof(value)));
    return true;
  }

  bool operator()(const Field& field, const AddressBytes& value) {
    if (field.look == Look::kSecret) {
      Append(field, value == AddressBytes{} ? "none" : "(secret)");
      return true;
    }
    Append(field, ip_version_ == 4 ? Ipv4Text(value) : Ipv6Text(value));
    return true;
  }

  bool Reserved(const Field&, size_t) { return true; }
  bool Zero(const Field&) { return true; }
  bool Check(bool, const char*, const char*) { return true; }

  std::string Take() { return std::move(text_); }

 private:
  void Append(const Field& field, const std::string& value) {
    std::string_view name = field.name;
    if (name.starts_with(kBasePrefix)) name.remove_prefix(kBasePrefix.size());
    text_ += ' ';
    text_ += name;
    text_ += '=';
    text_ += value;
  }

  std::string ValueText(const Field& field, uint64_t value, size_t bytes) {
    switch (field.look) {
      case Look::kHex:
        return Hexadecimal(value, bytes);
      case Look::kFlags:
        return BitNames(value, kFlagNames);
      case Look::kCapabilities:
        return BitNames(value, kCapabilityNames);
      case Look::kMode:
        return value < kModeNames.size() ? std::string(kModeNames[value]) : Number(value, 10);
      case Look::kIpVersion:
        ip_version_ = value;
        break;
      case Look::kSecret:
      case Look::kDecimal:
        break;
    }
    return Number(value, 10);
  }

  static constexpr std::string_view kBasePrefix = "bsdh.";

  std::string text_;
  uint64_t ip_version_ = 0;
};

template <typename T>
std::string TextOf(const BaseHeader& base, const T& body) {
  Printer print(Kind<T>::kName);  // which says what bsdh.mid would
  EachFieldAfterId(print, base);
  EachField(print, body);
  return print.Take();
}

}  // namespace

std::string ToText(const Message& message) {
  return std::visit([&](const auto& body) { return TextOf(message.base, body); }, message.body);
}

}  // namespace esdp::sdp::wire
