#include "tools/esdp_serve/weights.h"

#include <charconv>
#include <string_view>

namespace esdp_serve {
namespace {

bool TakeNumber(std::string_view text, uint32_t most, uint32_t& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size() && number <= most;
}

uint32_t BitsOf(esdp::Family family) { return family == esdp::Family::kIpv4 ? 32 : 128; }

bool IsIn(const esdp::Address& client, const esdp::Address& network, uint32_t bits) {
  if (client.family() != network.family()) return false;
  // An IPv4 address is the last four of sixteen bytes.
  const uint32_t first = 128 - BitsOf(client.family());
  for (uint32_t bit = first; bit < first + bits; ++bit) {
    const unsigned mask = 0x80u >> bit % 8;
    if (((client.bytes()[bit / 8] ^ network.bytes()[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

}  // namespace

absl::Status Weights::Add(const std::string& text) {
  const auto refuse = [&] {
    return absl::InvalidArgumentError("'" + text +
                                      "' is no ADDRESS=N or ADDRESS/BITS=N, with N from 1 to 100");
  };
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return refuse();
  std::string host = text.substr(0, equals);
  std::string_view bits;
  if (const size_t slash = host.find('/'); slash != std::string::npos) {
    bits = std::string_view(text).substr(slash + 1, equals - slash - 1);
    host.resize(slash);
    if (bits.empty()) return refuse();
  }
  if (host.find(':') != std::string::npos && !host.starts_with('[')) host = "[" + host + "]";
  const auto network = esdp::Address::Parse(host + ":0");
  if (!network.ok()) return refuse();
  Rule rule{.network = *network, .bits = BitsOf(network->family())};
  if (!bits.empty() && !TakeNumber(bits, rule.bits, rule.bits)) return refuse();
  if (!TakeNumber(std::string_view(text).substr(equals + 1), kMost, rule.weight) ||
      rule.weight == 0) {
    return refuse();
  }
  rules_.push_back(rule);
  return absl::OkStatus();
}

uint32_t Weights::Of(const esdp::Address& client) const {
  const Rule* best = nullptr;
  for (const Rule& rule : rules_) {
    if (!IsIn(client, rule.network, rule.bits)) continue;
    if (best == nullptr || rule.bits >= best->bits) best = &rule;
  }
  return best == nullptr ? 1 : best->weight;
}

}  // namespace esdp_serve
