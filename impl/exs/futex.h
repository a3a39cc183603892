#ifndef ESDP_IMPL_EXS_FUTEX_H_
#define ESDP_IMPL_EXS_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace esdp::exs {

// Sleeps while the word is `seen`: 0 when it was woken or need not sleep, ETIMEDOUT, or EINTR. If
// `longest` is infinite it goes on by itself after a handler with SA_RESTART.
int FutexWait(std::atomic<uint32_t>* word, uint32_t seen, absl::Duration longest);
void FutexWakeAll(std::atomic<uint32_t>* word);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_FUTEX_H_
