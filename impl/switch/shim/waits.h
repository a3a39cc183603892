#ifndef ESDP_IMPL_SWITCH_SHIM_WAITS_H_
#define ESDP_IMPL_SWITCH_SHIM_WAITS_H_

#include <sys/epoll.h>

#include "impl/switch/taker.h"

namespace esdp::switching {

// This thread is about to wait for what is switched: in a call of the engine's, which does the work
// itself, or in the system.
enum class WaitsIn : bool { kEngine, kSystem };
void NoteWait(WaitsIn where);

// As epoll_wait, of any set; nothing: it is libc's to answer.
libc::Taker::Answer WaitWithEpoll(int set, epoll_event* events, int most, int timeout);

// A thread has been told to end at its next point of cancellation.
void NoteCancellation();

// The thread of a child of fork waits for itself.
void ForgetWaiter();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_WAITS_H_
