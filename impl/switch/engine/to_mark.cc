#include "impl/switch/engine/to_mark.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace esdp::switching {

// A byte that comes between the look at the mark and the read would be read as any other, were it not
// known that there is one before it.
ssize_t ReceiveToMark(int descriptor, void* to, size_t room, bool& urgent) {
  for (;;) {
    int bytes = 0, at_mark = 0;
    if (ioctl(descriptor, FIONREAD, &bytes) != 0 || bytes > 0) {
      urgent = ioctl(descriptor, SIOCATMARK, &at_mark) == 0 && at_mark != 0;
      return recv(descriptor, to, urgent ? 1 : room, MSG_DONTWAIT);
    }
    char byte = 0;
    const ssize_t there = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (there <= 0) return there;
  }
}

void KeepUrgentInLine(int descriptor) {
  const int on = 1;
  (void)setsockopt(descriptor, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
}

}  // namespace esdp::switching
