#ifndef ESDP_IMPL_FABRIC_READY_DESCRIPTOR_H_
#define ESDP_IMPL_FABRIC_READY_DESCRIPTOR_H_

namespace esdp::fabric {

// A descriptor that is readable while a fabric has something to be polled: the outbox's part of
// Fabric::fd().
//
//   Owns:     the descriptor.
//   Threads:  not thread-safe; fd() may be waited on by any thread.
//   Blocks:   never. Set makes a system call only where the answer changes.
//   Units:    –
//   Errors:   Open: false where the system has no descriptor, with errno as it left it.
class ReadyDescriptor {
 public:
  ReadyDescriptor() = default;
  ~ReadyDescriptor();
  ReadyDescriptor(const ReadyDescriptor&) = delete;
  ReadyDescriptor& operator=(const ReadyDescriptor&) = delete;

  [[nodiscard]] bool Open();
  int fd() const { return fd_; }  // -1 before Open

  void Set(bool ready) {
    if (ready != ready_) Change(ready);
  }

 private:
  void Change(bool ready);

  int fd_ = -1;
  bool ready_ = false;
};

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_READY_DESCRIPTOR_H_
