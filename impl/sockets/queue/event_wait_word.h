#ifndef ESDP_IMPL_SOCKETS_QUEUE_EVENT_WAIT_WORD_H_
#define ESDP_IMPL_SOCKETS_QUEUE_EVENT_WAIT_WORD_H_

#include <atomic>
#include <cstdint>

namespace esdp::sockets {

// What the handlers that are installed now do to a call such as recv(2). None: kEnd. Those of the
// faults of a thread do not count.
enum class Handlers { kEnd, kRestart, kBoth };
Handlers HandlersNow();

// Sleeps while the word is `seen`. True: a signal has ended it. It goes on by itself after a handler
// with SA_RESTART, as recv(2) does: that needs a wait without a timeout.
bool FutexSleep(std::atomic<uint32_t>& word, uint32_t seen);
void FutexWake(std::atomic<uint32_t>& word);

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_QUEUE_EVENT_WAIT_WORD_H_
