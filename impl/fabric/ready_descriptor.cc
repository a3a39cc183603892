#include "impl/fabric/ready_descriptor.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace esdp::fabric {

ReadyDescriptor::~ReadyDescriptor() {
  if (fd_ >= 0) close(fd_);
}

bool ReadyDescriptor::Open() {
  fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return fd_ >= 0;
}

void ReadyDescriptor::Change(bool ready) {
  ready_ = ready;
  eventfd_t count = 1;
  // A counter of 0 or 1 neither overflows nor blocks: neither call can fail.
  static_cast<void>(ready ? eventfd_write(fd_, count) : eventfd_read(fd_, &count));
}

}  // namespace esdp::fabric
