#ifndef ESDP_IMPL_SOCKETS_STREAM_TRANSFER_FLAGS_H_
#define ESDP_IMPL_SOCKETS_STREAM_TRANSFER_FLAGS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "esdp/socket.h"

namespace esdp::sockets {

// What the flags of a post ask for.
struct TransferFlags {
  bool is_send = false;
  bool wait_all = false;
  bool urgent = false;
  bool shown = true;          // receive: the peer may be told of it
  bool until_advert = false;  // receive: it ends before memory that the peer shows
  bool tended = false;        // as a provider::Transfer
  uint32_t unknown = 0;       // bits that mean nothing

  // An urgent send has a byte.
  absl::Status CheckLength(uint64_t length) const;

  static TransferFlags Of(SendFlags flags);
  static TransferFlags Of(RecvFlags flags);
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_TRANSFER_FLAGS_H_
