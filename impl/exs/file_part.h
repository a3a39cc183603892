#ifndef ESDP_IMPL_EXS_FILE_PART_H_
#define ESDP_IMPL_EXS_FILE_PART_H_

#include <cstdint>

#include "esdp/region.h"

namespace esdp::exs {

// A part of an exs_sendfile: memory, or a range of a file.
struct FilePart {
  Region region = {};  // keeps the slice's
  Slice slice = {};
  int fd = -1;  // a duplicate, closed with the FileSend
  uint64_t offset = 0;
  uint64_t length = 0;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_FILE_PART_H_
