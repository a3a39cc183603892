#ifndef ESDP_IMPL_EXS_STREAM_CALLS_H_
#define ESDP_IMPL_EXS_STREAM_CALLS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include "impl/exs/library.h"
#include "impl/exs/socket.h"

// What recvmsg(2), sendmsg(2) and shutdown(2) do with a number of the library. They come behind what
// was posted before.

namespace esdp::exs {

// Bytes, or -1 with an errno.
struct Moved {
  ssize_t bytes = 0;
  int error = 0;
};
inline Moved NotMoved(int error) { return {-1, error}; }

bool IsConnected(ExsSocket& socket);
// Whether a call may wait, by its flags and those of the descriptor.
bool Waits(const ExsSocket& socket, int flags);
// Of a call that may wait so long, from now on; 0 is without end.
absl::Time DeadlineOf(Library& library, absl::Duration timeout);

Moved Receive(Library& library, ExsSocket& socket, msghdr& message, int flags);
// Raises SIGPIPE as sendmsg does.
Moved Send(Library& library, ExsSocket& socket, const msghdr& message, int flags);
int Shutdown(Library& library, ExsSocket& socket, int how);
// Bytes that could be read now, of those that are here: never 0 where there are any.
size_t BytesToRead(Library& library, ExsSocket& socket);

// Posts on `queue`, with a slot, and waits for the event; the same when a signal or the deadline
// took it back. `post(operation)` answers an errno.
struct Waited {
  int error = 0;       // of the post
  int taken_back = 0;  // EINTR, ETIMEDOUT
  exs_event_t event = {};
};
template <typename Post>
Waited PostAndWait(ExsSocket& socket, Queue& queue, absl::Time deadline, const Post& post) {
  Waited waited;
  Operation filled;
  filled.inner = true;
  if (!queue.Reserve(1)) return {.error = ENOBUFS};
  waited.error = post(filled);
  if (waited.error != 0) {
    queue.Release(1);
    return waited;
  }
  size_t taken = 0;
  waited.taken_back = queue.Dequeue(std::span(&waited.event, 1), 1, deadline, &taken);
  if (waited.taken_back == 0) return waited;
  socket.CancelOn(queue);
  while (queue.Dequeue(std::span(&waited.event, 1), 1, absl::InfiniteFuture(), &taken) != 0) {
  }
  return waited;
}

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_STREAM_CALLS_H_
