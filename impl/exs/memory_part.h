#ifndef ESDP_IMPL_EXS_MEMORY_PART_H_
#define ESDP_IMPL_EXS_MEMORY_PART_H_

#include "impl/exs/library.h"
#include "impl/exs/transfer.h"
#include "sys/exs.h"

namespace esdp::exs {

// A range of memory as the application names it; an errno.
int MakeMemoryPart(Library& library, const exs_iovec_t& range, Part* part);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_MEMORY_PART_H_
