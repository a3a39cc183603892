#include "tests/base/content.h"

#include <algorithm>
#include <cstring>

#include "impl/base/random.h"

namespace esdp {

void FillByChance(uint64_t seed, std::span<std::byte> bytes) {
  Random random(seed);
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), sizeof(uint64_t)))) {
    const uint64_t drawn = random.Next();
    std::memcpy(bytes.data(), &drawn, std::min(bytes.size(), sizeof(drawn)));
  }
}

bool AreSame(std::span<const std::byte> one, std::span<const std::byte> two) {
  return one.size() == two.size() &&
         (one.empty() || std::memcmp(one.data(), two.data(), one.size()) == 0);
}

}  // namespace esdp
