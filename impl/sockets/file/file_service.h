#ifndef ESDP_IMPL_SOCKETS_FILE_FILE_SERVICE_H_
#define ESDP_IMPL_SOCKETS_FILE_FILE_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "impl/files/file_calls.h"
#include "impl/files/io_threads.h"
#include "impl/sockets/file/lane_transfers.h"
#include "impl/sockets/file/slot_pool.h"

namespace esdp::sockets {

// Bytes; see ContextStats.
struct FileCounts {
  std::atomic<uint64_t> cached{0};
  std::atomic<uint64_t> read{0};
  std::atomic<uint64_t> written{0};
};

// What the transfers of files of one Context share.
struct FileService {
  FileService(size_t pool_bytes, uint32_t thread_count)
      : slots(pool_bytes), threads(thread_count) {}

  SlotPool slots;
  LaneTransferPool transfers;
  files::IoThreads threads;
  FileCounts counts;
  files::FileCalls* calls = &files::FileCalls::System();
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FILE_FILE_SERVICE_H_
