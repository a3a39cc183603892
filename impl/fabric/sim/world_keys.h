#ifndef ESDP_IMPL_FABRIC_SIM_WORLD_KEYS_H_
#define ESDP_IMPL_FABRIC_SIM_WORLD_KEYS_H_

#include <cstdint>
#include <optional>

#include "impl/fabric/sim/random.h"
#include "impl/fabric/soft/key_source.h"

namespace esdp::fabric::sim {

// Keys from the world's chance: one seed gives the same keys again.
class WorldKeys final : public soft::KeySource {
 public:
  explicit WorldKeys(Random& random) : random_(random) {}

  std::optional<uint32_t> Draw() override { return static_cast<uint32_t>(random_.Next()); }
  // Not 0, so that a caller who forgets to pass the key's own address on is found out.
  uint64_t FirstAddress() override { return random_.Between(1, UINT32_MAX); }

 private:
  Random& random_;
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_WORLD_KEYS_H_
