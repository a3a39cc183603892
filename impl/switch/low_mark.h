#ifndef ESDP_IMPL_SWITCH_LOW_MARK_H_
#define ESDP_IMPL_SWITCH_LOW_MARK_H_

#include <cstddef>

namespace esdp::libc {

// So many bytes have to be there before the socket is readable.
void SetLowMark(int fd, size_t bytes);

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_LOW_MARK_H_
