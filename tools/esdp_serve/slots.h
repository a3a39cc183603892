#ifndef ESDP_TOOLS_ESDP_SERVE_SLOTS_H_
#define ESDP_TOOLS_ESDP_SERVE_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "esdp/context.h"
#include "tools/esdp_files/chunks.h"

namespace esdp_serve {

inline constexpr size_t kBlockBytes = 136 * 1024;  // an answer, a small file and its tails
inline constexpr size_t kChunkRoom = esdp_files::kChunkBytes + esdp_files::kTailBytes;

// Slots are the registered memory that answers, small files and summed chunks leave from.
//
//   Owns:     a block of kBlockBytes for each slot; a chunk's room for those that were asked for it.
//   Threads:  one takes and returns. Who holds a slot may write into it from any.
//   Blocks:   while memory is registered.
//   Units:    bytes.
//   Errors:   ResourceExhausted where there is no memory.
class Slots {
 public:
  static absl::StatusOr<Slots> Make(esdp::Context& context, uint32_t count);

  // One that nobody has. There are as many as `count`: who hands out no more finds one.
  uint32_t Take();
  void Return(uint32_t slot) { free_.push_back(slot); }

  std::span<std::byte> block(uint32_t slot) const;
  esdp::Slice BlockSlice(uint32_t slot, uint64_t offset, uint64_t length) const;
  // Room for a chunk and its tail, kept for the slot's next holder.
  absl::Status MakeChunkRoom(uint32_t slot);
  std::span<std::byte> chunk(uint32_t slot) const;
  esdp::Slice ChunkSlice(uint32_t slot, uint64_t length) const;
  // In place of what cannot be read; at most a chunk.
  esdp::Slice Zeros(uint64_t length) const;

 private:
  esdp::Context* context_ = nullptr;
  esdp::Region blocks_;
  esdp::Region zeros_;
  std::vector<esdp::Region> chunks_;
  std::vector<uint32_t> free_;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_SLOTS_H_
