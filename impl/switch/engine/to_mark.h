#ifndef ESDP_IMPL_SWITCH_ENGINE_TO_MARK_H_
#define ESDP_IMPL_SWITCH_ENGINE_TO_MARK_H_

#include <sys/types.h>

#include <cstddef>

namespace esdp::switching {

// Of a socket that keeps urgent bytes in line, read by nobody else: what is there before the next one,
// or that alone. Answers as recv does, and does not wait.
ssize_t ReceiveToMark(int descriptor, void* to, size_t room, bool& urgent);
void KeepUrgentInLine(int descriptor);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_TO_MARK_H_
