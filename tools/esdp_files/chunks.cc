#include "tools/esdp_files/chunks.h"

#include <isa-l/crc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tools/esdp_files/big_endian.h"

namespace esdp_files {

void StoreTail(const Tail& tail, std::span<std::byte, kTailBytes> out) {
  StoreBigEndian(tail.crc, out.subspan<0, 4>());
  StoreBigEndian(tail.status, out.subspan<4, 4>());
  StoreBigEndian(tail.offset, out.subspan<8, 8>());
}

Tail LoadTail(std::span<const std::byte, kTailBytes> bytes) {
  return {.crc = static_cast<uint32_t>(LoadBigEndian(bytes.subspan<0, 4>())),
          .status = static_cast<uint32_t>(LoadBigEndian(bytes.subspan<4, 4>())),
          .offset = LoadBigEndian(bytes.subspan<8, 8>())};
}

Chunks::Chunks(std::vector<FileExtent> extents) : extents_(std::move(extents)) {
  std::erase_if(extents_, [](const FileExtent& extent) { return extent.length == 0; });
}

FileExtent Chunks::Peek() const {
  const FileExtent& extent = extents_[next_];
  return {extent.offset + inside_, std::min(extent.length - inside_, kChunkBytes)};
}

void Chunks::Skip() {
  inside_ += Peek().length;
  if (inside_ < extents_[next_].length) return;
  ++next_;
  inside_ = 0;
}

uint64_t Chunks::length() const {
  uint64_t sum = 0;
  for (size_t i = next_; i < extents_.size(); ++i) sum += extents_[i].length;
  return sum - inside_;
}

void Chunks::SkipTo(uint64_t offset) {
  while (!done() && Peek().offset < offset) Skip();
}

bool ExtentsAreSound(std::span<const FileExtent> extents, uint64_t offset, uint64_t end,
                     uint64_t length) {
  uint64_t sum = 0;
  for (const FileExtent& extent : extents) {
    if (extent.length == 0 || extent.offset < offset || extent.offset >= end) return false;
    if (extent.length > end - extent.offset) return false;
    offset = extent.offset + extent.length;
    sum += extent.length;
  }
  return sum == length;
}

std::vector<FileExtent> DataOf(int fd, uint64_t offset, uint64_t end) {
  std::vector<FileExtent> extents;
  for (uint64_t at = offset; at < end;) {
    const off_t data = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    const off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
    if (hole < 0 || extents.size() == kExtentsMax) return {{offset, end - offset}};
    if (static_cast<uint64_t>(data) >= end) break;
    const uint64_t stop = std::min(static_cast<uint64_t>(hole), end);
    extents.push_back({static_cast<uint64_t>(data), stop - static_cast<uint64_t>(data)});
    at = stop;
  }
  return extents;
}

uint32_t Crc32c(std::span<const std::byte> bytes) {
  // ISA-L takes a pointer to non-const bytes and only reads them; a chunk fits its int.
  auto* const data =
      const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  return ~crc32_iscsi(data, static_cast<int>(bytes.size()), 0xffffffffu);
}

}  // namespace esdp_files
