#ifndef ESDP_IMPL_SOCKETS_WISHES_H_
#define ESDP_IMPL_SOCKETS_WISHES_H_

#include <cstdint>

#include "esdp/socket.h"

namespace esdp::sockets {

// What the flags of a post ask for.
struct Wishes {
  bool is_send = false;
  bool wait_all = false;
  bool urgent = false;
  uint32_t unknown = 0;  // bits that mean nothing

  static Wishes Of(SendFlags flags);
  static Wishes Of(RecvFlags flags);
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_WISHES_H_
