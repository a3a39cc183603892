#include "impl/fabric/local/windows.h"

namespace esdp::fabric::local {

bool Show(WindowTable& table, uint32_t key, const ShownWindow& window) {
  for (WindowEntry& entry : table) {
    if (entry.key.load(std::memory_order_relaxed) != 0) continue;
    entry.region.store(window.region, std::memory_order_relaxed);
    entry.address.store(window.address, std::memory_order_relaxed);
    entry.length.store(window.length, std::memory_order_relaxed);
    entry.key.store(key, std::memory_order_release);
    return true;
  }
  return false;
}

void Hide(WindowTable& table, uint32_t key) {
  for (WindowEntry& entry : table) {
    if (entry.key.load(std::memory_order_relaxed) != key) continue;
    entry.key.store(0, std::memory_order_seq_cst);
    return;
  }
}

// A key is not reused soon: an entry that has it before and after is the same.
std::optional<ShownWindow> FindShown(const WindowTable& table, uint32_t key) {
  for (size_t place = 0; key != 0 && place < table.size(); ++place) {
    const WindowEntry& entry = table[place];
    if (entry.key.load(std::memory_order_acquire) != key) continue;
    const ShownWindow window{.place = place,
                             .region = entry.region.load(std::memory_order_acquire),
                             .address = entry.address.load(std::memory_order_acquire),
                             .length = entry.length.load(std::memory_order_acquire)};
    if (!IsStillShown(table, window, key)) return std::nullopt;
    return window;
  }
  return std::nullopt;
}

bool IsStillShown(const WindowTable& table, const ShownWindow& window, uint32_t key) {
  return table[window.place].key.load(std::memory_order_seq_cst) == key;
}

}  // namespace esdp::fabric::local
