#ifndef ESDP_IMPL_SWITCH_ENGINE_STATUS_TABLE_H_
#define ESDP_IMPL_SWITCH_ENGINE_STATUS_TABLE_H_

#include <cstdint>
#include <mutex>

#include "impl/switch/engine/host.h"
#include "impl/switch/status_record.h"

namespace esdp::switching {

// The records of this process, the latest kStatusRecords of them; made at the first one.
//
//   Owns:     the memory file.
//   Threads:  any.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   where there is no memory nothing is shown.
class StatusTable {
 public:
  // A place, to be changed by Change alone.
  uint32_t Add(const ConnectionNames& names, StatusRecord record);
  template <typename Do>
  void Change(uint32_t place, const Do& act) {
    const std::lock_guard lock(mutex_);
    if (header_ == nullptr) return;
    StatusRecord& record = records_[place % kStatusRecords];
    Begin(record);
    act(record, *header_);
    End(record);
  }

 private:
  bool Open();
  static void Begin(StatusRecord& record);
  static void End(StatusRecord& record);

  std::mutex mutex_;
  Descriptor file_;
  StatusHeader* header_ = nullptr;
  StatusRecord* records_ = nullptr;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_STATUS_TABLE_H_
