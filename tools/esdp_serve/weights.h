#ifndef ESDP_TOOLS_ESDP_SERVE_WEIGHTS_H_
#define ESDP_TOOLS_ESDP_SERVE_WEIGHTS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "esdp/address.h"

namespace esdp_serve {

// How many shares a client has, by the address that it comes from.
//
//   Owns:     its rules.
//   Threads:  one changes it; any read it then.
//   Blocks:   never.
//   Units:    shares, 1 to kMost; 1 without a rule.
//   Errors:   Add: InvalidArgument, whose text shows the form.
class Weights {
 public:
  static constexpr uint32_t kMost = 100;

  // "ADDRESS=N" or "ADDRESS/BITS=N": of a host, or of all whose address begins with so many bits.
  absl::Status Add(const std::string& text);
  // By the rule with the most bits of those that fit; of equals by the last one.
  uint32_t Of(const esdp::Address& client) const;

 private:
  struct Rule {
    esdp::Address network;
    uint32_t bits = 0;
    uint32_t weight = 1;
  };
  std::vector<Rule> rules_;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_WEIGHTS_H_
