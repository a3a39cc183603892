#include "impl/switch/low_mark.h"

#include <sys/socket.h>

#include "impl/switch/libc_calls.h"

namespace esdp::libc {

void SetLowMark(int fd, size_t bytes) {
  const int mark = static_cast<int>(bytes);
  (void)real.setsockopt.get()(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark));
}

}  // namespace esdp::libc
