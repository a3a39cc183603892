#ifndef ESDP_TESTS_BASE_CONTENT_H_
#define ESDP_TESTS_BASE_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace esdp {

// Bytes that tests send. Optimised, which the tests' own text is not: to draw and to compare
// megabytes would take them longer than the library takes to move them.
void FillByChance(uint64_t seed, std::span<std::byte> bytes);

bool AreSame(std::span<const std::byte> one, std::span<const std::byte> two);

}  // namespace esdp

#endif  // ESDP_TESTS_BASE_CONTENT_H_
