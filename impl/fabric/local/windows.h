#ifndef ESDP_IMPL_FABRIC_LOCAL_WINDOWS_H_
#define ESDP_IMPL_FABRIC_LOCAL_WINDOWS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

// The windows that an end shows to one that may read its memory by itself: which key stands for
// which bytes. It is a table in a block: one end writes it, the other looks keys up.

namespace esdp::fabric::local {

struct WindowEntry {
  std::atomic<uint64_t> key;      // 0: none. Written last, and taken back first
  std::atomic<uint64_t> address;  // of the process; with a region the offset in its file
  std::atomic<uint64_t> length;
  std::atomic<uint64_t> region;  // that was passed; 0: none
};

inline constexpr size_t kWindowsShown = 32;
using WindowTable = std::array<WindowEntry, kWindowsShown>;

// What a table said of a key when it was looked at.
struct ShownWindow {
  size_t place = 0;
  uint64_t region = 0;
  uint64_t address = 0;
  uint64_t length = 0;
};

// False where there is no room: then the other end asks for what it wants.
bool Show(WindowTable& table, uint32_t key, const ShownWindow& window);
// Ordered before whatever the caller does next with the memory.
void Hide(WindowTable& table, uint32_t key);

std::optional<ShownWindow> FindShown(const WindowTable& table, uint32_t key);
// Whether it is shown still: what was read in between is the window's.
bool IsStillShown(const WindowTable& table, const ShownWindow& window, uint32_t key);

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_WINDOWS_H_
