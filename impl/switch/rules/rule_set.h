#ifndef ESDP_IMPL_SWITCH_RULES_RULE_SET_H_
#define ESDP_IMPL_SWITCH_RULES_RULE_SET_H_

#include <array>
#include <cstddef>
#include <span>

#include "impl/switch/rules/rule.h"

namespace esdp::switching {

// The rules that concern one program, in their order, and the hosts that are known to have SDP.
//
//   Owns:     copies of what is added. No memory beyond itself.
//   Threads:  any, once nothing is added any more.
//   Blocks:   never.
//   Units:    -
//   Errors:   Add and AddPeer: false when it is full.
class RuleSet {
 public:
  static constexpr size_t kMaxRules = 512, kMaxPeers = 512;

  bool Add(const Rule& rule);
  bool AddPeer(const Network& network);
  void SetLog(const LogTarget& log) { log_ = log; }
  // Of each that was added.
  void SetMode(Mode mode);

  // The first that matches; null where none does, which means TCP.
  const Rule* Find(Role role, const Endpoint& where) const;
  // Whether any address could be found a rule for that says anything but TCP.
  bool MayMatch(Role role) const;
  bool IsPeer(const std::array<uint8_t, 16>& address) const;
  const LogTarget& log() const { return log_; }
  std::span<const Rule> rules() const { return std::span(rules_).first(count_); }

 private:
  std::array<Rule, kMaxRules> rules_{};
  std::array<Network, kMaxPeers> peers_{};
  size_t count_ = 0, peer_count_ = 0;
  LogTarget log_;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_RULES_RULE_SET_H_
