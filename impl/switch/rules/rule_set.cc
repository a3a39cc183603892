#include "impl/switch/rules/rule_set.h"

#include <cstring>

namespace esdp::switching {

bool Network::Contains(const std::array<uint8_t, 16>& other) const {
  const size_t whole = bits / 8;
  if (std::memcmp(address.data(), other.data(), whole) != 0) return false;
  const unsigned rest = bits % 8;
  if (rest == 0) return true;
  const unsigned mask = 0xFFu << (8 - rest) & 0xFFu;
  return ((address[whole] ^ other[whole]) & mask) == 0;
}

bool Rule::Matches(Role asked, const Endpoint& where) const {
  return role == asked && where.port >= first_port && where.port <= last_port &&
         network.Contains(where.address);
}

bool Rule::MatchesAll() const {
  return network.bits == 0 && first_port == 0 && last_port == UINT16_MAX;
}

bool RuleSet::Add(const Rule& rule) {
  if (count_ == rules_.size()) return false;
  rules_[count_++] = rule;
  return true;
}

bool RuleSet::AddPeer(const Network& network) {
  if (peer_count_ == peers_.size()) return false;
  peers_[peer_count_++] = network;
  return true;
}

void RuleSet::SetMode(Mode mode) {
  for (Rule& rule : std::span(rules_).first(count_)) rule.options.mode = mode;
}

const Rule* RuleSet::Find(Role role, const Endpoint& where) const {
  for (const Rule& rule : rules()) {
    if (rule.Matches(role, where)) return &rule;
  }
  return nullptr;
}

bool RuleSet::MayMatch(Role role) const {
  for (const Rule& rule : rules()) {
    if (rule.role != role) continue;
    if (rule.verdict != Verdict::kTcp) return true;
    if (rule.MatchesAll()) return false;
  }
  return false;
}

bool RuleSet::IsPeer(const std::array<uint8_t, 16>& address) const {
  for (const Network& peer : std::span(peers_).first(peer_count_)) {
    if (peer.Contains(address)) return true;
  }
  return false;
}

}  // namespace esdp::switching
