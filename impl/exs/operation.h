#ifndef ESDP_IMPL_EXS_OPERATION_H_
#define ESDP_IMPL_EXS_OPERATION_H_

#include <cstdint>
#include <memory>

#include "esdp/event.h"
#include "sys/exs.h"

namespace esdp::exs {

class ExsSocket;
class Queue;

// An operation that was posted, from the post until its event is converted. It belongs to its
// queue, and its address is the cookie of what was posted.
struct Operation {
  int type = 0;                            // EXS_EVT_*
  int number = -1;                         // of the socket
  exs_ahandle_t handle = nullptr;          // the application's
  void* buffer = nullptr;                  // SEND, RECV
  exs_mhandle_t memory = 0;                // SEND, RECV
  exs_msghdr_t* message = nullptr;         // SENDMSG, RECVMSG
  exs_xferfile_t* file = nullptr;          // SENDFILE
  exs_acceptaddr_t* addresses = nullptr;   // ACCEPT: where the next connection's go
  uint64_t pinned = 0;                     // bytes that are registered for it alone
  int accepts_left = 0;                    // ACCEPT: slots that are still reserved
  bool inner = false;                      // of a call of libc
  OpId op = OpId::kNone;                   // none before it was posted below
  Queue* queue = nullptr;                  // which it belongs to
  std::shared_ptr<ExsSocket> socket = {};  // which has it in a list, by these:
  Operation* previous = nullptr;
  Operation* next = nullptr;
};

// What its event says, but for the result.
exs_event_t EventOf(const Operation& operation);
// An event of a transfer with its result.
exs_event_t Finished(const Operation& operation, int error, uint64_t bytes, uint32_t flags);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_OPERATION_H_
