#ifndef ESDP_IMPL_FABRIC_MEMORY_TYPES_H_
#define ESDP_IMPL_FABRIC_MEMORY_TYPES_H_

#include <cstdint>

// How memory is registered and shown: part of the vocabulary of types.h.

namespace esdp::fabric {

// What a peer names in an RDMA operation: the key of a region or a window, an address in its space.
struct RemoteRange {
  uint32_t key = 0;
  uint64_t address = 0;
  friend bool operator==(const RemoteRange&, const RemoteRange&) = default;
};

// Rights of a registration or a window. Local read is always given.
struct Access {
  bool local_write = false;
  bool remote_read = false;
  bool remote_write = false;
};

// Memory of another device, which the processor need not reach: a dma-buf, from `offset` on.
struct DmaBuf {
  int fd = -1;
  uint64_t offset = 0;
};

// Where memory lies that other processes can map.
struct SharedFile {
  int descriptor = -1;
  uint64_t offset = 0;
};

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_MEMORY_TYPES_H_
