#ifndef ESDP_TOOLS_ESDP_FILES_READ_WHOLE_H_
#define ESDP_TOOLS_ESDP_FILES_READ_WHOLE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace esdp_files {

// Reads the file from `offset` on until `bytes` is full: 0, errno, or kEndsBefore. What an error leaves
// in `bytes` is not told.
inline constexpr int kEndsBefore = -1;
int ReadWhole(int fd, uint64_t offset, std::span<std::byte> bytes);

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_READ_WHOLE_H_
