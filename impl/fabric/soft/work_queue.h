#ifndef ESDP_IMPL_FABRIC_SOFT_WORK_QUEUE_H_
#define ESDP_IMPL_FABRIC_SOFT_WORK_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "impl/base/bytes.h"
#include "impl/base/ring.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/types.h"

// What is posted on a queue pair. Work and entries are counted from the queue pair's first: a
// number names the same thing for as long as it lives, whatever was taken out before it.

namespace esdp::fabric::soft {

// A position in a list of entries.
struct Place {
  uint64_t entry = 0;
  uint32_t offset = 0;
};

// The scatter entries of all the work in one queue, in one ring, so that work of few entries costs
// little.
class EntryList {
 public:
  uint64_t end() const { return first_ + ring_.size(); }

  void Reserve(size_t entries) { ring_.Reserve(entries); }
  void PushBack(const ScatterEntry& entry) { ring_.PushBack(entry); }
  const ScatterEntry& At(uint64_t entry) const { return ring_[entry - first_]; }
  void PopFront() {
    ring_.PopFront();
    ++first_;
  }

  // The memory at `place`, at most `bytes_max` of it; moves `place` behind it. The caller knows
  // that the work has at least one byte left.
  Bytes Next(Place& place, size_t bytes_max) const {
    while (place.offset == At(place.entry).length) place = {place.entry + 1, 0};
    const ScatterEntry& entry = At(place.entry);
    const size_t bytes = std::min<size_t>(bytes_max, entry.length - place.offset);
    const Bytes piece(entry.address + place.offset, bytes);
    place.offset += static_cast<uint32_t>(bytes);
    return piece;
  }

  void Skip(Place& place, size_t bytes) const {
    while (bytes != 0) bytes -= Next(place, bytes).size();
  }

 private:
  GrowingRing<ScatterEntry> ring_;
  uint64_t first_ = 0;
};

// What all work has.
struct WorkSlot {
  uint64_t work_id = 0;
  Place place;  // its first entry
  uint32_t entry_count = 0;
  uint32_t length = 0;
  bool finished = false;  // may be reported once everything before it is
  WorkStatus status = WorkStatus::kFlushed;
};

struct SendSlot : WorkSlot {
  Opcode opcode = Opcode::kSend;
  bool has_invalidate = false;
  bool solicited = false;
  RemoteRange remote;
  uint32_t invalidate_key = 0;
  // What the peer would call it in a Terminate: a Send's sequence number, a Read's sink tag.
  uint32_t wire_name = 0;
};

struct ReceiveSlot : WorkSlot {
  uint32_t invalidated_key = 0;
  bool has_invalidated = false;
  uint64_t written = kWrittenUnknown;  // under that key
  uint32_t received = 0;
};

// Work from its post until its completion has been polled. Holds the regions that it names.
template <typename Slot>
class WorkQueue {
 public:
  uint64_t begin() const { return first_; }
  uint64_t end() const { return first_ + slots_.size(); }
  size_t size() const { return slots_.size(); }

  Slot& At(uint64_t index) { return slots_[index - first_]; }
  const Slot& At(uint64_t index) const { return slots_[index - first_]; }
  const EntryList& entries() const { return entries_; }

  // Room for so much work, and for several entries of each.
  void Reserve(size_t work) {
    slots_.Reserve(work);
    entries_.Reserve(kEntriesOfWork * work);
  }

  void PushBack(Slot slot, const ScatterEntry* entries, uint32_t count, RegionTable& regions) {
    slot.place = Place{entries_.end(), 0};
    slot.entry_count = count;
    for (uint32_t i = 0; i < count; ++i) {
      slot.length += entries[i].length;
      entries_.PushBack(entries[i]);
      regions.Hold(entries[i].region);
    }
    slots_.PushBack(slot);
  }

  void PopFront(RegionTable& regions) {
    for (uint32_t i = 0; i < slots_.front().entry_count; ++i) {
      regions.Release(entries_.At(slots_.front().place.entry + i).region);
      entries_.PopFront();
    }
    slots_.PopFront();
    ++first_;
  }

 private:
  static constexpr size_t kEntriesOfWork = 6;  // a header and five pieces of payload

  GrowingRing<Slot> slots_;
  EntryList entries_;
  uint64_t first_ = 0;
};

}  // namespace esdp::fabric::soft

#endif  // ESDP_IMPL_FABRIC_SOFT_WORK_QUEUE_H_
