#ifndef ESDP_IMPL_SOCKETS_MEMORY_REGISTRATION_H_
#define ESDP_IMPL_SOCKETS_MEMORY_REGISTRATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "esdp/region.h"
#include "impl/provider/shard.h"
#include "impl/sockets/memory/owned_memory.h"

namespace esdp::sockets {

class ContextState;

// A Region of memory that the provider has registered; of memory that is not any more, where there
// is none for the Region. Throws std::bad_alloc.
Region RegionOf(const std::shared_ptr<ContextState>& context,
                const std::shared_ptr<provider::MemoryRegion>& memory,
                const RegisterOptions& options, uint64_t length, OwnedMemory owned);

// Registers memory, the caller's or what is handed over in `owned`, which is mapped from `file` if
// there is one.
// Errors: those of Context::Register.
absl::StatusOr<Region> Register(const std::shared_ptr<ContextState>& context,
                                absl::Span<std::byte> memory, const RegisterOptions& options,
                                OwnedMemory owned = nullptr, int file = -1);
// Of pages of the library's own.
absl::StatusOr<Region> RegisterOwn(const std::shared_ptr<ContextState>& context, size_t bytes,
                                   const AllocateOptions& options);

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_MEMORY_REGISTRATION_H_
